package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"
)

func TestLoggerWritesTextOrJSON(t *testing.T) {
	var text, object bytes.Buffer
	for format, w := range map[string]io.Writer{"text": &text, "json": &object} {
		logger, err := NewLogger(w, slog.LevelInfo, format)
		if err != nil {
			t.Fatal(err)
		}
		logger.Debug("not shown")
		logger.Info("wrote load balancer", "resource_group", "rg1")
	}
	if !strings.Contains(text.String(), `msg="wrote load balancer" resource_group=rg1`) || strings.Contains(text.String(), "not shown") {
		t.Errorf("text: %s", &text)
	}
	var record map[string]any
	if err := json.Unmarshal(object.Bytes(), &record); err != nil || record["resource_group"] != "rg1" {
		t.Errorf("json: %s: %v", &object, err)
	}
}

func TestLoggerRefuses(t *testing.T) {
	if _, err := NewLogger(io.Discard, slog.LevelInfo, "xml"); err == nil ||
		!strings.Contains(err.Error(), `"xml": must be one of text, json`) {
		t.Error(err)
	}
	if _, err := ParseLevel("loud"); err == nil || !strings.Contains(err.Error(), `"loud": must be one of debug, info, warn, error`) {
		t.Error(err)
	}
	for name, want := range map[string]slog.Level{"debug": slog.LevelDebug, "INFO": slog.LevelInfo, "warn": slog.LevelWarn,
		"Error": slog.LevelError} {
		if got, err := ParseLevel(name); got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestKubernetesLogsToTheSamePlace(t *testing.T) {
	var out bytes.Buffer
	logger, err := NewLogger(&out, slog.LevelInfo, "text")
	if err != nil {
		t.Fatal(err)
	}
	UseForKubernetes(logger)
	t.Cleanup(klog.ClearLogger)
	klog.InfoS("node joined", "node", "a")
	klog.ErrorS(errors.New("gone"), "lease lost")
	for _, want := range []string{`level=INFO`, `msg="node joined" node=a`, `level=ERROR`, `msg="lease lost" err=gone`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("missing %s in:\n%s", want, &out)
		}
	}
}

func TestHealth(t *testing.T) {
	var health Health
	mux := http.NewServeMux()
	health.Register(mux)
	get := func(target string) (int, string) {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
		return w.Code, w.Body.String()
	}
	expect := func(target string, code int, body string) {
		t.Helper()
		if gotCode, got := get(target); gotCode != code || got != body {
			t.Errorf("%s: %d %q, want %d %q", target, gotCode, got, code, body)
		}
	}
	expect("/healthz", 200, "ok")
	expect("/readyz", 200, "ok")

	synced := errors.New("not yet")
	health.Live("loop", func(context.Context) error { return nil })
	health.Ready("cache", func(context.Context) error { return synced })
	expect("/healthz?verbose", 200, "[+]loop ok\ncheck passed\n")
	expect("/readyz", 500, "[-]cache failed: not yet\ncheck failed\n")
	synced = nil
	expect("/readyz", 200, "ok")
	if code, _ := get("/livez"); code != http.StatusNotFound {
		t.Errorf("/livez: %d", code)
	}
}

func TestServeUntilTold(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := Listen(ctx, ":0")
	if err != nil {
		t.Fatal(err)
	}
	if host := listener.Addr().String(); !strings.HasPrefix(host, "127.0.0.1:") {
		t.Errorf("listens on %s", host)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", MetricsHandler(NewRegistry()))
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, listener, mux) }()

	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	for _, metric := range []string{"go_goroutines", "go_build_info"} {
		if !bytes.Contains(body, []byte(metric)) {
			t.Errorf("no %s", metric)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestListenRefuses(t *testing.T) {
	if _, err := Listen(t.Context(), "8080"); err == nil || !strings.Contains(err.Error(), `"8080": must be host:port or :port`) {
		t.Error(err)
	}
	taken, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := Listen(t.Context(), taken.Addr().String()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Error(err)
	}
	// A closed listener ends the server at once.
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), taken, http.NotFoundHandler()); err == nil {
		t.Error("served without a listener")
	}
}
