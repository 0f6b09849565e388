package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Host is the host's side of the tests of a package: a process of its own, in new network, process and mount namespaces.
// Servers that it starts end with it, and no other process of the machine can connect to them.
type Host struct {
	Dir string // a directory of the host for the servers; the guest can read it

	ends []func() error
}

// AtEnd has a function called after the tests. The last function is called first.
func (h *Host) AtEnd(f func() error) { h.ends = append(h.ends, f) }

func (h *Host) close() error {
	var all []error
	for _, end := range slices.Backward(h.ends) {
		all = append(all, end())
	}
	return errors.Join(all...)
}

// newHost makes the host's side in the namespaces of this process, which are new.
func newHost(ctx context.Context) (*Host, error) {
	if err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, ""),
	); err != nil {
		return nil, fmt.Errorf("mount /proc: %w", err)
	}
	dir, err := os.MkdirTemp("", "kaz-host-")
	if err != nil {
		return nil, err
	}
	h := &Host{Dir: dir}
	h.AtEnd(func() error { return os.RemoveAll(dir) })
	if err := Link(ctx); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// asHost runs this test binary again, as the host. Everything that the host starts ends with it, and it ends with this process.
func asHost() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The kernel ends the child with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, self, append(os.Args[1:], "-guest.host")...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	const patience = 10 * time.Second
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, patience
	if err := cmd.Start(); err != nil {
		return &UnavailableError{Reason: "new namespaces: " + err.Error()}
	}
	err = cmd.Wait()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return &ExitError{Code: max(failed.ExitCode(), 1)}
	}
	return err
}
