package mount

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	mountutils "k8s.io/mount-utils"
	utilexec "k8s.io/utils/exec"
)

// Mounts mounts and unmounts volumes. Its methods can be called in parallel, but not two for the same path.
type Mounts struct {
	tools *mountutils.SafeFormatAndMount
}

// New returns the mounts of this machine. At most maxFormat devices are formatted at a time.
func New(maxFormat int) *Mounts {
	// A format that takes longer gives its turn to another one, and goes on.
	const formatTimeout = 5 * time.Minute
	return With(mountutils.NewSafeFormatAndMount(mounter(), utilexec.New(),
		mountutils.WithMaxConcurrentFormat(maxFormat, formatTimeout)))
}

// With returns mounts that use the tools.
func With(tools *mountutils.SafeFormatAndMount) *Mounts { return &Mounts{tools} }

// Mounted reports whether something is mounted at a path. A path that does not exist has nothing.
func (m *Mounts) Mounted(path string) (bool, error) {
	mounted, err := m.tools.IsMountPoint(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return mounted, err
}

// MountedWell reports whether something that can be read is mounted at a path. It unmounts what cannot be read, such as
// the file system of a device that is gone.
func (m *Mounts) MountedWell(path string) (bool, error) {
	mounted, err := m.Mounted(path)
	if err == nil && mounted {
		err = Readable(path)
	}
	if !mountutils.IsCorruptedMnt(err) {
		return mounted, err
	}
	slog.Warn("mount cannot be read; it is unmounted", "path", path, "error", err)
	return false, m.tools.Unmount(path)
}

// Readable returns the error of reading a directory, nil if it can be read. A device or another file is not read.
func Readable(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return err
	}
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	if _, err = directory.Readdirnames(1); errors.Is(err, io.EOF) {
		err = nil
	}
	if closed := directory.Close(); err == nil {
		err = closed
	}
	return err
}

// DirectMount is the mount option for a device that is mounted as it is: neither checked nor formatted.
const DirectMount = "directmount"

// Stage mounts a device at a path, unless it is mounted there. It formats a device without content, and checks the file
// system of any other device before it mounts it.
func (m *Mounts) Stage(device, path, fsType string, options []string) error {
	mounted, err := m.MountedWell(path)
	if err != nil {
		return err
	}
	if mounted {
		if same, err := isOf(path, device); same || err != nil {
			return err
		}
		// The device that is mounted is that of an earlier attachment. Unmounting fails if it is in use.
		slog.Warn("path has another device; it is unmounted", "path", path, "device", device)
		if err := m.tools.Unmount(path); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return err
	}
	if i := slices.Index(options, DirectMount); i >= 0 {
		return m.tools.Mount(device, path, fsType, slices.Delete(slices.Clone(options), i, i+1))
	}
	return m.tools.FormatAndMount(device, path, fsType, options)
}

// Bind shows a directory, or a device or another file, at a second path, unless something is mounted there.
func (m *Mounts) Bind(source, target string, options []string) error {
	mounted, err := m.MountedWell(target)
	if mounted || err != nil {
		return err
	}
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	prepare := makeFile
	if info.IsDir() {
		prepare = makeDirectory
	}
	if err := prepare(target); err != nil {
		return err
	}
	return m.tools.Mount(source, target, "", append([]string{"bind"}, options...))
}

func makeDirectory(path string) error { return os.MkdirAll(path, 0o750) }

func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}

// Unmount unmounts a path and removes it. A path that does not exist is no error.
func (m *Mounts) Unmount(path string) error { return mountutils.CleanupMountPoint(path, m.tools, true) }

// Others returns the paths at which what is at a path is mounted too. The path is a mount point or a device.
func (m *Mounts) Others(path string) ([]string, error) { return others(path) }

// Device returns the device that is mounted at a path.
func (m *Mounts) Device(path string) (string, error) {
	device, _, err := mountutils.GetDeviceNameFromMount(m.tools, path)
	if err == nil && device == "" {
		err = fmt.Errorf("no device is mounted at %s", path)
	}
	return device, err
}

// Size returns the size of a device in bytes.
func Size(device string) (int64, error) {
	f, err := os.Open(device)
	if err != nil {
		return 0, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	return size, errors.Join(err, f.Close())
}

// Fault is what is wrong with a mounted volume.
type Fault struct {
	Reason  string // one word in CamelCase
	Message string
	Lost    bool // the volume cannot be read at all
}
