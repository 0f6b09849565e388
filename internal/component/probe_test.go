package component

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// answers is a transport with the answers of a program that starts.
type answers struct {
	after time.Duration // from the beginning until it is ready
	began time.Time
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, text := http.StatusOK, "ok"
	if time.Since(a.began) < a.after {
		status, text = http.StatusServiceUnavailable, "[-]leases failed"
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// TestProbe asks a program that is ready after some time, and one that is not ready within a minute.
func TestProbe(t *testing.T) {
	for _, c := range []struct {
		after, took time.Duration
		want        string
	}{{0, 0, ""}, {20 * time.Second, 20 * time.Second, ""}, {time.Hour, probeTime, "Service Unavailable: [-]leases failed, want 200"}} {
		synctest.Test(t, func(t *testing.T) {
			before := http.DefaultTransport
			http.DefaultTransport = &answers{c.after, time.Now()}
			defer func() { http.DefaultTransport = before }()
			began := time.Now()
			err := probe(t.Context(), "http://10.0.0.1:10269/metrics")
			if text := errorText(err); text != c.want || time.Since(began) != c.took {
				t.Errorf("ready after %s: %q after %s, want %q after %s", c.after, text, time.Since(began), c.want, c.took)
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

// TestInstead checks that a program with --probe-url asks, says so, and does nothing else.
func TestInstead(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	url := "http://" + listener.Addr().String() + "/readyz"
	for _, c := range []struct {
		args []string
		want string
		done bool
	}{{nil, "", false}, {[]string{"--probe-url=" + url}, url + " answers\n", true}} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		addProbeFlag(flags)
		var said strings.Builder
		done := false
		command := &cobra.Command{Use: "program", RunE: func(command *cobra.Command, _ []string) (err error) {
			done, err = Instead(command)
			return err
		}}
		command.Flags().AddFlagSet(flags)
		command.SetArgs(c.args)
		command.SetOut(&said)
		if err := command.ExecuteContext(t.Context()); err != nil || done != c.done || said.String() != c.want {
			t.Errorf("%v: %v, %t, %q", c.args, err, done, said.String())
		}
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := probe(stopped, url); err == nil {
		t.Error("a probe that was ended has succeeded")
	}
}
