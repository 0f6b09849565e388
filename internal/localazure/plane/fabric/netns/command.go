package netns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Run runs a program in a namespace.
func Run(ctx context.Context, namespace, input, program string, args ...string) (string, error) {
	var out, problems bytes.Buffer
	err := Do(namespace, func() error {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &problems
		return cmd.Run()
	})
	if err != nil {
		return out.String(), &commandError{program: program, text: strings.TrimSpace(problems.String()), err: err}
	}
	return out.String(), nil
}

type commandError struct {
	program, text string
	err           error
}

func (e *commandError) Error() string { return fmt.Sprintf("%s: %s (%v)", e.program, e.text, e.err) }

func (e *commandError) Unwrap() error { return e.err }

// failure is a line of ip that failed.
type failure struct{ line, reason string }

func (f failure) Error() string { return fmt.Sprintf("ip %s: %s", f.line, f.reason) }

// batch executes lines of ip in a namespace. It continues after a line that fails. Its error means that ip itself failed.
func batch(ctx context.Context, namespace string, lines []string, options ...string) ([]failure, error) {
	if len(lines) == 0 {
		return nil, nil
	}
	_, err := Run(ctx, namespace, strings.Join(lines, "\n")+"\n", "ip", append(options, "-force", "-batch", "-")...)
	if err == nil {
		return nil, nil
	}
	failed, ok := errors.AsType[*commandError](err)
	if !ok || !strings.Contains(failed.text, "Command failed") {
		return nil, err
	}
	var failures []failure
	reason := ""
	for text := range strings.Lines(failed.text) {
		text = strings.TrimSpace(text)
		var n int
		if _, err := fmt.Sscanf(text, "Command failed -:%d", &n); err != nil || n < 1 || n > len(lines) {
			reason = strings.TrimSpace(reason + " " + text)
			continue
		}
		failures = append(failures, failure{lines[n-1], reason})
		reason = ""
	}
	return failures, nil
}

// setting writes a kernel setting of a namespace.
func setting(namespace, name, value string) error {
	return Do(namespace, func() error {
		return os.WriteFile("/proc/sys/net/"+name, []byte(value), 0o644)
	})
}

// Batch executes lines of ip in a namespace, and returns an error with the lines that failed.
func Batch(ctx context.Context, namespace string, lines ...string) error {
	failures, err := batch(ctx, namespace, lines)
	problems := []error{err}
	for _, f := range failures {
		problems = append(problems, f)
	}
	return errors.Join(problems...)
}
