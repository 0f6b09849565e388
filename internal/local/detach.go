package local

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

	"kaz/internal/local/process"
)

// Detach runs `kaz local up` with args as a process of its own, passes its
// progress on, and returns when the cluster is up. When ctx ends before that, the
// process is told to stop.
func Detach(ctx context.Context, o UpOptions, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	if owner, running := process.Owner(dir); running {
		return fmt.Errorf("directory %s is %w by process %d (%s); stop it with: kaz local down --dir %s", dir, process.ErrInUse, owner.PID, owner.Path, dir)
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
	up.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a terminal that closes does not end it
	if err := up.Start(); err != nil {
		return fmt.Errorf("start %s: %w", o.Program, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	return followUp(ctx, dir, logPath, up.Process, ended, o.Out)
}

// followUp copies what the process writes until the cluster is up.
func followUp(ctx context.Context, dir, logPath string, up *os.Process, ended <-chan error, out io.Writer) error {
	log, err := os.Open(logPath)
	if err != nil {
		return err
	}
	defer log.Close()
	lines := bufio.NewReader(log)
	copyLines := func() { _, _ = io.Copy(out, lines) } // the user's terminal may be gone
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
			return errors.Join(fmt.Errorf("the cluster did not come up, all of it is in %s", logPath), err)
		case <-ctx.Done():
			err := up.Signal(syscall.SIGTERM)
			return errors.Join(ctx.Err(), err, <-ended)
		case <-tick.C:
		}
	}
}
