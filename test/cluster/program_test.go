package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program is a running program.
type program struct {
	t     *testing.T
	cmd   *exec.Cmd
	began time.Time
	out   *transcript
	ended chan struct{}
	err   error // how it ended, once ended is closed
}

// start runs a program until it ends or the test ends. A failed test prints its output.
func start(t *testing.T, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{t: t, cmd: cmd, out: newTranscript(), began: time.Now(), ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	// A process group of its own, as in a terminal. If the test is killed, the program ends too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGTERM)
		select {
		case <-p.ended:
		case <-time.After(time.Minute):
			t.Errorf("%s goes on though it was told to stop", cmd)
			p.signal(syscall.SIGKILL)
			<-p.ended
		}
		if t.Failed() {
			t.Logf("%s wrote:\n%s", cmd, p.out)
		}
	})
	return p
}

func (p *program) signal(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
}

// says waits until the program wrote a text and returns the time since its start.
func (p *program) says(text string, within time.Duration) time.Duration {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), within)
	defer cancel()
	for {
		at, found, more := p.out.find(text)
		if found {
			return at.Sub(p.began)
		}
		select {
		case <-more:
		case <-p.ended:
			if _, found, _ := p.out.find(text); !found {
				p.t.Fatalf("%s ended (%v) and never said %q", p.cmd, p.err, text)
			}
		case <-ctx.Done():
			p.t.Fatalf("%s did not say %q within %s", p.cmd, text, within)
		}
	}
}

// end waits until the program has ended and returns how.
func (p *program) end(within time.Duration) error {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.err
	case <-time.After(within):
		p.t.Fatalf("%s did not end within %s", p.cmd, within)
		return nil
	}
}

// transcript keeps what a program writes and when it did.
type transcript struct {
	mu    sync.Mutex
	text  []byte
	marks []mark
	more  chan struct{} // closed when there is more
}

// mark says when the text had grown to a length.
type mark struct {
	length int
	at     time.Time
}

func newTranscript() *transcript { return &transcript{more: make(chan struct{})} }

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.marks = append(t.marks, mark{len(t.text), time.Now()})
	close(t.more)
	t.more = make(chan struct{})
	return len(p), nil
}

func (t *transcript) find(text string) (at time.Time, found bool, more <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := bytes.Index(t.text, []byte(text))
	if i < 0 {
		return at, false, t.more
	}
	for _, m := range t.marks {
		if m.length > i {
			return m.at, true, t.more
		}
	}
	return at, false, t.more
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// output runs a program to its end and returns what it wrote.
func output(t *testing.T, stdin, name string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// runKaz runs a kaz command that must succeed and returns its stdout.
func runKaz(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, err := output(t, "", kaz(), args...)
	if err != nil {
		t.Fatalf("kaz %s: %v\n%s%s", strings.Join(args, " "), err, out, errs)
	}
	return out
}

// refuses runs a command that must fail with an error that contains the words.
func refuses(t *testing.T, cmd *exec.Cmd, words ...string) {
	t.Helper()
	text, err := cmd.CombinedOutput()
	if _, isExit := errors.AsType[*exec.ExitError](err); !isExit {
		t.Errorf("%s: %v, want an exit status other than 0; it wrote:\n%s", cmd, err, text)
	}
	for _, w := range words {
		if !strings.Contains(string(text), w) {
			t.Errorf("%s does not say %q but:\n%s", cmd, w, text)
		}
	}
	for _, w := range []string{"panic:", "goroutine ", "Usage:"} {
		if strings.Contains(string(text), w) {
			t.Errorf("%s says %q:\n%s", cmd, w, text)
		}
	}
}

// running lists the processes with a text in their command line.
func running(t *testing.T, text string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && bytes.Contains(line, []byte(text)) {
			found = append(found, fmt.Sprintf("%d %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return found
}

// wait asks until nothing is missing any more, and returns how long that took.
func wait(t *testing.T, within time.Duration, what string, missing func() string) time.Duration {
	t.Helper()
	began := time.Now()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		still := missing()
		if still == "" {
			return time.Since(began)
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s: not within %s: %s", what, within, still)
		}
	}
}

// nothingRuns waits until no process of the directory is left.
func nothingRuns(t *testing.T, dir string, within time.Duration) {
	t.Helper()
	wait(t, within, "the end of all processes of "+dir, func() string {
		return strings.Join(running(t, dir), "\n")
	})
}

// interrupt is the signal of Ctrl-C, which a terminal sends to the whole process group.
const interrupt = syscall.SIGINT

// stopped ends a program with a signal, which must be a success.
func stopped(t *testing.T, p *program, how syscall.Signal) {
	t.Helper()
	if how == interrupt {
		if err := syscall.Kill(-p.cmd.Process.Pid, interrupt); err != nil {
			t.Fatal(err)
		}
	} else {
		p.signal(how)
	}
	if err := p.end(time.Minute); err != nil {
		t.Errorf("%s ended with %v after the signal %s; it wrote:\n%s", p.cmd, err, how, p.out)
	}
}
