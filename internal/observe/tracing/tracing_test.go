package tracing_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/observe/trace"
	"kaz/internal/observe/tracing"
	"kaz/internal/reconcile"
)

// receiver is an OpenTelemetry collector on localhost.
type receiver struct {
	collector.UnimplementedTraceServiceServer

	mu    sync.Mutex
	spans []*otlp.Span
	names map[string]bool // of the services
}

func (r *receiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		for _, a := range resource.GetResource().GetAttributes() {
			r.names[a.GetKey()+"="+a.GetValue().GetStringValue()] = true
		}
		for _, scope := range resource.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func listen(t *testing.T) (*receiver, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{names: map[string]bool{}}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) }) // Serve returns when the server is stopped
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	return r, l.Addr().String()
}

func configuration(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"

// TestSpansArrive checks that a commit and its request arrive as one trace, with the ids that Azure
// logs.
func TestSpansArrive(t *testing.T) {
	r, address := listen(t)
	local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Ms-Request-Id", "azure-says-so")
		_ = json.NewEncoder(w).Encode(map[string]string{"id": "x"}) // the client reports the error
	}))
	defer local.Close()
	traces, err := tracing.Open(t.Context(), configuration(t, head+"endpoint: "+address+"\nsamplingRatePerMillion: 1000000\n"),
		"the-program", "v1")
	if err != nil {
		t.Fatal(err)
	}
	client, err := arm.New(arm.Config{Endpoint: local.URL, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	id := azure.GroupID("s", "g").Resource("Microsoft.Network/loadBalancers", "lb")
	commits := reconcile.NewCoalescer(func(ctx context.Context, _ string, batch []int) ([]int, error) {
		_, err := client.Get(ctx, id)
		return batch, err
	})
	if _, err := commits.Submit(t.Context(), "the-key", 1); err != nil {
		t.Fatal(err)
	}
	commits.Close()
	if err := traces.Close(t.Context()); err != nil { // then all spans have been sent
		t.Fatal(err)
	}
	// Spans after Close are harmless.
	_, span := trace.Start(t.Context(), "late")
	span.End(nil)

	r.mu.Lock()
	defer r.mu.Unlock()
	byName := map[string]*otlp.Span{}
	for _, s := range r.spans {
		byName[s.GetName()] = s
	}
	commit, request := byName["commit"], byName["GET Microsoft.Network/loadBalancers"]
	if len(r.spans) != 2 || commit == nil || request == nil {
		t.Fatalf("%d spans, want a commit and a request: %v", len(r.spans), r.spans)
	}
	if string(request.GetParentSpanId()) != string(commit.GetSpanId()) || string(request.GetTraceId()) != string(commit.GetTraceId()) {
		t.Error("the request is not part of the commit")
	}
	if !r.names["service.name=the-program"] || !r.names["service.version=v1"] {
		t.Errorf("the program is %v", r.names)
	}
	attributes := map[string]string{}
	for _, a := range append(commit.GetAttributes(), request.GetAttributes()...) {
		attributes[a.GetKey()] = a.GetValue().String()
	}
	for key, want := range map[string]string{
		"key": "the-key", "requests": "1", "azure_id": string(id), "verb": "get",
		"request_id": "azure-says-so", "status": "200", "correlation_id": "-",
	} {
		if !strings.Contains(attributes[key], want) {
			t.Errorf("%s is %q, want %q", key, attributes[key], want)
		}
	}
}

// TestNothingIsSentUnasked checks Kubernetes' default sampling rate: only spans of a sampled remote
// trace are sent.
func TestNothingIsSentUnasked(t *testing.T) {
	r, address := listen(t)
	traces, err := tracing.Open(t.Context(), configuration(t, head+"endpoint: "+address+"\n"), "p", "v")
	if err != nil {
		t.Fatal(err)
	}
	_, span := trace.Start(t.Context(), "unasked")
	span.End(nil)
	if err := traces.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(r.spans) > 0 {
		t.Errorf("sent %v", r.spans)
	}
}

// TestCollectorIsAway checks that an unreachable collector does not delay the end of the program.
func TestCollectorIsAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	traces, err := tracing.Open(t.Context(), configuration(t, head+"endpoint: "+address+"\nsamplingRatePerMillion: 1000000\n"), "p", "v")
	if err != nil {
		t.Fatal(err)
	}
	_, span := trace.Start(t.Context(), "lost")
	span.End(nil)
	start := time.Now()
	if err := traces.Close(t.Context()); err == nil {
		t.Error("no server took the spans, and closing says that all is well")
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("closing took %v", took)
	}
}

func TestWrongFiles(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"not there":         {"", "no such file"},
		"something else":    {"kind: Pod\napiVersion: v1\n", "decode"},
		"no rate":           {head + "samplingRatePerMillion: 2000000\n", "one million"},
		"no address at all": {head + "endpoint: http://a b/\n", "endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "absent")
			if c.text != "" {
				path = configuration(t, c.text)
			}
			if _, err := tracing.Open(t.Context(), path, "p", "v"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if traces, err := tracing.Open(t.Context(), "", "p", "v"); err != nil || traces.Close(t.Context()) != nil {
		t.Errorf("no file is no tracing: %v", err)
	}
}
