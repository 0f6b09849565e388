package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes put a child in a process group of its own and make the kernel kill it when the thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit blocks until the child has ended and leaves it a zombie, so that its pid and process group stay its own.
func awaitExit(pid int) {
	var info unix.Siginfo
	for errors.Is(unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// signalGroup signals every process of a group. The caller makes sure that the leader is not reaped yet.
func signalGroup(leader int, s syscall.Signal) error { return syscall.Kill(-leader, s) }

// lockFile takes an exclusive lock that the kernel gives up with the last descriptor; false when another holds it.
func lockFile(fd uintptr) (bool, error) {
	err := unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
