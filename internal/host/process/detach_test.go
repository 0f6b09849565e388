package process_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"kaz/internal/host/process"
)

// TestDetach checks how Detach returns: when the program is ready, has ended, or is interrupted.
func TestDetach(t *testing.T) {
	interrupted := errors.New("interrupted")
	for name, test := range map[string]struct {
		script      string
		interrupt   bool
		want        string // of the error, "" for none
		prints, not string
	}{
		"ready":       {script: "echo begins >&2; echo secret; echo $$ > ready; exec sleep 600", prints: "begins", not: "secret"},
		"ended":       {script: "echo cannot >&2; exit 3", want: "the thing did not come up; the log is ", prints: "cannot", not: "exit status"},
		"interrupted": {script: "echo begins >&2; exec sleep 600", interrupt: true, want: "interrupted", not: "signal"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var started int
			var progress bytes.Buffer
			err := process.Detach(ctx, process.Detached{
				What: "the thing", Path: "/bin/sh", Args: []string{"-c", "cd '" + dir + "'; " + test.script},
				LogFile: filepath.Join(dir, "logs", "thing.log"), Progress: &progress, Interrupted: interrupted,
				Ready: func(pid int) bool {
					started = pid
					if test.interrupt {
						cancel()
					}
					text, err := os.ReadFile(filepath.Join(dir, "ready"))
					return err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(pid)
				},
			})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if got := progress.String(); !strings.Contains(got, test.prints) || test.not != "" && strings.Contains(got+errorText(err), test.not) {
				t.Errorf("progress %q, want %q and not %q", got, test.prints, test.not)
			}
			runs := syscall.Kill(started, 0) == nil
			if runs != (test.want == "") {
				t.Errorf("the process runs: %v", runs)
			}
			if runs {
				if err := syscall.Kill(started, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
