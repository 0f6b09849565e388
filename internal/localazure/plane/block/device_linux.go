package block

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// device is a loop device with a file. The kernel frees it when the last program closes it, so that nothing stays when
// this process is killed.
type device struct {
	path string
	file *os.File
}

// openDevice returns the loop device with a file. A device that a mount still uses is used again, because two devices of
// a file would not see each other's writes.
func openDevice(file string) (*device, error) {
	if d, err := findDevice(file); d != nil || err != nil {
		return d, err
	}
	backing, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = backing.Close() }() // the device has a reference of its own
	const tries = 16                       // another process may take the free number first
	for range tries {
		number, err := freeNumber()
		if err != nil {
			return nil, err
		}
		d, err := configure(number, backing)
		if !errors.Is(err, unix.EBUSY) {
			return d, err
		}
	}
	return nil, errors.New("all free loop devices are taken by other processes")
}

// findDevice returns the loop device that has a file, nil without one.
func findDevice(file string) (*device, error) {
	names, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil || strings.TrimSuffix(string(text), "\n") != file { // the device may be freed now
			continue
		}
		path := "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(name)))
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		d := &device{path: path, file: f}
		if again, err := os.ReadFile(name); err != nil || string(again) != string(text) { // it was freed before the opening
			return nil, d.close()
		}
		return d, d.resize()
	}
	return nil, nil
}

func freeNumber() (int, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		err = fmt.Errorf("ask for a free loop device: %w", err)
	}
	return number, errors.Join(err, control.Close())
}

// configure gives a loop device its file. The device node is made if nothing else makes it, as in containers.
func configure(number int, backing *os.File) (*device, error) {
	const loopMajor, mode = 7, unix.S_IFBLK | 0o660
	path := fmt.Sprintf("/dev/loop%d", number)
	if err := unix.Mknod(path, mode, int(unix.Mkdev(loopMajor, uint32(number)))); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	config := unix.LoopConfig{Fd: uint32(backing.Fd())}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
	if err := unix.IoctlLoopConfigure(int(f.Fd()), &config); err != nil {
		return nil, errors.Join(fmt.Errorf("configure %s: %w", path, err), f.Close())
	}
	return &device{path: path, file: f}, nil
}

// resize has the kernel read the size of the file again.
func (d *device) resize() error {
	_, err := unix.IoctlRetInt(int(d.file.Fd()), unix.LOOP_SET_CAPACITY)
	return err
}

// close ends this process' use of the device. The kernel frees it when no mount uses it any more.
func (d *device) close() error { return d.file.Close() }

// cloneFile has the target share the blocks of the source, on file systems that can.
func cloneFile(target, source *os.File) error {
	return unix.IoctlFileClone(int(target.Fd()), int(source.Fd()))
}

// copyData copies the data of the source and leaves its holes.
func copyData(target, source *os.File) error {
	size, err := source.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	for at := int64(0); at < size; {
		data, err := source.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break
		}
		if err != nil {
			return err
		}
		hole, err := source.Seek(data, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if at, err = hole, copyRange(target, source, data, hole-data); err != nil {
			return err
		}
	}
	return target.Truncate(size)
}

func copyRange(target, source *os.File, at, length int64) error {
	if _, err := source.Seek(at, io.SeekStart); err != nil {
		return err
	}
	if _, err := target.Seek(at, io.SeekStart); err != nil {
		return err
	}
	_, err := io.CopyN(target, source, length)
	return err
}
