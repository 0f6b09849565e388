package process

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
)

// Detached is a program to run in a process that outlives this one and its terminal.
type Detached struct {
	// What is the name in errors of what starts, such as "the cluster".
	What string
	Path string
	Args []string
	// LogFile receives standard error, and with LogsOutput standard output as well. It begins anew.
	LogFile    string
	LogsOutput bool
	// Progress receives the log until the program is ready.
	Progress io.Writer
	// Ready reports whether the process has done what it was started for.
	Ready func(pid int) bool
	// Interrupted is the error if the context ends before the program is ready.
	Interrupted error
}

// readyPoll is the interval at which Detach calls Ready.
const readyPoll = 50 * time.Millisecond

// Detach starts a program and returns when it is ready. If ctx ends before that, Detach stops the process.
func Detach(ctx context.Context, d Detached) error {
	if err := os.MkdirAll(filepath.Dir(d.LogFile), 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(d.LogFile, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(d.Path, d.Args...)
	command.Stderr = log
	if d.LogsOutput {
		command.Stdout = log
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the terminal
	if err := command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", d.Path, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	return d.follow(ctx, command.Process, ended)
}

// follow copies the log of the process until it is ready.
func (d Detached) follow(ctx context.Context, process *os.Process, ended <-chan error) error {
	log, err := os.Open(d.LogFile)
	if err != nil {
		return err
	}
	defer log.Close()
	lines := bufio.NewReader(log)
	copyLines := func() { _, _ = io.Copy(d.Progress, lines) } // the terminal may be closed
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		copyLines()
		if d.Ready(process.Pid) {
			copyLines()
			return nil
		}
		select {
		case err := <-ended:
			copyLines()
			return errors.Join(fmt.Errorf("%s did not come up; the log is %s", d.What, d.LogFile), withoutStatus(err, false))
		case <-ctx.Done():
			err := process.Signal(syscall.SIGTERM)
			return errors.Join(d.Interrupted, err, withoutStatus(<-ended, true))
		case <-tick.C:
		}
	}
}

// withoutStatus returns nil for the exit status of a program that has printed its error, and for the end by a signal that Detach sent,
// else the error.
func withoutStatus(err error, signalled bool) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && (signalled || exit.Exited()) {
		return nil
	}
	return err
}
