package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"kaz/internal/csi/disk"
	"kaz/internal/csi/mount"
	plandisk "kaz/internal/plan/disk"
)

// Linux is a machine with Linux.
type Linux struct {
	// Mounts formats and mounts.
	*mount.Mounts
	Devices
}

var _ System = Linux{}

// Check returns why Linux cannot mount a volume with its file system and mount options, nil if it can.
func (l Linux) Check(volumeContext map[string]string, c *csispec.VolumeCapability) error {
	if c.GetBlock() != nil {
		return nil
	}
	return plandisk.CheckFileSystem(cmp.Or(disk.Value(volumeContext, "fsType"), c.GetMount().GetFsType()), c.GetMount().GetMountFlags())
}

// Size returns the size of a device in bytes.
func (l Linux) Size(_ context.Context, device string) (int64, error) { return mount.Size(device) }

// Stage mounts a device at a path, and grows the file system to the device. The default of fsType is ext4.
func (l Linux) Stage(_ context.Context, device, path, fsType string, options []string) error {
	fsType = cmp.Or(fsType, "ext4")
	options = slices.Clone(options)
	if fsType == "xfs" && !slices.Contains(options, "nouuid") {
		options = append(options, "nouuid") // a copy of a disk has the UUID of its source
	}
	grows := !slices.Contains(options, "ro") && !slices.Contains(options, mount.DirectMount)
	stage := func() error { return l.Mounts.Stage(device, path, fsType, options) }
	if err := stage(); err != nil {
		if holders := l.holders(device); len(holders) > 0 {
			return fmt.Errorf("device %s is in use by %s; if that is multipath, exclude Azure's disks in multipath.conf: %w",
				device, strings.Join(holders, ", "), err)
		}
		return err
	}
	if !grows {
		return nil
	}
	return l.growStaged(device, path, stage)
}

// growStaged grows the file system of a device that is mounted at the staging path. Where the kernel does not let it grow
// a mounted one, it unmounts the device meanwhile: no pod has it yet. A device that is mounted elsewhere too stays as it is.
func (l Linux) growStaged(device, path string, stage func() error) error {
	denied := l.Mounts.Grow(device, path)
	if denied == nil || !l.IsExt(device) {
		return denied
	}
	if others, err := l.Others(path); err != nil || len(others) > 0 {
		return denied
	}
	if err := l.Mounts.Unmount(path); err != nil {
		return errors.Join(denied, err)
	}
	grown := l.GrowUnmounted(device)
	if err := stage(); err != nil || grown != nil {
		return errors.Join(denied, grown, err)
	}
	return nil
}

// Unmount unmounts a path and removes it. A path that does not exist is no error.
func (l Linux) Unmount(_ context.Context, path string) error { return l.Mounts.Unmount(path) }

// Device returns the device that is mounted at a path.
func (l Linux) Device(_ context.Context, path string) (string, error) { return l.Mounts.Device(path) }

// Grow grows the file system of a device to the device.
func (l Linux) Grow(_ context.Context, device, path string) error { return l.Mounts.Grow(device, path) }

// Usage returns the used and free bytes and inodes of the file system at a path.
func (l Linux) Usage(path string) ([]*csispec.VolumeUsage, error) { return mount.Usage(path) }

// Health returns what is wrong with the mount at a path, nil if nothing is.
func (l Linux) Health(path string) (*mount.Fault, error) { return mount.Check(path) }
