package guest

import (
	"context"
	_ "embed" // of the guest's first program
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// kernel is the program that is the guest's kernel. Debian's package user-mode-linux has it.
const kernel = "linux.uml"

// memory is what the guest may use. The host gives it only what the guest has written to.
const memory = "1G"

//go:embed init.sh
var initScript []byte

// Command is a program to run in a guest.
type Command struct {
	Args   []string          // the program and its arguments
	Env    map[string]string // beside PATH and HOME
	Dir    string            // "/" by default
	Output io.Writer         // of the standard output and the standard error; nil discards both
	// Writable are directories of the host that the guest may write. Everything else that it writes ends with it.
	Writable []string
	// Linked connects the guest to the network namespace in which Run is called. [Link] made the host's end.
	Linked bool
}

// ExitError is the error of a program that ended with another code than 0.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// UnavailableError means that this machine cannot run guests.
type UnavailableError struct{ Reason string }

func (e *UnavailableError) Error() string {
	return "this machine cannot run user-mode Linux: " + e.Reason
}

// Run boots a guest, runs the command, and returns when the guest is off. When ctx is done, the guest ends at once, like a
// machine that loses its power. The error is an [ExitError] if the program failed, and an [UnavailableError] if the guest
// cannot boot here.
func Run(ctx context.Context, c Command) error {
	if err := check(); err != nil {
		return err
	}
	files, err := os.MkdirTemp("", "kaz-guest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(files)
	if err := errors.Join(
		os.WriteFile(filepath.Join(files, "init"), initScript, 0o755),
		os.WriteFile(filepath.Join(files, "program"), []byte(c.script()), 0o644),
	); err != nil {
		return err
	}
	console := &tail{}
	if err := c.boot(ctx, files, console); ctx.Err() != nil {
		return fmt.Errorf("the guest was ended: %w", context.Cause(ctx))
	} else if _, started := os.Stat(filepath.Join(files, "started")); started != nil {
		return &UnavailableError{Reason: fmt.Sprintf("the guest does not boot (%v); its console says:\n%s", err, console)}
	}
	return result(files, console)
}

// boot runs the kernel until the guest is off.
func (c Command) boot(ctx context.Context, files string, console *tail) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	// The kernel is the first process of a process namespace: if it ends, all processes of the guest do.
	cmd := exec.CommandContext(ctx, kernel, c.arguments(files)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = console, console, []*os.File{write}
	cmd.WaitDelay = time.Second
	err = cmd.Start()
	_ = write.Close() // nothing was written
	if err != nil {
		return err
	}
	output := c.Output
	if output == nil {
		output = io.Discard
	}
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(output, read)
		copied <- err
	}()
	return errors.Join(cmd.Wait(), <-copied)
}

// arguments are those of the kernel. What it does not know is the environment of its first program.
func (c Command) arguments(files string) []string {
	arguments := []string{
		"mem=" + memory, "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet",
		"init=" + filepath.Join(files, "init"), "uml_dir=" + files + "/", "umid=kernel",
		"con=null", "con0=null,fd:1", "ssl=null", "ssl0=null,fd:3", "GUEST_WRITABLE=" + strings.Join(c.Writable, ":"),
	}
	if !c.Linked {
		return arguments
	}
	return append(arguments, "vec0:transport=tap,gro=1,ifname="+device, // without gro the link stops under load
		"GUEST_ADDRESS="+Address+prefixLength, "GUEST_GATEWAY="+HostAddress)
}

// script returns the shell script that becomes the program.
func (c Command) script() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		fmt.Fprintf(&b, "export %s=%s\n", name, quote(c.Env[name]))
	}
	dir := c.Dir
	if dir == "" {
		dir = "/"
	}
	fmt.Fprintf(&b, "cd %s || exit\nexec", quote(dir))
	for _, a := range c.Args {
		b.WriteString(" " + quote(a))
	}
	return b.String() + "\n"
}

// quote returns a word of a shell that stands for the text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// result reads how the program ended.
func result(files string, console *tail) error {
	text, err := os.ReadFile(filepath.Join(files, "code"))
	if err != nil {
		return fmt.Errorf("the guest ended before its program did; its console says:\n%s", console)
	}
	code, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("exit status of the program: %w", err)
	}
	if code != 0 {
		return &ExitError{Code: code}
	}
	return nil
}

// tail keeps the last bytes that are written to it.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 8 << 10
	t.text = append(t.text, p...)
	if cut := len(t.text) - most; cut > 0 {
		t.text = slices.Delete(t.text, 0, cut)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.text) }
