package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// maxLogSize is the size above which the next run renames the log to <file>.1 and begins a new one.
const maxLogSize = 64 << 20

// Process is a child that runs or has ended.
type Process struct {
	spec   Spec
	record Record
	logAt  int64 // offset in the log at which this run begins

	done chan struct{}
	err  error // set before done is closed

	mu      sync.Mutex
	reaped  bool // the pid can belong to another process: never signal it again
	stopped bool // Stop was called
}

// Name returns the name in the spec.
func (p *Process) Name() string { return p.spec.Name }

// PID returns the process id.
func (p *Process) PID() int { return p.record.PID }

// LogFile returns the file with the output.
func (p *Process) LogFile() string { return p.spec.LogFile }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the process ended, with the end of its log. It is nil while the process runs, after exit status 0, and
// after Stop.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Tail returns the last lines of this run's log.
func (p *Process) Tail(lines int) string { return tail(p.spec.LogFile, p.logAt, lines) }

// start runs the child. Its goroutine keeps the thread until the child has ended. The kernel sends the parent-death signal
// at the end of the thread that created the child.
func start(dir string, spec Spec, order int) (*Process, error) {
	p := &Process{spec: spec, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd, err := p.launch(dir, order)
		started <- err
		if err == nil {
			p.reap(dir, cmd)
		}
	}()
	return p, <-started
}

func (p *Process) launch(dir string, order int) (*exec.Cmd, error) {
	out, at, err := openLog(p.spec.LogFile)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.spec.Name, err)
	}
	defer out.Close()
	p.logAt = at
	cmd := exec.Command(p.spec.Path, p.spec.Args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = p.spec.Dir, p.spec.Env, out, out, attributes()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.spec.Name, err)
	}
	p.record = Record{Name: p.spec.Name, PID: cmd.Process.Pid, Order: order, Path: p.spec.Path, LogFile: p.spec.LogFile}
	boot, began, err := identify(cmd.Process.Pid)
	if err != nil && !errors.Is(err, errGone) { // reap reports a child that has ended already
		return nil, p.abandon(cmd, err)
	}
	p.record.Boot, p.record.Started = boot, began
	if err := writeRecord(dir, p.record); err != nil {
		return nil, p.abandon(cmd, err)
	}
	return cmd, nil
}

// abandon kills a child that failed to start.
func (p *Process) abandon(cmd *exec.Cmd, reason error) error {
	_ = signalGroup(cmd.Process.Pid, syscall.SIGKILL)
	_ = cmd.Wait()
	return fmt.Errorf("start %s: %w", p.spec.Name, reason)
}

// reap waits for the child, kills the rest of its process group, and closes done.
func (p *Process) reap(dir string, cmd *exec.Cmd) {
	awaitExit(cmd.Process.Pid)
	p.mu.Lock()
	_ = signalGroup(cmd.Process.Pid, syscall.SIGKILL)
	err := cmd.Wait()
	p.reaped = true
	stopped := p.stopped
	p.mu.Unlock()
	removeRecord(dir, p.record)
	if !stopped && err != nil {
		p.err = p.ended(err)
	}
	close(p.done)
}

func (p *Process) ended(err error) error {
	last := p.Tail(12)
	if last == "" {
		return fmt.Errorf("%s ended (%w) without output; its log is %s", p.spec.Name, err, p.spec.LogFile)
	}
	return fmt.Errorf("%s ended (%w); its log is %s and ends with:\n%s", p.spec.Name, err, p.spec.LogFile, last)
}

// Stop sends SIGTERM to the process, and kills it after grace or when ctx is done. It returns when the process has ended.
func (p *Process) Stop(ctx context.Context, grace time.Duration) {
	p.signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	p.signal(syscall.SIGKILL)
	<-p.done
}

// Reload sends SIGHUP to the process and its children, by which servers read their configuration again.
func (p *Process) Reload() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = signalGroup(p.record.PID, syscall.SIGHUP)
	}
}

func (p *Process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if !p.reaped {
		_ = signalGroup(p.record.PID, s)
	}
}

// wasStopped reports whether Stop was called.
func (p *Process) wasStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// openLog opens a log for appending, and returns its size.
func openLog(file string) (*os.File, int64, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, 0, err
	}
	if info, err := os.Stat(file); err == nil && info.Size() > maxLogSize {
		if err := os.Rename(file, file+".1"); err != nil {
			return nil, 0, err
		}
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}
