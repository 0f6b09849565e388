//go:build linux

package node_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	mountutils "k8s.io/mount-utils"
	utilexec "k8s.io/utils/exec"

	"kaz/internal/azure"
	"kaz/internal/csi/disk/node"
	"kaz/internal/csi/mount"
)

// TestBadStaging checks the refusals of requests that lack something (145, 150) and of capabilities.
func TestBadStaging(t *testing.T) {
	w := newHost(t, node.Config{})
	for _, c := range []struct {
		row, want string
		change    func(r *csispec.NodeStageVolumeRequest)
	}{
		{"145: id", "volume_id is missing", func(r *csispec.NodeStageVolumeRequest) { r.VolumeId = "" }},
		{"145: path", "staging_target_path is missing", func(r *csispec.NodeStageVolumeRequest) { r.StagingTargetPath = "" }},
		{"145: capability", "capability is missing", func(r *csispec.NodeStageVolumeRequest) { r.VolumeCapability = nil }},
		{"145: LUN", `LUN ""`, func(r *csispec.NodeStageVolumeRequest) { r.PublishContext = nil }},
		{"150: LUN", `LUN "abc"`, func(r *csispec.NodeStageVolumeRequest) { r.PublishContext["LUN"] = "abc" }},
		{"150: LUN 64", `LUN "64"`, func(r *csispec.NodeStageVolumeRequest) { r.PublishContext["LUN"] = "64" }},
		{"37: profile", `perfProfile`, func(r *csispec.NodeStageVolumeRequest) { r.VolumeContext["perfProfile"] = "turbo" }},
	} {
		r := w.staging(1, capability("ext4"))
		c.change(r)
		_, err := w.NodeStageVolume(t.Context(), r)
		want(t, c.row, err, codes.InvalidArgument, c.want)
	}
}

// TestStageFileSystems checks that a blank disk is formatted and mounted, and mounted again without effect (146, 147, 156,
// 158). The file system keeps its content. It grows when it is staged after its disk grew, also where the kernel grows no
// mounted file system.
func TestStageFileSystems(t *testing.T) {
	for _, c := range []struct{ row, fsType, inContext, want string }{
		{"146: default", "", "", "ext4"}, {"146: ext4", "ext4", "", "ext4"}, {"ext3", "ext3", "", "ext3"}, {"ext2", "ext2", "", "ext2"},
		{"xfs", "xfs", "", "xfs"}, {"156: the context wins", "ext4", "XFS", "xfs"}, {"158", "btrfs", "", "btrfs"},
	} {
		t.Run(c.row, func(t *testing.T) {
			w := newHost(t, node.Config{})
			device, file := w.device(384 * mib)
			w.link(3, device)
			var inContext []string
			if c.inContext != "" {
				inContext = []string{"fsType", c.inContext}
			}
			path, err := w.stage(3, capability(c.fsType), inContext...)
			w.must(err)
			have, options := w.options(path)
			if have != c.want || w.format(device) != c.want || (c.want == "xfs") != strings.Contains(options, "nouuid") {
				t.Errorf("mounted %s with %s, the disk has %s", have, options, w.format(device))
			}
			w.must(os.WriteFile(filepath.Join(path, "data"), []byte("kept"), 0o600))
			_, err = w.stage(3, capability(c.fsType), inContext...)
			want(t, "147", err, codes.OK, "")
			w.must(w.unstage(path))
			w.must(os.Truncate(file, 1000*mib))
			w.run("losetup", "--set-capacity", device)
			_, err = w.stage(3, capability(c.fsType), inContext...)
			w.must(err)
			if text, err := os.ReadFile(filepath.Join(path, "data")); err != nil || string(text) != "kept" {
				t.Errorf("after the second stage: %q, %v", text, err)
			}
			if usage, err := mount.Usage(path); err != nil || usage[0].GetTotal() < 800*mib {
				t.Errorf("the file system did not grow with its disk: %v %v", usage, err)
			}
		})
	}
}

// TestLateDevice checks that a device that appears after the request is waited for (148), also under its old path (149).
func TestLateDevice(t *testing.T) {
	w := newHost(t, node.Config{})
	device, _ := w.device(64 * mib)
	r := w.staging(7, capability("ext4"))
	r.PublishContext["LUN"] = "/dev/disk/azure/scsi1/lun7"
	appear := time.AfterFunc(time.Second, func() {
		if err := os.Symlink(device, filepath.Join(w.root, "dev/disk/azure/scsi1/lun7")); err != nil {
			t.Error(err)
		}
	})
	defer appear.Stop()
	_, err := w.NodeStageVolume(t.Context(), r)
	want(t, "148, 149", err, codes.OK, "")
}

// TestNoDevice checks that the wait ends, with what was looked for.
func TestNoDevice(t *testing.T) {
	w := newHost(t, node.Config{System: node.Linux{Devices: node.Devices{Within: 300 * time.Millisecond}}})
	_, err := w.stage(5, capability("ext4"))
	want(t, "no device", err, codes.DeadlineExceeded, "/dev/disk/azure/data/by-lun/5")
}

// TestNeverFormats checks that a disk with content of another kind keeps it (151, 153), and that a blank disk is not
// mounted read-only (152).
func TestNeverFormats(t *testing.T) {
	for _, c := range []struct {
		row     string
		prepare func(w *host, device string)
		flags   []string
		want    string
	}{
		{"151: xfs", func(w *host, device string) { w.run("mkfs.xfs", device) }, nil, ""},
		{"152: blank", func(*host, string) {}, []string{"ro"}, "read-only"},
		{"153: swap", func(w *host, device string) { w.run("mkswap", device) }, nil, ""},
		{"153: LVM", func(w *host, device string) { w.must(writeAt(device, 512, lvmLabel())) }, nil, ""},
		{"153: partitions", func(w *host, device string) { w.must(writeAt(device, 0, partitionTable())) }, nil, ""},
	} {
		t.Run(c.row, func(t *testing.T) {
			w := newHost(t, node.Config{})
			size := int64(64 * mib)
			if strings.Contains(c.row, "xfs") {
				size = 320 * mib // the least that mkfs.xfs takes is 300 MiB
			}
			device := w.attach(1, size)
			c.prepare(w, device)
			before := w.run("sha256sum", device)
			_, err := w.stage(1, capability("ext4", c.flags...))
			want(t, c.row, err, codes.Internal, c.want)
			if w.run("sha256sum", device) != before {
				t.Error("the disk was written to")
			}
		})
	}
}

func writeAt(file string, at int64, data []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(data, at); err != nil {
		return err
	}
	return f.Close()
}

// lvmLabel is the label of a physical volume: its name, sector and a checksum over the rest.
func lvmLabel() []byte {
	label := make([]byte, 512)
	copy(label, "LABELONE")
	label[8], label[20] = 1, 32
	copy(label[24:], "LVM2 001")
	copy(label[32:], "kazkazkazkazkazkazkazkazkazkazkk")
	const poly = 0xedb88320
	crc := uint32(0xf597a6cf)
	for _, b := range label[20:] {
		crc ^= uint32(b)
		for range 8 {
			low := crc & 1
			crc >>= 1
			crc ^= low * poly
		}
	}
	label[16], label[17], label[18], label[19] = byte(crc), byte(crc>>8), byte(crc>>16), byte(crc>>24)
	return label
}

// partitionTable is a master boot record with one Linux partition.
func partitionTable() []byte {
	record := make([]byte, 512)
	entry := record[446:]
	entry[4], entry[9], entry[13] = 0x83, 8, 4 // type, first sector 2048, 262144 sectors
	record[510], record[511] = 0x55, 0xaa
	return record
}

// TestDirectMount checks that option directmount mounts a disk as it is (154).
func TestDirectMount(t *testing.T) {
	w := newHost(t, node.Config{})
	device := w.attach(1, 64*mib)
	_, err := w.stage(1, capability("ext4", "directmount"))
	want(t, "154: blank", err, codes.Internal, "mount")
	if w.format(device) != "" {
		t.Error("154: directmount formatted the disk")
	}
	w.run("mkfs.ext4", device)
	path, err := w.stage(1, capability("ext4", "directmount", "noatime"))
	want(t, "154", err, codes.OK, "")
	if fsType, options := w.options(path); fsType != "ext4" || !strings.Contains(options, "noatime") {
		t.Errorf("154: mounted %s with %s", fsType, options)
	}
}

// TestPartition checks that a volume can be a partition of a disk, as udev's link and as the kernel's name (155).
func TestPartition(t *testing.T) {
	w := newHost(t, node.Config{System: node.Linux{Devices: node.Devices{Within: time.Second}}})
	w.attach(1, 64*mib)
	part, _ := w.device(64 * mib)
	w.must(os.Symlink(part, filepath.Join(w.root, "dev/disk/azure/scsi1/lun1-part2")))
	path, err := w.stage(1, capability("ext4"), "partition", "2")
	want(t, "155", err, codes.OK, "")
	if w.format(part) != "ext4" {
		t.Errorf("155: %s is not the partition", path)
	}
	r := w.staging(1, capability("ext4"), "partition", "x")
	_, err = w.NodeStageVolume(t.Context(), r)
	want(t, "155: bad number", err, codes.InvalidArgument, `partition "x"`)
	r = w.staging(1, capability("ext4"), "partition", "3")
	_, err = w.NodeStageVolume(t.Context(), r)
	want(t, "155: no partition", err, codes.DeadlineExceeded, "no partition 3")

	w.namespace(t, "nvme0n4", "4", "MSFT NVMe Accelerator v1.0")
	w.must(os.Symlink(part, filepath.Join(w.root, "dev/nvme0n4p1")))
	w.must(w.unstage(path))
	path, err = w.stage(2, capability("ext4"), "partition", "1")
	want(t, "155: NVMe", err, codes.OK, "")
	if fsType, _ := w.options(path); fsType != "ext4" {
		t.Error("155: the partition is not mounted")
	}
}

// TestCloneBesideSource checks that a copy of an xfs disk is mounted beside its source (157).
func TestCloneBesideSource(t *testing.T) {
	w := newHost(t, node.Config{})
	source, file := w.device(384 * mib)
	w.link(1, source)
	path, err := w.stage(1, capability("xfs"))
	w.must(err)
	w.must(w.unstage(path))
	copied := filepath.Join(w.dir, "copy.img")
	w.run("cp", "--sparse=always", file, copied)
	w.link(2, w.loop(copied))
	for lun := 1; lun <= 2; lun++ {
		_, err := w.stage(lun, capability("xfs"))
		want(t, "157", err, codes.OK, "")
	}
}

// TestBrokenFileSystem checks that a file system that fsck cannot repair is not mounted (159).
func TestBrokenFileSystem(t *testing.T) {
	w := newHost(t, node.Config{})
	device := w.attach(1, 64*mib)
	w.run("mkfs.ext4", device)
	w.run("debugfs", "-w", "-R", "clri <2>", device)                // the root directory
	w.run("debugfs", "-w", "-R", "set_super_value state 2", device) // fsck looks at nothing of a clean file system
	_, err := w.stage(1, capability("ext4"))
	want(t, "159", err, codes.Internal, "could not correct")
}

// TestHeldDevice checks that the error of a device that cannot be mounted names the device built on it (172).
func TestHeldDevice(t *testing.T) {
	w := newHost(t, node.Config{})
	device := w.attach(1, 64*mib)
	w.sysfs(device, "holders/dm-0")
	_, err := w.stage(1, capability("ext4", "directmount")) // the mount of a blank disk fails
	want(t, "172", err, codes.Internal, "is in use by dm-0; if that is multipath")
}

// counting counts how many formats run at a time.
type counting struct {
	utilexec.Interface
	now, most, all atomic.Int32
}

type countedFormat struct {
	utilexec.Cmd
	of *counting
}

func (c *counting) Command(name string, args ...string) utilexec.Cmd {
	cmd := c.Interface.Command(name, args...)
	if strings.HasPrefix(name, "mkfs.") {
		return countedFormat{cmd, c}
	}
	return cmd
}

func (c countedFormat) CombinedOutput() ([]byte, error) {
	now := c.of.now.Add(1)
	defer c.of.now.Add(-1)
	c.of.all.Add(1)
	for most := c.of.most.Load(); now > most && !c.of.most.CompareAndSwap(most, now); most = c.of.most.Load() {
	}
	return c.Cmd.CombinedOutput()
}

// TestFormatsAtATime checks that eight blank disks are formatted two at a time (160).
func TestFormatsAtATime(t *testing.T) {
	count := &counting{Interface: utilexec.New()}
	w := newHost(t, node.Config{System: node.Linux{Mounts: mount.With(mountutils.NewSafeFormatAndMount(
		mountutils.NewWithoutSystemd(""), count, mountutils.WithMaxConcurrentFormat(2, time.Minute)))}})
	const disks = 8
	errs := make(chan error, disks)
	for lun := range disks {
		w.attach(lun, 32*mib)
		r := w.staging(lun, capability("ext4"))
		r.VolumeId += string(rune('a' + lun))
		go func() {
			_, err := w.NodeStageVolume(context.WithoutCancel(t.Context()), r)
			errs <- err
		}()
	}
	for range disks {
		w.must(<-errs)
	}
	if count.most.Load() > 2 || count.all.Load() != disks {
		t.Errorf("160: %d formats, %d at a time", count.all.Load(), count.most.Load())
	}
}

// TestTwoStages checks that a second stage of a volume is refused while the first one runs (185).
func TestTwoStages(t *testing.T) {
	begun, release := make(chan bool), make(chan bool)
	w := newHost(t, node.Config{Attached: func(context.Context) (map[int]azure.ID, error) {
		begun <- true
		<-release
		return nil, nil
	}})
	w.attach(1, 64*mib)
	first := make(chan error, 1)
	r := w.staging(1, capability("ext4"))
	go func() {
		_, err := w.NodeStageVolume(context.WithoutCancel(t.Context()), r)
		first <- err
	}()
	<-begun
	_, err := w.stage(1, capability("ext4"))
	want(t, "185", err, codes.Aborted, "in flight")
	close(release)
	w.must(<-first)
}

// TestAnotherDisk checks that the disk of another volume is never mounted: Azure's metadata names it, or the device is
// too small (171).
func TestAnotherDisk(t *testing.T) {
	var attached map[int]azure.ID
	w := newHost(t, node.Config{Attached: func(context.Context) (map[int]azure.ID, error) { return attached, nil }})
	device := w.attach(1, 64*mib)
	attached = map[int]azure.ID{1: "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/other"}
	_, err := w.stage(1, capability("ext4"))
	want(t, "171: metadata", err, codes.Unavailable, "shows disk /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/other at LUN 1")
	attached = map[int]azure.ID{1: azure.ID(strings.ToUpper(volume))}
	_, err = w.stage(1, capability("ext4"), "requestedsizegib", "1")
	want(t, "171: size", err, codes.FailedPrecondition, "it is another disk")
	if w.format(device) != "" {
		t.Error("171: the disk of another volume was formatted")
	}
	_, err = w.stage(1, capability("ext4"))
	want(t, "171: the disk itself", err, codes.OK, "")
}

// TestDeadMount checks that a staging path with a file system that cannot be read is mounted anew (166).
func TestDeadMount(t *testing.T) {
	w := newHost(t, node.Config{})
	w.attach(1, 384*mib)
	path, err := w.stage(1, capability("xfs"))
	w.must(err)
	w.must(os.WriteFile(filepath.Join(path, "data"), []byte("kept"), 0o600))
	unix.Sync()
	shutdown(w, path)
	fault := w.health(path)
	if len(fault) != 1 || fault[0].GetStatus() != csispec.VolumeHealthErrorType_INACCESSIBLE {
		t.Errorf("166: health %v, want INACCESSIBLE", fault)
	}
	_, err = w.stage(1, capability("xfs"))
	want(t, "166", err, codes.OK, "")
	if text, err := os.ReadFile(filepath.Join(path, "data")); err != nil || string(text) != "kept" {
		t.Errorf("166: %q, %v", text, err)
	}
	if fault := w.health(path); len(fault) > 0 {
		t.Errorf("166: health of the new mount: %v", fault)
	}
}

// shutdown has the kernel fail all access to an xfs file system, as after errors of its device.
func shutdown(w *host, path string) {
	w.t.Helper()
	const goingDown, logFlush = 0x8004587d, 1
	f, err := os.Open(path)
	w.must(err)
	w.must(unix.IoctlSetPointerInt(int(f.Fd()), goingDown, logFlush))
	w.must(f.Close())
}

func (w *host) health(path string) []*csispec.VolumeHealth_VolumeHealthEntry {
	w.t.Helper()
	answer, err := w.NodeGetVolumeHealth(w.t.Context(), &csispec.NodeGetVolumeHealthRequest{VolumeId: volume, StagingTargetPath: path})
	w.must(err)
	return answer.GetVolumeHealth().GetHealthStatuses()
}

// TestAnotherDeviceAtThePath checks that a mount of an earlier attachment's device is replaced.
func TestAnotherDeviceAtThePath(t *testing.T) {
	w := newHost(t, node.Config{})
	w.attach(1, 64*mib)
	path, err := w.stage(1, capability("ext4"))
	w.must(err)
	w.must(os.Remove(filepath.Join(w.root, "dev/disk/azure/scsi1/lun1")))
	second := w.attach(1, 64*mib)
	_, err = w.stage(1, capability("ext4"))
	w.must(err)
	if source := w.run("findmnt", "--noheadings", "--output", "SOURCE", path); source != second {
		t.Errorf("%s is mounted, want %s", source, second)
	}
}

// TestFileSystemOfPods checks that a file system that a pod names is no path of a program, and reaches no device.
func TestFileSystemOfPods(t *testing.T) {
	for _, fsType := range []string{"../../tmp/x", "ext4 -F", "ext4\n"} {
		c := capability("ext4")
		c.GetMount().FsType = fsType
		if err := (node.Linux{}).Check(nil, c); err == nil || !strings.Contains(err.Error(), "want ext2") {
			t.Errorf("fsType %q of the capability: %v", fsType, err)
		}
		if err := (node.Linux{}).Check(map[string]string{"FSType": fsType}, capability("ext4")); err == nil {
			t.Errorf("fsType %q of the volume context is allowed", fsType)
		}
	}
}
