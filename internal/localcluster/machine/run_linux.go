package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// shutdownGrace is the time that the programs in a machine get for their shutdown.
const shutdownGrace = 5 * time.Second

// Run runs a machine until it ends or ctx is done, which shuts it down. The command line guest runs [Boot] with the same
// spec.
func Run(ctx context.Context, s Spec, guest ...string) error { return run(ctx, s.Place, 0, guest) }

// RunAt runs a machine until it ends or ctx is done. The command line guest runs its first process, which sees only its own
// control groups.
func RunAt(ctx context.Context, p Place, guest ...string) error {
	return run(ctx, p, unix.CLONE_NEWCGROUP, guest)
}

func run(ctx context.Context, p Place, more uintptr, guest []string) error {
	g, err := enterCgroup(p.Cgroup, more&unix.CLONE_NEWCGROUP != 0)
	if err != nil {
		return fmt.Errorf("cgroup of %s: %w", p.Name, err)
	}
	return errors.Join(runGuest(ctx, p, more, guest), g.leave())
}

// runGuest starts the machine's first process in namespaces of its own and waits for its end.
func runGuest(ctx context.Context, s Place, more uintptr, command []string) error {
	// The network namespace and the parent-death signal belong to the thread.
	runtime.LockOSThread() // never unlocked: no other goroutine can use the thread
	leave, err := enter(s.Namespace)
	if err != nil {
		return err
	}
	defer leave()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdout, os.Stderr, os.Environ()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = shutdownGrace
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | more,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	pid := filepath.Join(s.Dir, pidFile)
	if err := os.WriteFile(pid, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	defer os.Remove(pid)
	err = cmd.Wait()
	if ctx.Err() != nil {
		return nil // an orderly shutdown
	}
	if err != nil {
		return fmt.Errorf("%s ended: %w", s.Name, err)
	}
	return nil
}

// pidFile is the file on the disk of a running machine with the process id of its first process.
const pidFile = "first.pid"

// shutdownSignal tells the first process of a machine to shut the machine down.
const shutdownSignal = unix.SIGPWR

// ShutDown tells the machine with a disk to shut down: its load balancers and the other nodes notice, its pods end, and
// then the machine. That takes at most [ShutdownTime].
func ShutDown(disk string) error {
	pid, err := firstProcess(disk)
	if err != nil {
		return err
	}
	return unix.Kill(pid, shutdownSignal)
}

// ShutdownTime is the longest time that a machine needs for its shutdown.
const ShutdownTime = probesNotice + evictionTime + longestInhibition + podsReported + shutdownGrace

// firstProcess returns the process id of the first process of the machine with a disk.
func firstProcess(disk string) (int, error) {
	text, err := os.ReadFile(filepath.Join(disk, pidFile))
	if errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("machine %s is off", filepath.Base(disk))
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}

// Enter returns a process that runs a command in the machine with a disk.
func Enter(ctx context.Context, disk string, command ...string) (*exec.Cmd, error) {
	pid, err := firstProcess(disk)
	if err != nil {
		return nil, err
	}
	args := append([]string{"--target", strconv.Itoa(pid), "--mount", "--uts", "--ipc", "--net", "--pid"}, command...)
	cmd := exec.CommandContext(ctx, "nsenter", args...)
	// The user's proxy and home directory do not exist inside.
	cmd.Env = append(environment(), "TERM="+os.Getenv("TERM"))
	return cmd, nil
}
