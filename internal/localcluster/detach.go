package localcluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"kaz/internal/host/process"
)

// Detach starts `kaz local up` with args in a process of its own, copies its progress to Out, and returns when the cluster
// is up. If ctx ends before that, Detach stops the process.
func Detach(ctx context.Context, o UpOptions, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	if owner, running := process.Owner(dir); running {
		return fmt.Errorf("directory %s is %w by process %d (%s); stop it with: kaz local down --dir %s", dir, process.ErrInUse,
			owner.PID, owner.Path, dir)
	}
	logPath := filepath.Join(dir, "logs", "up.log")
	if err := os.MkdirAll(filepath.Dir(logPath), 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	up := exec.Command(o.Program, args...)
	up.Stdout, up.Stderr = log, log
	up.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the terminal
	if err := up.Start(); err != nil {
		return fmt.Errorf("start %s: %w", o.Program, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	return followUp(ctx, dir, logPath, up.Process, ended, o.Out)
}

// followUp copies the output of the process until the cluster is up.
func followUp(ctx context.Context, dir, logPath string, up *os.Process, ended <-chan error, out io.Writer) error {
	log, err := os.Open(logPath)
	if err != nil {
		return err
	}
	defer log.Close()
	lines := bufio.NewReader(log)
	copyLines := func() { _, _ = io.Copy(out, lines) } // the terminal may be closed
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		copyLines()
		if s, err := ReadStatus(dir); err == nil && s.UpPID == up.Pid {
			copyLines()
			return nil
		}
		select {
		case err := <-ended:
			copyLines()
			return errors.Join(fmt.Errorf("the cluster did not come up; the log is %s", logPath), withoutStatus(err))
		case <-ctx.Done():
			err := up.Signal(syscall.SIGTERM)
			return errors.Join(errInterrupted, err, withoutStatus(<-ended))
		case <-tick.C:
		}
	}
}

// withoutStatus returns nil for the exit status of a program that has printed its error, else the error.
func withoutStatus(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return nil
	}
	return err
}
