package component_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"kaz/internal/component"
)

// TestServeMetrics asks for metrics as a Prometheus without a token does. Nothing else is served there.
func TestServeMetrics(t *testing.T) {
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "kaz_test_total", Help: "Counts."})
	registry := prometheus.NewRegistry()
	registry.MustRegister(counter)
	ctx, stop := context.WithCancel(t.Context())
	tasks, ctx := errgroup.WithContext(ctx)
	at, err := component.ServeMetrics(ctx, tasks, "--metrics-address", "127.0.0.1:0", registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := component.ServeMetrics(ctx, tasks, "--metrics-address", at.String(), registry); err == nil ||
		!strings.Contains(err.Error(), "--metrics-address: ") || !strings.Contains(err.Error(), at.String()) {
		t.Errorf("a port that is taken: %v", err)
	}
	if none, err := component.ServeMetrics(ctx, tasks, "--metrics-address", "", registry); none != nil || err != nil {
		t.Errorf("no address: %v %v", none, err)
	}
	for path, want := range map[string]string{"/metrics": "kaz_test_total 0", "/healthz": "404", "/debug/pprof/": "404"} {
		if got := ask(t, "http://"+at.String()+path); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	stop()
	if err := tasks.Wait(); err != nil {
		t.Error(err)
	}
}

// ask returns the status and the body of an answer.
func ask(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status + "\n" + string(text)
}
