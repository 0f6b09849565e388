// Package clustertest has what tests of kaz cluster share: a local Azure in the process that notes its requests, and plans of the
// example definitions. Layer L3.
package clustertest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kaz/internal/arm"
	"kaz/internal/cluster"
	"kaz/internal/cluster/definition"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/blob"
	"kaz/internal/localazure/providers"
)

// Tenant is the tenant of the example definitions.
const Tenant = "00000000-0000-0000-0000-0000000000aa"

// Azure is a local Azure.
type Azure struct {
	*core.Emulator
	T testing.TB

	mu    sync.Mutex
	log   bytes.Buffer
	blobs *blob.Service
}

// Start starts a local Azure with all providers.
func Start(t testing.TB, o core.Options) *Azure {
	t.Helper()
	a := &Azure{T: t}
	o.Providers, o.RequestLog, o.Tenant = providers.All(), a, Tenant
	e, err := core.New(o)
	if err != nil {
		t.Fatal(err)
	}
	a.Emulator = e
	return a
}

// Write notes a request.
func (a *Azure) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.Write(p)
}

// Request is a request to Azure.
type Request struct{ Method, Path string }

// Name is the last part of the path.
func (r Request) Name() string { return r.Path[strings.LastIndexByte(r.Path, '/')+1:] }

// Writes reports whether a request may change something.
func (r Request) Writes() bool {
	asks := map[string]bool{"checkNameAvailability": true, "validate": true, "whatIf": true}
	return r.Method != http.MethodGet && !asks[r.Name()]
}

// Requests are the requests since the last call.
func (a *Azure) Requests() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []Request
	for line := range strings.Lines(a.log.String()) {
		var r Request
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			a.T.Fatal(err)
		}
		all = append(all, r)
	}
	a.log.Reset()
	return all
}

type transport struct{ http.RoundTripper }

func (t transport) Do(r *http.Request) (*http.Response, error) { return t.RoundTrip(r) }

// Client is a client that sends its requests this way.
func Client(t testing.TB, way http.RoundTripper) *arm.Client {
	t.Helper()
	c, err := arm.New(arm.Config{Endpoint: "http://127.0.0.1", Transport: transport{way}, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Plan is the plan of example files after a change.
func Plan(t testing.TB, change func(*definition.Definition), files ...string) cluster.Plan {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for root != filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Dir(root)
	}
	var layers []definition.Layer
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, "docs", "example-manifests", "cluster", file))
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, definition.Layer{Name: file, Text: text})
	}
	d, err := definition.Load(layers...)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&d)
	}
	p, err := cluster.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
