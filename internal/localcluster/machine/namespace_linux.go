package machine

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// enter moves the current thread, which the caller has locked, into a network namespace. The returned function moves it
// back.
func enter(path string) (leave func(), err error) {
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	other, err := os.Open(path)
	if err != nil {
		own.Close()
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	defer other.Close()
	if err := unix.Setns(int(other.Fd()), unix.CLONE_NEWNET); err != nil {
		own.Close()
		return nil, fmt.Errorf("enter network namespace %s: %w", path, err)
	}
	return func() {
		_ = unix.Setns(int(own.Fd()), unix.CLONE_NEWNET) // the thread was in it before
		own.Close()
	}, nil
}
