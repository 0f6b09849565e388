package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Dir is where namespaces with a name are, for ip as for everybody.
const Dir = "/run/netns"

// Path is the path of a namespace: a name is one in [Dir], "" that of this process.
func Path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(Dir, name)
}

// Create makes an empty network namespace with a name.
func Create(name string) error {
	if err := os.MkdirAll(Dir, 0o755); err != nil {
		return fmt.Errorf("create network namespace %s: %w", name, err)
	}
	path := Path(name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return fmt.Errorf("create network namespace %s: %w", name, err)
	}
	_ = f.Close() // nothing was written
	done := make(chan error)
	go func() {
		// The thread is never unlocked, so it ends with the goroutine and nobody else
		// gets into the namespace.
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, "")
		}
		done <- err
	}()
	if err := <-done; err != nil {
		return errors.Join(fmt.Errorf("create network namespace %s: %w", name, err), os.Remove(path))
	}
	return nil
}

// Remove takes the name from a namespace, which ends when nobody is in it any more.
func Remove(name string) error {
	path := Path(name)
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove network namespace %s: %w", name, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove network namespace %s: %w", name, err)
	}
	return nil
}

// Do calls f in a network namespace. Sockets that f makes, and programs that it
// starts, are in the namespace for good; goroutines that it starts are not.
func Do(name string, f func() error) error {
	if name == "" {
		return f()
	}
	result := make(chan error, 1)
	go func() { result <- inside(Path(name), f) }()
	return <-result
}

// inside runs on a goroutine of its own, whose thread is given up when it cannot be
// brought back.
func inside(path string, f func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("network namespace %s: %w", path, err)
	}
	defer home.Close()
	there, err := os.Open(path)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("network namespace %s: %w", path, err)
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter network namespace %s: %w", path, err)
	}
	err = f()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back == nil {
		runtime.UnlockOSThread()
	}
	return err
}

// here is a path of the namespace that the caller is in, until release. That of the
// process is no such path: it is that of its first thread, which may be elsewhere for
// a while.
func here() (path string, release func()) {
	runtime.LockOSThread()
	return fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid()), runtime.UnlockOSThread
}

// Mark is the packet mark with which a connection was accepted, 0 for none.
func Mark(c syscall.Conn) uint32 {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	mark := 0
	err = raw.Control(func(fd uintptr) { mark, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK) })
	if err != nil {
		return 0
	}
	return uint32(mark)
}

// WithMark makes a dialer's packets carry a mark.
func WithMark(mark uint32) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, int(mark)) })
		return errors.Join(err, failed)
	}
}
