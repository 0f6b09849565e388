package guest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kaz/internal/localazure/plane/fabric/netns"
	"kaz/internal/testkit/guest"
)

// run runs a shell script in a guest and returns its output.
func run(ctx context.Context, c guest.Command, script string) (string, error) {
	var output bytes.Buffer
	c.Args, c.Output = []string{"sh", "-c", script}, &output
	err := guest.Run(ctx, c)
	return output.String(), err
}

// available skips a test where guests cannot run.
func available(t *testing.T, err error) {
	t.Helper()
	if unavailable, ok := errors.AsType[*guest.UnavailableError](err); ok {
		t.Skip(unavailable)
	}
}

// A guest in a network namespace.
func TestAGuestRunsAProgram(t *testing.T) {
	namespace := fmt.Sprintf("kaz-guest-%d", os.Getpid())
	if err := netns.Create(namespace); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := netns.Remove(namespace); err != nil {
			t.Error(err)
		}
	})
	here := t.TempDir()
	beside := t.TempDir()
	var output string
	var err error
	inside := netns.Do(namespace, func() error {
		if err := guest.Link(t.Context()); err != nil {
			return err
		}
		output, err = run(t.Context(), guest.Command{
			Env: map[string]string{"QUOTED": `it's "$HOME"`}, Dir: here, Writable: []string{here}, Linked: true,
		}, fmt.Sprintf(`
			echo "$QUOTED"; pwd
			grep -wc -e cifs -e nfs4 /proc/filesystems
			echo kept >%[1]s/file; echo gone >%[2]s/file; cat %[2]s/file
			bash -c 'cat </dev/tcp/%[3]s/%[4]s'
			echo problem >&2
			exit 7`, here, beside, guest.HostAddress, greeter(t, "hello from the host")))
		return nil
	})
	if inside != nil {
		t.Fatal(inside)
	}
	available(t, err)
	failed, ok := errors.AsType[*guest.ExitError](err)
	if !ok || failed.Code != 7 {
		t.Errorf("got error %v, want exit status 7", err)
	}
	want := "it's \"$HOME\"\n" + here + "\n2\ngone\nhello from the host\nproblem\n"
	if output != want {
		t.Errorf("got output %q, want %q", output, want)
	}
	if text, err := os.ReadFile(filepath.Join(here, "file")); string(text) != "kept\n" {
		t.Errorf("the writable directory has %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(beside, "file")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the guest changed a directory that was not given to it: %v", err)
	}
}

// greeter answers each connection of a guest with a text. It returns the port.
func greeter(t *testing.T, text string) string {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(guest.HostAddress, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, text+"\n")
			_ = connection.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

// All output arrives, also if there is more of it than pipes and serial lines hold.
func TestAGuestLosesNoOutput(t *testing.T) {
	began := time.Now()
	output, err := run(t.Context(), guest.Command{}, "seq 1 50000")
	available(t, err)
	t.Logf("boot, program and end took %s", time.Since(began).Round(time.Millisecond))
	if err != nil {
		t.Error(err)
	}
	var want strings.Builder
	for i := range 50000 {
		fmt.Fprintln(&want, i+1)
	}
	if output != want.String() {
		t.Errorf("got %d bytes, want %d", len(output), want.Len())
	}
}

func TestAGuestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the power is off")
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- guest.Run(ctx, guest.Command{Args: []string{"sh", "-c", "echo up; sleep 1000"}, Output: write})
		_ = write.Close()
	}()
	if _, err := io.ReadFull(read, make([]byte, len("up\n"))); err != nil {
		err := <-ended
		available(t, err)
		t.Fatal(err)
	}
	cancel(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Errorf("got error %v, want %v", err, why)
	}
}
