package machine

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// enter puts the current thread, which the caller has locked, into a network namespace. The returned function leaves
// it again.
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
		_ = unix.Setns(int(own.Fd()), unix.CLONE_NEWNET) // where it came from it can go
		own.Close()
	}, nil
}

// inside calls f in a network namespace. A socket that f opens belongs to that namespace for good.
func inside[T any](path string, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		var r result
		leave, err := enter(path)
		if err != nil {
			r.err = err
		} else {
			r.value, r.err = f()
			leave()
		}
		done <- r
	}()
	r := <-done
	return r.value, r.err
}

// Dial opens a connection from within a network namespace to an IP address and port.
func Dial(ctx context.Context, namespace, network, address string) (net.Conn, error) {
	return inside(namespace, func() (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	})
}

// listen listens within a network namespace.
func listen(namespace, address string) (net.Listener, error) {
	return inside(namespace, func() (net.Listener, error) {
		var c net.ListenConfig
		return c.Listen(context.Background(), "tcp", address)
	})
}
