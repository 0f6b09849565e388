//go:build linux

package node_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/csi/disk/node"
	"kaz/internal/csi/mount"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// volume is the id of the volume in the tests.
const volume = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/data"

const (
	mib = 1 << 20
	gib = 1 << 30
)

// host is a machine with a node service. Its disks are loop devices, with links in a directory of the test.
type host struct {
	*node.Node
	t    *testing.T
	dir  string // the directories of pods
	root string // has dev and sys
}

// newHost returns a machine with a node service that has the configuration.
func newHost(t *testing.T, c node.Config) *host {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loop devices and mounts need root")
	}
	for _, program := range []string{"mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "blkid", "losetup"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	dir := t.TempDir()
	w := &host{t: t, dir: dir, root: filepath.Join(dir, "root")}
	w.must(os.MkdirAll(filepath.Join(w.root, "dev/disk/azure/scsi1"), 0o750))
	system, _ := c.System.(node.Linux)
	if system.Within == 0 {
		system.Within = 10 * time.Second
	}
	if system.Mounts == nil {
		system.Mounts = mount.New(2)
	}
	system.Root = w.root
	c.System = system
	w.Node = node.New(c)
	t.Cleanup(func() { unmountBelow(t, dir) })
	return w
}

// unmountBelow unmounts all that a test left.
func unmountBelow(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Error(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, line := range slices.Backward(lines) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir) {
			if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "umount", fields[4]).CombinedOutput(); err != nil {
				t.Errorf("unmount %s: %v: %s", fields[4], err, out)
			}
		}
	}
}

func (w *host) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// run runs a program and returns its output.
func (w *host) run(name string, args ...string) string {
	w.t.Helper()
	out, err := exec.CommandContext(w.t.Context(), name, args...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// device returns a new loop device with a file of the size.
func (w *host) device(size int64) (device, file string) {
	w.t.Helper()
	f, err := os.CreateTemp(w.dir, "disk-*.img")
	w.must(err)
	w.must(f.Truncate(size))
	w.must(f.Close())
	return w.loop(f.Name()), f.Name()
}

// loop returns a new loop device with a file.
func (w *host) loop(file string) string {
	w.t.Helper()
	device := w.run("losetup", "--find", "--show", file)
	w.t.Cleanup(func() {
		if err := exec.CommandContext(context.WithoutCancel(w.t.Context()), "losetup", "--detach", device).Run(); err != nil {
			w.t.Errorf("detach %s: %v", device, err)
		}
	})
	w.t.Cleanup(func() { unmountBelow(w.t, w.dir) })
	return device
}

// attach attaches a blank disk of the size at a LUN, and returns its device.
func (w *host) attach(lun int, size int64) string {
	w.t.Helper()
	device, _ := w.device(size)
	w.link(lun, device)
	return device
}

func (w *host) link(lun int, device string) {
	w.t.Helper()
	w.must(os.Symlink(device, filepath.Join(w.root, "dev/disk/azure/scsi1", "lun"+strconv.Itoa(lun))))
}

// path returns a path in the machine. Directories above it exist.
func (w *host) path(name string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, "kubelet", name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o750))
	return path
}

// capability is the capability of a volume with a file system, or of a block volume if fsType is "block".
func capability(fsType string, flags ...string) *csispec.VolumeCapability {
	c := &csispec.VolumeCapability{
		AccessMode: &csispec.VolumeCapability_AccessMode{Mode: csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{FsType: fsType, MountFlags: flags}},
	}
	if fsType == "block" {
		c.AccessType = &csispec.VolumeCapability_Block{Block: &csispec.VolumeCapability_BlockVolume{}}
	}
	return c
}

// staging is a request that stages the disk of a LUN.
func (w *host) staging(lun int, c *csispec.VolumeCapability, volumeContext ...string) *csispec.NodeStageVolumeRequest {
	return &csispec.NodeStageVolumeRequest{
		VolumeId: volume, StagingTargetPath: w.path(fmt.Sprintf("staging-%d", lun)), VolumeCapability: c,
		PublishContext: map[string]string{"LUN": strconv.Itoa(lun)}, VolumeContext: pairs(volumeContext...),
	}
}

func pairs(all ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(all); i += 2 {
		m[all[i]] = all[i+1]
	}
	return m
}

// stage stages the disk of a LUN and returns its staging path.
func (w *host) stage(lun int, c *csispec.VolumeCapability, volumeContext ...string) (string, error) {
	r := w.staging(lun, c, volumeContext...)
	_, err := w.NodeStageVolume(w.t.Context(), r)
	return r.GetStagingTargetPath(), err
}

// publish publishes the disk of a LUN at a path.
func (w *host) publish(lun int, c *csispec.VolumeCapability, target string, readOnly bool) error {
	_, err := w.NodePublishVolume(w.t.Context(), &csispec.NodePublishVolumeRequest{
		VolumeId: volume, StagingTargetPath: w.path(fmt.Sprintf("staging-%d", lun)), TargetPath: target, VolumeCapability: c,
		PublishContext: map[string]string{"LUN": strconv.Itoa(lun)}, Readonly: readOnly,
	})
	return err
}

func (w *host) unstage(path string) error {
	_, err := w.NodeUnstageVolume(w.t.Context(), &csispec.NodeUnstageVolumeRequest{VolumeId: volume, StagingTargetPath: path})
	return err
}

func (w *host) unpublish(path string) error {
	_, err := w.NodeUnpublishVolume(w.t.Context(), &csispec.NodeUnpublishVolumeRequest{VolumeId: volume, TargetPath: path})
	return err
}

// format returns the content of a device as blkid names it, "" for none.
func (w *host) format(device string) string {
	w.t.Helper()
	out, err := exec.CommandContext(w.t.Context(), "blkid", "-p", "-s", "TYPE", "-o", "value", device).Output()
	if err != nil && len(out) > 0 {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// options returns what the kernel has mounted at a path: the file system, and the options of the mount, "" for nothing.
func (w *host) options(path string) (fsType, options string) {
	w.t.Helper()
	text, err := os.ReadFile("/proc/mounts")
	w.must(err)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); fields[1] == path {
			fsType, options = fields[2], fields[3]
		}
	}
	return fsType, options
}

// want fails the test if err has another code or lacks a text.
func want(t *testing.T, what string, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want code %s and %q", what, err, code, text)
	}
}

// canGrow reports whether a mounted file system can grow here: the kernel lets only some processes grow ext.
func canGrow(t *testing.T, fsType string) bool {
	t.Helper()
	const sysResource = 24
	if !strings.HasPrefix(fsType, "ext") {
		return true
	}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "CapEff:"); ok {
			all, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return err == nil && all&(1<<sysResource) != 0
		}
	}
	return false
}
