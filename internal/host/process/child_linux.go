package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes returns the attributes of a child with its own process group. The kernel kills the child when the thread that
// started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit blocks until the child has ended, and leaves it as a zombie, so that no other process gets its pid.
func awaitExit(pid int) {
	var info unix.Siginfo
	for errors.Is(unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// signalGroup signals every process of a group. The caller ensures that the leader is not reaped.
func signalGroup(leader int, s syscall.Signal) error { return syscall.Kill(-leader, s) }

// lockFile locks a file until its last descriptor is closed, together with others if the lock is shared. It returns false if another
// program holds a lock that does not allow it.
func lockFile(fd uintptr, shared bool) (bool, error) {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	err := unix.Flock(int(fd), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
