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

// Dir is the directory of named namespaces, as ip uses it.
const Dir = "/run/netns"

// Path returns the path of a namespace: a name is in [Dir], and "" is the namespace of this process.
func Path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(Dir, name)
}

// Create creates an empty network namespace with a name.
func Create(name string) error {
	if err := shareDir(); err != nil {
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
		// The thread stays locked, so it ends with the goroutine and no other goroutine runs in the namespace.
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

// shareDir makes [Dir] a shared mount, as `ip netns add` does. If ip did so later, its new mount would hide those of the
// namespaces that exist: their files could never be deleted.
func shareDir() error {
	if err := os.MkdirAll(Dir, 0o755); err != nil {
		return err
	}
	dir, err := os.Open(Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	// ip has the same lock.
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", Dir, err)
	}
	err = unix.Mount("", Dir, "", unix.MS_SHARED|unix.MS_REC, "")
	if errors.Is(err, unix.EINVAL) { // it is no mount point yet
		if err = unix.Mount(Dir, Dir, "", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = unix.Mount("", Dir, "", unix.MS_SHARED|unix.MS_REC, "")
		}
	}
	if err != nil {
		return fmt.Errorf("share the mount %s: %w", Dir, err)
	}
	return nil
}

// Remove removes the name of a namespace. The kernel deletes the namespace when no process and no socket uses it.
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

// Identity distinguishes a namespace from earlier namespaces with its name, as long as these still have a socket.
func Identity(name string) (string, error) {
	var info unix.Stat_t
	if err := unix.Stat(Path(name), &info); err != nil {
		return "", fmt.Errorf("network namespace %s: %w", name, err)
	}
	return fmt.Sprint(info.Ino), nil
}

// Do calls f in a network namespace. Sockets and programs that f creates stay in the namespace. Goroutines that f
// starts are not in it.
func Do(name string, f func() error) error {
	if name == "" {
		return f()
	}
	result := make(chan error, 1)
	go func() { result <- inside(Path(name), f) }()
	return <-result
}

// inside runs on its own goroutine. The thread ends with it if it cannot return to its namespace.
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

// here returns a path of the caller's namespace, valid until release. The path of the process is not enough: it leads
// to the namespace of the first thread, which may be another one for a while.
func here() (path string, release func()) {
	runtime.LockOSThread()
	return fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid()), runtime.UnlockOSThread
}

// Mark returns the packet mark with which a connection was accepted, 0 for none.
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

// WithMark sets the mark of a dialer's packets.
func WithMark(mark uint32) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, int(mark)) })
		return errors.Join(err, failed)
	}
}
