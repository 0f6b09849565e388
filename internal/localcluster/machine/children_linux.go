package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kaz/internal/pause"
)

// program is a program of a machine.
type program struct {
	name string
	args []string
	log  string // name of the log, the name of the program if empty
}

// children are the child processes of a machine's first process: those that it started, and orphans, which the kernel
// assigns to it.
type children struct {
	mu      sync.Mutex
	started map[int]child // by process id
}

// child is a running program.
type child struct {
	name  string
	ended chan unix.WaitStatus
}

func newChildren() *children { return &children{started: map[int]child{}} }

// reap collects ended children until ctx is done.
func (c *children) reap(ctx context.Context) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		c.collect()
		select {
		case <-ctx.Done():
			return
		case <-ended:
		}
	}
}

func (c *children) collect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if one, ok := c.started[pid]; ok {
			delete(c.started, pid)
			one.ended <- status
		}
	}
}

// start starts a program that writes its output to a file.
func (c *children) start(name, path string, args, env []string, logFile string) (done <-chan unix.WaitStatus, err error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	c.mu.Lock() // collect must not run before the child is in the map
	defer c.mu.Unlock()
	p, err := os.StartProcess(path, append([]string{path}, args...), &os.ProcAttr{
		Env: env, Files: []*os.File{null, out, out}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return nil, err
	}
	pid := p.Pid
	_ = p.Release()
	ended := make(chan unix.WaitStatus, 1)
	c.started[pid] = child{name: name, ended: ended}
	return ended, nil
}

// endAll stops all children within grace, containerd last, as an init system does. Otherwise the kubelet would report a
// node that is not ready, and cluster components would react to that during a shutdown.
func (c *children) endAll(grace time.Duration) {
	c.end(grace*3/4, func(c child) bool { return c.name != Containerd })
	c.end(grace/4, func(child) bool { return true })
}

// end sends SIGTERM to the selected children and waits for them, at most grace.
func (c *children) end(grace time.Duration, which func(child) bool) {
	c.mu.Lock()
	for pid, one := range c.started {
		if which(one) {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	}
	c.mu.Unlock()
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		c.collect()
		c.mu.Lock()
		left := 0
		for _, one := range c.started {
			if which(one) {
				left++
			}
		}
		c.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-deadline.C:
			return
		case <-tick.C:
		}
	}
}

// environment returns the environment of a machine's programs.
func environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
}

// restartDelay is the time until an ended program starts again.
const restartDelay = time.Second

// keep starts a program and restarts it when it ends, until ctx is done.
func (v *supervisor) keep(ctx context.Context, p program) error {
	done, err := v.launch(p)
	if err != nil {
		return err
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case status := <-done:
				v.log.Warn("program ended and is restarted", "program", p.name, "exit", status.ExitStatus(), "signal", status.Signal())
			}
			if pause.For(ctx, restartDelay) != nil {
				return
			}
			if done, err = v.launch(p); err != nil {
				v.log.Error("program cannot be started", "program", p.name, "error", err)
				return
			}
		}
	}()
	return nil
}

// once runs a program and waits for its end.
func (v *supervisor) once(ctx context.Context, p program) error {
	done, err := v.launch(p)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case status := <-done:
		if !status.Exited() || status.ExitStatus() != 0 {
			return fmt.Errorf("%s ended with %d, its log is %s", p.name, status.ExitStatus(), v.logFile(p))
		}
	}
	return nil
}

func (v *supervisor) launch(p program) (<-chan unix.WaitStatus, error) {
	path := v.spec.Programs[p.name]
	if path == "" {
		return nil, fmt.Errorf("no path for program %s", p.name)
	}
	return v.child.start(p.name, path, p.args, environment(), v.logFile(p))
}

func (v *supervisor) logFile(p program) string {
	name := p.log
	if name == "" {
		name = p.name
	}
	return filepath.Join("/var/log", name+".log")
}
