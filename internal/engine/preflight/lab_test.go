package preflight

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/emulator"
	"kaz/internal/emulator/providers"
	"kaz/internal/engine"
	"kaz/internal/plan/cluster"
	"kaz/internal/plan/cluster/definition"
)

const tenant = "00000000-0000-0000-0000-0000000000aa"

type transport struct{ http.RoundTripper }

func (t transport) Do(r *http.Request) (*http.Response, error) { return t.RoundTrip(r) }

// lab is a local Azure and an engine for it.
type lab struct {
	*engine.Engine
	client *arm.Client
	t      *testing.T
	mu     sync.Mutex
	log    bytes.Buffer
}

func (l *lab) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(p)
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t}
	e, err := emulator.New(emulator.Options{Providers: providers.All(), RequestLog: l, Tenant: tenant})
	if err != nil {
		t.Fatal(err)
	}
	l.connect(transport{e.Transport()})
	return l
}

func (l *lab) connect(way transport) {
	l.t.Helper()
	c, err := arm.New(arm.Config{Endpoint: "http://127.0.0.1", Transport: way, Retries: -1})
	if err != nil {
		l.t.Fatal(err)
	}
	l.client = c
	l.Engine = &engine.Engine{Azure: c}
}

// writes are the requests since the last call that change something.
func (l *lab) writes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for line := range strings.Lines(l.log.String()) {
		var r struct{ Method, Path string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			l.t.Fatal(err)
		}
		name := r.Path[strings.LastIndexByte(r.Path, '/')+1:]
		if r.Method != http.MethodGet && !slices.Contains([]string{"checkNameAvailability", "validate"}, name) {
			all = append(all, r.Method+" "+r.Path)
		}
	}
	l.log.Reset()
	return all
}

// put writes documents, each as "ID BODY".
func (l *lab) put(documents ...string) {
	l.t.Helper()
	for _, one := range documents {
		id, body, _ := strings.Cut(one, " ")
		if _, err := l.client.Put(l.t.Context(), azure.Write{ID: azure.ID(id), Body: azure.Document(body)}); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *lab) deploy(p cluster.Plan) {
	l.t.Helper()
	if _, err := l.Deploy(l.t.Context(), p, func([]byte) error { return nil }); err != nil {
		l.t.Fatal(err)
	}
}

// example is the plan of example files after a change.
func example(t *testing.T, change func(*definition.Definition), files ...string) cluster.Plan {
	t.Helper()
	var layers []definition.Layer
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join("../../../docs/example-manifests/cluster", file))
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
