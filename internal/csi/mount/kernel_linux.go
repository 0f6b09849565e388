package mount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"
	utilexec "k8s.io/utils/exec"
)

const mountinfo = "/proc/self/mountinfo"

// others returns the paths at which what is at a path is mounted too. The library's function takes the last mount in the
// kernel's list that contains the path. That is the wrong one for a device if / comes after /dev.
func others(path string) ([]string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	all, err := mountutils.ParseMountInfo(mountinfo)
	if err != nil {
		return nil, err
	}
	var holder mountutils.MountInfo
	for _, m := range all {
		if mountutils.PathWithinBase(path, m.MountPoint) && len(m.MountPoint) >= len(holder.MountPoint) {
			holder = m
		}
	}
	below, err := filepath.Rel(holder.MountPoint, path)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(holder.Root, below)
	var paths []string
	for _, m := range all {
		if m.MountPoint != path && m.Root == root && m.Major == holder.Major && m.Minor == holder.Minor {
			paths = append(paths, m.MountPoint)
		}
	}
	return paths, nil
}

// Options returns the type and the options of the file system that is mounted at a path, as the kernel shows them. They are empty if
// nothing is mounted there. The file system itself is not asked: its server may not answer.
func Options(path string) (fsType string, options []string, err error) {
	above, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	all, err := mountutils.ParseMountInfo(mountinfo)
	for _, m := range all { // the last one at a path is the one that is seen
		if m.MountPoint == filepath.Join(above, filepath.Base(path)) {
			fsType, options = m.FsType, slices.Concat(m.MountOptions, m.SuperOptions)
		}
	}
	return fsType, options, err
}

// Check returns what is wrong with the mount at a path, nil if nothing is. It returns an error if the path cannot be checked
// for another reason.
func Check(path string) (*Fault, error) {
	if err := Readable(path); mountutils.IsCorruptedMnt(err) {
		return &Fault{Reason: "Unreadable", Message: "the volume cannot be read: " + err.Error(), Lost: true}, nil
	} else if err != nil {
		return nil, err
	}
	all, err := mountutils.ParseMountInfo(mountinfo)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		// The kernel makes a file system read-only after an error, while its mounts stay as they were asked for.
		readOnly := slices.Contains(m.SuperOptions, "ro") || slices.Contains(m.SuperOptions, "emergency_ro")
		if m.MountPoint == path && readOnly && slices.Contains(m.MountOptions, "rw") {
			return &Fault{
				Reason:  "ReadOnlyAfterError",
				Message: "the file system is read-only because of an error; the kernel's log has it",
			}, nil
		}
	}
	return nil, nil
}

// isOf reports whether the file system at a path is that of a device. File systems with several devices, such as btrfs,
// are taken to be.
func isOf(path, device string) (bool, error) {
	var mounted, of unix.Stat_t
	if err := unix.Stat(path, &mounted); err != nil {
		return false, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if err := unix.Stat(device, &of); err != nil {
		return false, &os.PathError{Op: "stat", Path: device, Err: err}
	}
	return unix.Major(mounted.Dev) == 0 || mounted.Dev == of.Rdev, nil
}

// Number returns the number of a device as sysfs writes it, MAJOR:MINOR.
func Number(device string) (string, error) {
	var of unix.Stat_t
	if err := unix.Stat(device, &of); err != nil {
		return "", &os.PathError{Op: "stat", Path: device, Err: err}
	}
	if of.Mode&unix.S_IFMT != unix.S_IFBLK {
		return "", fmt.Errorf("%s is not a block device", device)
	}
	return fmt.Sprintf("%d:%d", unix.Major(of.Rdev), unix.Minor(of.Rdev)), nil
}

// Usage returns the used and free bytes and inodes of the file system at a path.
func Usage(path string) ([]*csispec.VolumeUsage, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return nil, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	block := s.Bsize
	return []*csispec.VolumeUsage{
		{
			Unit: csispec.VolumeUsage_BYTES, Total: int64(s.Blocks) * block, Available: int64(s.Bavail) * block,
			Used: int64(s.Blocks-s.Bfree) * block,
		},
		{Unit: csispec.VolumeUsage_INODES, Total: int64(s.Files), Available: int64(s.Ffree), Used: int64(s.Files - s.Ffree)},
	}, nil
}

// Grow grows the file system of a device to the size of the device.
func (m *Mounts) Grow(device, path string) error {
	format, err := m.tools.GetDiskFormat(device)
	if err != nil {
		return err
	}
	if format == "ext2" { // the library knows ext3 and ext4 only; the program is the same
		output, err := m.tools.Exec.Command("resize2fs", device).CombinedOutput()
		if err != nil {
			return fmt.Errorf("resize2fs %s: %w: %s", device, err, output)
		}
		return nil
	}
	resizer := mountutils.NewResizeFs(m.tools.Exec)
	needed, err := resizer.NeedResize(device, path)
	if err != nil || !needed {
		return err
	}
	_, err = resizer.Resize(device, path)
	return err
}

// GrowUnmounted grows the ext file system of a device to the size of the device while it is not mounted. This needs a full
// check of the file system first. The kernel lets only processes with CAP_SYS_RESOURCE grow a file system that is mounted.
func (m *Mounts) GrowUnmounted(device string) error {
	const corrected = 1 // e2fsck's exit code
	output, err := m.tools.Exec.Command("e2fsck", "-f", "-p", device).CombinedOutput()
	if exit, ok := errors.AsType[utilexec.ExitError](err); err != nil && (!ok || exit.ExitStatus() != corrected) {
		return fmt.Errorf("e2fsck -f -p %s: %w: %s", device, err, output)
	}
	if output, err = m.tools.Exec.Command("resize2fs", device).CombinedOutput(); err != nil {
		return fmt.Errorf("resize2fs %s: %w: %s", device, err, output)
	}
	return nil
}

// IsExt reports whether a device has a file system of the ext family.
func (m *Mounts) IsExt(device string) bool {
	format, err := m.tools.GetDiskFormat(device)
	return err == nil && slices.Contains([]string{"ext2", "ext3", "ext4"}, format)
}
