package testkit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"kaz/internal/arm"
	"kaz/internal/arm/cache"
)

// Reads returns the reads since the start or the last [Azure.Forget], as "GET .../kubernetes",
// without polls of operations.
func (a *Azure) Reads() []string { return a.log.reads() }

func (r *requests) reads() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, line := range r.lines {
		var req struct{ Method, Path string }
		if err := json.Unmarshal([]byte(line), &req); err != nil {
			all = append(all, "unreadable: "+line)
			continue
		}
		if req.Method == http.MethodGet && !isPoll(req.Path) {
			all = append(all, fmt.Sprintf("%s %s", req.Method, req.Path[strings.LastIndexByte(req.Path, '/')+1:]))
		}
	}
	return all
}

func isPoll(path string) bool {
	lower := strings.ToLower(path)
	return strings.Contains(lower, "/locations/") && strings.Contains(lower, "/operation")
}

// Reopen replaces Client by one with an empty cache, as after a restart of the program.
func (a *Azure) Reopen() {
	a.t.Helper()
	a.Client = a.OtherClient()
}

// OtherClient returns an ARM client of another program: Client's cache does not notice its writes.
func (a *Azure) OtherClient() *cache.Cache {
	a.t.Helper()
	return openClient(a.t, transport{a.Transport()})
}

// ClientOver returns an ARM client with a wrapped transport.
func (a *Azure) ClientOver(wrap func(http.RoundTripper) http.RoundTripper) *cache.Cache {
	a.t.Helper()
	return openClient(a.t, transport{wrap(a.Transport())})
}

func openClient(t testing.TB, way transport) *cache.Cache {
	t.Helper()
	client, err := arm.New(arm.Config{Endpoint: "http://127.0.0.1", Transport: way})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := cache.Over(client, cache.Options{TTL: map[string]time.Duration{"": time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// Request is one request to Azure.
type Request struct {
	At     time.Time
	Took   time.Duration // until the response; an operation may continue
	Method string
	Path   string
	Status int
}

// IsPoll reports whether the request polled an operation.
func (r Request) IsPoll() bool { return r.Method == http.MethodGet && isPoll(r.Path) }

// IsRead reports whether the request is a read other than a poll.
func (r Request) IsRead() bool { return r.Method == http.MethodGet && !isPoll(r.Path) }

// Name returns the last segment of the path.
func (r Request) Name() string { return r.Path[strings.LastIndexByte(r.Path, '/')+1:] }

// Requests returns the requests since the start or the last [Azure.Forget], in the order of their
// responses.
func (a *Azure) Requests() []Request {
	a.t.Helper()
	a.log.mu.Lock()
	defer a.log.mu.Unlock()
	all := make([]Request, len(a.log.lines))
	for i, line := range a.log.lines {
		var r struct {
			Time         time.Time
			Method, Path string
			Status       int
			DurationMs   float64
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			a.t.Fatalf("request log: %v in %s", err, line)
		}
		all[i] = Request{r.Time, time.Duration(r.DurationMs * float64(time.Millisecond)), r.Method, r.Path, r.Status}
	}
	return all
}
