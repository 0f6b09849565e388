//go:build linux

package node_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"kaz/internal/csi/disk/node"
	"kaz/internal/csi/mount"
	plandisk "kaz/internal/plan/disk"
)

func (w *host) expand(path string, size int64) (int64, error) {
	answer, err := w.NodeExpandVolume(w.t.Context(), &csispec.NodeExpandVolumeRequest{
		VolumeId: volume, VolumePath: path, CapacityRange: &csispec.CapacityRange{RequiredBytes: size},
	})
	return answer.GetCapacityBytes(), err
}

// sysfs adds the directory of a device to the kernel's view, and returns it.
func (w *host) sysfs(device string, files ...string) string {
	w.t.Helper()
	number, err := mount.Number(device)
	w.must(err)
	directory := filepath.Join(w.root, "sys/dev/block", number)
	for _, file := range files {
		path := filepath.Join(directory, file)
		w.must(os.MkdirAll(filepath.Dir(path), 0o750))
		w.must(os.WriteFile(path, nil, 0o600))
	}
	return directory
}

// TestExpand checks that a file system grows with its disk while it is mounted (173).
func TestExpand(t *testing.T) {
	for _, fsType := range []string{"ext4", "ext3", "xfs", "btrfs"} {
		t.Run(fsType, func(t *testing.T) {
			w := newHost(t, node.Config{})
			if !canGrow(t, fsType) {
				t.Skip("growing a mounted ext file system needs CAP_SYS_RESOURCE")
			}
			device, file := w.device(384 * mib)
			w.link(1, device)
			rescan := filepath.Join(w.sysfs(device, "device/rescan"), "device/rescan")
			path, err := w.stage(1, capability(fsType))
			w.must(err)
			target := w.path("pod/mount")
			w.must(w.publish(1, capability(fsType), target, false))
			w.must(os.Truncate(file, 1000*mib))
			w.run("losetup", "--set-capacity", device)
			size, err := w.expand(target, 1000*mib)
			want(t, "173", err, codes.OK, "")
			usage, err := mount.Usage(path)
			w.must(err)
			if size != 1000*mib || usage[0].GetTotal() < 800*mib {
				t.Errorf("173: the answer is %d, the file system has %d bytes", size, usage[0].GetTotal())
			}
			if text, err := os.ReadFile(rescan); err != nil || string(text) != "1" {
				t.Errorf("173: the kernel was not told: %q, %v", text, err)
			}
		})
	}
}

// TestExpandLater checks the wait for a kernel that still sees the old size (174). Only the device of the volume is scanned
// again (175).
func TestExpandLater(t *testing.T) {
	w := newHost(t, node.Config{System: node.Linux{Devices: node.Devices{GrowWithin: 2 * time.Second}}})
	device, file := w.device(64 * mib)
	w.link(1, device)
	other := w.attach(2, 64*mib)
	rescan := filepath.Join(w.sysfs(device, "device/rescan"), "device/rescan")
	others := filepath.Join(w.sysfs(other, "device/rescan"), "device/rescan")
	target := w.path("pod/device")
	w.must(w.publish(1, capability("block"), target, false))
	_, err := w.expand(target, 128*mib)
	want(t, "174: never", err, codes.Unavailable, "the kernel sees 67108864 bytes of 134217728")
	w.must(os.Truncate(file, 128*mib))
	grow := time.AfterFunc(500*time.Millisecond, func() {
		if err := exec.CommandContext(context.WithoutCancel(t.Context()), "losetup", "--set-capacity", device).Run(); err != nil {
			t.Error(err)
		}
	})
	defer grow.Stop()
	size, err := w.expand(target, 128*mib)
	want(t, "174: later", err, codes.OK, "")
	if size != 128*mib {
		t.Errorf("174: %d bytes", size)
	}
	for path, want := range map[string]string{rescan: "1", others: ""} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("175: %s has %q, %v; want %q", path, text, err, want)
		}
	}
	_, err = w.expand(w.path("nothing"), mib)
	want(t, "no volume", err, codes.NotFound, "no such file")
}

// TestExpandPartition checks that the error says why a partition does not grow.
func TestExpandPartition(t *testing.T) {
	w := newHost(t, node.Config{})
	device := w.attach(1, 64*mib)
	path, err := w.stage(1, capability("ext4"))
	w.must(err)
	w.must(os.WriteFile(filepath.Join(w.sysfs(device, "partition"), "partition"), []byte("1\n"), 0o600))
	_, err = w.expand(path, 128*mib)
	want(t, "partition", err, codes.FailedPrecondition, "grow the partition")
}

// TestStats checks the usage of a file system, and the error of a missing path (176).
func TestStats(t *testing.T) {
	w := newHost(t, node.Config{})
	w.attach(1, 64*mib)
	path, err := w.stage(1, capability("ext4"))
	w.must(err)
	stats := func(path string) (*csispec.NodeGetVolumeStatsResponse, error) {
		return w.NodeGetVolumeStats(t.Context(), &csispec.NodeGetVolumeStatsRequest{VolumeId: volume, VolumePath: path})
	}
	before, err := stats(path)
	w.must(err)
	w.must(os.WriteFile(filepath.Join(path, "data"), make([]byte, 8*mib), 0o600))
	after, err := stats(path)
	w.must(err)
	bytes, inodes := after.GetUsage()[0], after.GetUsage()[1]
	if used := bytes.GetUsed() - before.GetUsage()[0].GetUsed(); used < 8*mib || used > 9*mib {
		t.Errorf("a file of 8 MiB uses %d bytes", used)
	}
	if used := inodes.GetUsed() - before.GetUsage()[1].GetUsed(); used != 1 || inodes.GetAvailable() == 0 {
		t.Errorf("a file uses %d inodes: %v", used, inodes)
	}
	_, err = stats(filepath.Join(w.dir, "nothing"))
	want(t, "176", err, codes.NotFound, "no such file")
	_, err = stats("")
	want(t, "no path", err, codes.InvalidArgument, "volume_path")
}

// TestReadOnlyAfterError checks the health of a file system that the kernel made read-only.
func TestReadOnlyAfterError(t *testing.T) {
	w := newHost(t, node.Config{})
	device := w.attach(1, 64*mib)
	path, err := w.stage(1, capability("ext4", "errors=remount-ro"))
	w.must(err)
	trigger := filepath.Join("/sys/fs/ext4", filepath.Base(device), "trigger_fs_error")
	if err := os.WriteFile(trigger, []byte("test of kaz"), 0o200); err != nil {
		t.Skipf("this kernel cannot be told to find an error: %v", err)
	}
	fault := w.health(path)
	if len(fault) != 1 || fault[0].GetStatus() != csispec.VolumeHealthErrorType_DEGRADED || fault[0].GetReason() != "ReadOnlyAfterError" {
		t.Errorf("health %v, want DEGRADED", fault)
	}
}

// TestTune checks that the settings of a profile are written. Profile basic writes the settings that the device has (168).
// All settings that the user names must be written (169).
func TestTune(t *testing.T) {
	w := newHost(t, node.Config{Speed: func(context.Context) plandisk.Speed { return plandisk.Speed{} }})
	device := w.attach(1, 2*gib)
	directory := w.sysfs(device, "queue/read_ahead_kb", "queue/scheduler", "queue/nr_requests", "queue/max_sectors_kb")
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join(directory, file))
		w.must(err)
		return string(text)
	}
	_, err := w.stage(1, capability("ext4"), "perfProfile", "basic", "storageAccountType", "Premium_LRS", plandisk.RequestedSize, "2")
	want(t, "168", err, codes.OK, "")
	if read("queue/read_ahead_kb") != "8" || read("queue/scheduler") != "mq-deadline" {
		t.Error("168: the settings of profile basic are not written")
	}
	if _, err := strconv.Atoi(read("queue/nr_requests")); err != nil {
		t.Error("168:", err)
	}
	_, err = w.stage(1, capability("ext4"), "perfProfile", "advanced", "device-setting/queue/read_ahead_kb", "64")
	want(t, "169: all there", err, codes.OK, "")
	if read("queue/read_ahead_kb") != "64" {
		t.Error("169: the setting is not written")
	}
	_, err = w.stage(1, capability("ext4"), "perfProfile", "advanced", "device-setting/queue/other", "64")
	want(t, "169", err, codes.Internal, "queue/other")
	_, err = w.stage(1, capability("ext4"), "perfProfile", "advanced")
	want(t, "36", err, codes.InvalidArgument, "device-setting/")
	if _, err := os.Stat(filepath.Join(directory, "queue/other")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error("169: the file was made:", err)
	}
}
