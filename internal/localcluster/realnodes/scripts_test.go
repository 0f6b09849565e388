package realnodes

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	compute "kaz/internal/localazure/behaviour/compute/vm"
)

// runHere runs a script as in a machine, but on this host.
func runHere(t *testing.T, s compute.Script) compute.Result {
	t.Helper()
	for _, program := range []string{"/usr/bin/env", "/bin/sh", "timeout"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	args, input := commandOf(s)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(input)
	result, err := runCommand(cmd, s.Timeout)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// A script runs with its parameters, in its directory, by the program that its first line names or by the shell.
func TestScripts(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/script" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("echo from a link $1")) // the client is gone
	}))
	defer server.Close()
	dir := filepath.Join(t.TempDir(), "download/0")
	long := strings.Repeat("x", 5000)
	for _, c := range []struct {
		name           string
		script         compute.Script
		status         int
		stdout, stderr string
	}{
		{"command", compute.Script{Text: "echo out; echo err >&2; exit 3"}, 3, "out\n", "err\n"},
		{"file", compute.Script{Text: "echo out; echo err >&2; exit 3", Dir: dir}, 3, "out\n", "err\n"},
		{"directory", compute.Script{Text: "pwd; echo $0", Dir: dir}, 0, dir + "\n./script.sh\n", ""},
		{"parameters", compute.Script{Text: `echo "$greeting, $1 $2"`, Dir: dir, Env: []string{"greeting=hello  there"},
			Args: []string{"a  b", "$(c)"}}, 0, "hello  there, a  b $(c)\n", ""},
		{"several lines", compute.Script{Text: "a=1\nb=2\necho $a$b", Dir: dir}, 0, "12\n", ""},
		{"program", compute.Script{Text: "#!/usr/bin/env cat\ntext", Dir: dir}, 0, "#!/usr/bin/env cat\ntext", ""},
		{"no input", compute.Script{Text: "cat; echo end", Dir: dir}, 0, "end\n", ""},
		{"long output", compute.Script{Text: "printf " + long, Dir: dir}, 0, long[:4096], ""},
		{"link", compute.Script{URI: server.URL + "/script", Dir: dir, Args: []string{"x"}}, 0, "from a link x\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.script.URI != "" {
				if _, err := exec.LookPath("curl"); err != nil {
					t.Skip(err)
				}
			}
			c.script.Shell, c.script.Timeout = "/bin/sh", time.Minute
			got := runHere(t, c.script)
			if got.Status != c.status || got.Stdout != c.stdout || got.Stderr != c.stderr || got.TimedOut {
				t.Errorf("got %+v, want %d, %q, %q", got, c.status, c.stdout, c.stderr)
			}
		})
	}
}

// A script that cannot be loaded fails with the reason.
func TestScriptWithoutAFile(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	got := runHere(t, compute.Script{URI: server.URL, Dir: t.TempDir(), Shell: "/bin/sh", Timeout: time.Minute})
	if got.Status == 0 || !strings.Contains(got.Stderr, "404") {
		t.Errorf("got %+v, want a failure with status 404", got)
	}
}

// A script that does not end is ended by its timeout.
func TestScriptThatDoesNotEnd(t *testing.T) {
	got := runHere(t, compute.Script{Text: "echo begun\nwhile :; do :; done", Dir: t.TempDir(), Shell: "/bin/sh",
		Timeout: 200 * time.Millisecond})
	if !got.TimedOut || got.Stdout != "begun\n" {
		t.Errorf("got %+v, want a timeout", got)
	}
}
