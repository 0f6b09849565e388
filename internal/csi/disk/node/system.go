package node

import (
	"context"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"kaz/internal/csi/mount"
)

// System is what the node service needs from the operating system. A device is a text that only the system reads: a path
// on Linux, the number of a disk on Windows.
type System interface {
	Disks
	Volumes
}

// Disks finds the disks that are attached to the machine.
type Disks interface {
	// Find waits for the device of a LUN.
	Find(ctx context.Context, lun int) (device string, err error)
	// Partition waits for a partition of a device.
	Partition(ctx context.Context, device, number string) (string, error)
	// Size returns the size of a device in bytes.
	Size(ctx context.Context, device string) (int64, error)
	// Grown waits until the device is wanted bytes, and returns its size, which is less if that took too long. The error of
	// a device that cannot grow has the code FailedPrecondition.
	Grown(ctx context.Context, device string, wanted int64) (int64, error)
	// Tune writes the settings of a device.
	Tune(device string, settings map[string]string) error
}

// Volumes mounts file systems of disks.
type Volumes interface {
	// Check returns why the system cannot have a volume, nil if it can.
	Check(volumeContext map[string]string, capability *csispec.VolumeCapability) error
	// Stage mounts the file system of a device at a path. It formats a device without content, and grows the file system
	// to the device.
	Stage(ctx context.Context, device, path, fsType string, options []string) error
	// Mounted reports whether something is mounted at a path. MountedWell also unmounts what cannot be read.
	Mounted(path string) (bool, error)
	MountedWell(path string) (bool, error)
	// Bind shows a staged volume, or a device, at a second path.
	Bind(source, target string, options []string) error
	// Unmount unmounts a path and removes it. A path that does not exist is no error.
	Unmount(ctx context.Context, path string) error
	// Others returns the paths at which what is at a path is mounted too.
	Others(path string) ([]string, error)
	// Device returns the device that is mounted at a path.
	Device(ctx context.Context, path string) (string, error)
	// Grow grows the file system of a device, which is mounted at a path, to the device.
	Grow(ctx context.Context, device, path string) error
	// Usage returns how much of the file system at a path is used.
	Usage(path string) ([]*csispec.VolumeUsage, error)
	// Health returns what is wrong with the mount at a path, nil if nothing is.
	Health(path string) (*mount.Fault, error)
}
