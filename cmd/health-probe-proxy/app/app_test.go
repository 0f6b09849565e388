package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The import of klog starts its flusher.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// TestFlagsOfToday checks the flags of existing manifests, with their defaults.
func TestFlagsOfToday(t *testing.T) {
	flags := Command().Flags()
	for name, initial := range map[string]string{"health-check-port": "10356", "target-port": "10256", "v": "0", "vmodule": "",
		"version": "false"} {
		f := flags.Lookup(name)
		switch {
		case f == nil:
			t.Errorf("--%s is not known", name)
		case f.DefValue != initial:
			t.Errorf("--%s is %q without being said, want %q", name, f.DefValue, initial)
		}
	}
}

// TestBadFlags checks that all wrong flags are reported at once, before anything is started.
func TestBadFlags(t *testing.T) {
	for args, want := range map[string][]string{
		"--health-check-port=0 --target-port=65536": {"--health-check-port 0: must be between 1 and 65535",
			"--target-port 65536: must be between 1 and 65535"},
		"--health-check-port=10256": {"--health-check-port 10256: must be another than --target-port"},
		"--bind-address=localhost --metrics-bind-address=10357": {`--bind-address "localhost": must be an IP address`,
			`--metrics-bind-address "10357": must be HOST:PORT or :PORT`},
		"--timeout=0s":                 {"--timeout 0s: must be more than 0"},
		"--metrics-bind-address=:http": {`--metrics-bind-address ":http"`},
		"--logging-format=xml":         {"Unsupported log format"},
		"more":                         {`["more"]: no arguments are allowed`},
	} {
		command := Command()
		command.SetArgs(strings.Fields(args))
		command.SetOut(io.Discard)
		command.SetErr(io.Discard)
		err := command.ExecuteContext(t.Context())
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %s", args, err, w)
			}
		}
	}
}

// TestRun runs the whole program with its own sockets.
func TestRun(t *testing.T) {
	kubeProxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
	defer kubeProxy.Close()
	o := newOptions()
	o.port, o.targetPort, o.bindAddress, o.metricsAddress, o.timeout = 0, portOf(t, kubeProxy.URL), "127.0.0.1", "127.0.0.1:0", time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	started, ended := make(chan [2]net.Addr, 1), make(chan error, 1)
	go func() {
		ended <- run(ctx, o, slog.Default(), func(probes, metrics net.Addr) { started <- [2]net.Addr{probes, metrics} })
	}()
	var at [2]net.Addr
	select {
	case at = <-started:
	case err := <-ended:
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", at[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "PROXY TCP4 168.63.129.16 127.0.0.1 51234 10356\r\nGET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if text := read(t, c); text != "/healthz" {
		t.Errorf("%q", text)
	}
	if text := get(t, "http://"+at[1].String()+"/metrics"); !strings.Contains(text,
		`kaz_health_probe_proxy_probes_total{header="v1",result="healthy"} 1`) {
		t.Error(text)
	}
	if text := get(t, "http://"+at[1].String()+"/healthz"); text != "ok" {
		t.Error(text)
	}
	// The port is in use.
	taken := newOptions()
	taken.port, taken.bindAddress = at[0].(*net.TCPAddr).Port, "127.0.0.1"
	err = run(ctx, taken, slog.Default(), nil)
	if err == nil || !strings.Contains(err.Error(), "--health-check-port: listen tcp 127.0.0.1:") {
		t.Error(err)
	}
	taken.port, taken.metricsAddress = 0, at[1].String()
	if err := run(ctx, taken, slog.Default(), nil); err == nil || !strings.Contains(err.Error(), "--metrics-bind-address: listen on") {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func portOf(t *testing.T, text string) int {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func read(t *testing.T, c net.Conn) string {
	t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return body(t, answer)
}

func get(t *testing.T, at string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	return body(t, answer)
}

func body(t *testing.T, answer *http.Response) string {
	t.Helper()
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
