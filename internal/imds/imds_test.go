package imds_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kaz/internal/azure"
	"kaz/internal/imds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	whole = `{"compute":{"vmSize":"Standard_D2s_v5"},"network":{"interface":[]}}`
	bare  = "http://metadata"
)

// script answers each request with its next answer, and repeats the last one.
type script struct {
	answers []answer
	at      []time.Duration // time of each request
	last    *http.Request
	start   time.Time
}

type answer struct {
	status int
	body   string
	header map[string]string
	err    error
	hang   bool
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.start.IsZero() {
		s.start = time.Now()
	}
	a := s.answers[min(len(s.at), len(s.answers)-1)]
	s.at, s.last = append(s.at, time.Since(s.start)), r
	if a.hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	header := http.Header{}
	for k, v := range a.header {
		header.Set(k, v)
	}
	return &http.Response{StatusCode: a.status, Header: header, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

func newClient(t *testing.T, s *script) *imds.Client {
	t.Helper()
	c, err := imds.New(imds.Config{Endpoint: bare + "/", Transport: s, UserAgent: "test/1"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheQuestion(t *testing.T) {
	s := &script{answers: []answer{{status: 200, body: whole}}}
	c := newClient(t, s)
	m, err := c.Instance(t.Context())
	if err != nil || m.Compute.VMSize != "Standard_D2s_v5" {
		t.Fatal(m, err)
	}
	if got := s.last.URL.String(); got != "http://metadata/metadata/instance?format=json&api-version=2021-10-01" {
		t.Error(got)
	}
	if s.last.Header.Get("Metadata") != "True" || s.last.Header.Get("User-Agent") != "test/1" {
		t.Error(s.last.Header)
	}
	s.answers[0].body = `{"loadbalancer":{"publicIpAddresses":[{"frontendIpAddress":"[2603::1]","privateIpAddress":"[fd00::6]"}]}}`
	public, err := c.LoadBalancer(t.Context())
	if err != nil || len(public.LoadBalancer.PublicIPAddresses) != 1 || public.LoadBalancer.PublicIPAddresses[0].Frontend != "[2603::1]" {
		t.Error(public, err)
	}
	if got := s.last.URL.String(); got != "http://metadata/metadata/loadbalancer?format=json&api-version=2020-10-01" {
		t.Error(got)
	}
}

// TestPatience checks that temporary failures are retried a bounded number of times, and others are
// returned at once.
func TestPatience(t *testing.T) {
	good := answer{status: 200, body: whole}
	for name, c := range map[string]struct {
		answers  []answer
		kind     azure.Kind
		text     string // in the error; empty for success
		attempts int
		took     time.Duration
	}{
		"at once":           {[]answer{good}, 0, "", 1, 0},
		"500 and then well": {[]answer{{status: 500}, {status: 503}, good}, 0, "", 3, 1500 * time.Millisecond},
		"500 for ever": {[]answer{{status: 500, body: "boom\n at line 1"}}, azure.Unavailable,
			"GET http://metadata/metadata/instance: unavailable (500): boom at line 1", 4, 3500 * time.Millisecond},
		"being updated": {[]answer{{status: 410}, good}, 0, "", 2, 500 * time.Millisecond},
		"throttled":     {[]answer{{status: 429, header: map[string]string{"Retry-After": "3"}}, good}, 0, "", 2, 3 * time.Second},
		"throttled for long": {[]answer{{status: 429, header: map[string]string{"Retry-After": "3600"}}, good}, 0, "", 2,
			10 * time.Second},
		"no listener": {[]answer{{err: errors.New("connection refused")}}, azure.Unavailable, "connection refused", 4,
			3500 * time.Millisecond},
		"slow once":     {[]answer{{hang: true}, good}, 0, "", 2, 10500 * time.Millisecond},
		"slow for ever": {[]answer{{hang: true}}, azure.Unavailable, "deadline exceeded", 4, 43500 * time.Millisecond},
		"no such machine": {[]answer{{status: 404, body: `{"error":"not_found","error_description":"There is none."}`}},
			azure.NotFound, "not found (404): not_found: There is none.", 1, 0},
		"refused": {[]answer{{status: 400, body: `{"error":"Bad request"}`}}, azure.Invalid,
			"invalid (400): Bad request", 1, 0},
		"not allowed": {[]answer{{status: 403}}, azure.Denied, "denied (403)", 1, 0},
		"sent elsewhere": {[]answer{{status: 302, header: map[string]string{"Location": "http://elsewhere/"}}}, azure.Invalid,
			"(302)", 1, 0},
		"a document cut once": {[]answer{{status: 200, body: whole[:20]}, good}, 0, "", 2, 500 * time.Millisecond},
		"a page of a portal": {[]answer{{status: 200, body: "<html>"}}, azure.Invalid, "invalid instance metadata", 4,
			3500 * time.Millisecond},
		"no network": {[]answer{{status: 200, body: `{"compute":{}}`}}, azure.Invalid, `has no "network"`, 4,
			3500 * time.Millisecond},
		"no compute": {[]answer{{status: 200, body: `{"network":{},"compute":null}`}}, azure.Invalid, `has no "compute"`, 4,
			3500 * time.Millisecond},
		"a number for a text": {[]answer{{status: 200, body: `{"compute":{"zone":1},"network":{}}`}}, azure.Invalid, "compute.zone", 4,
			3500 * time.Millisecond},
		"an endless answer": {[]answer{{status: 200, body: strings.Repeat(" ", 2<<20)}}, azure.Invalid,
			"longer than 1048576 bytes", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: c.answers}
				begin := time.Now()
				_, err := newClient(t, s).Instance(t.Context())
				if took := time.Since(begin); took != c.took || len(s.at) != c.attempts {
					t.Errorf("%d attempts in %s, want %d in %s", len(s.at), took, c.attempts, c.took)
				}
				if c.text == "" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if err == nil || azure.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
					t.Errorf("%v, want %v: %s", err, c.kind, c.text)
				}
			})
		})
	}
}

func TestStopping(t *testing.T) {
	for name, a := range map[string]answer{"while it answers": {hang: true}, "while it waits": {status: 500}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
				defer cancel()
				begin := time.Now()
				_, err := newClient(t, &script{answers: []answer{a}}).Instance(ctx)
				if azure.KindOf(err) != azure.Canceled || time.Since(begin) != 700*time.Millisecond {
					t.Errorf("%v after %s", err, time.Since(begin))
				}
			})
		})
	}
}

func TestEndpoints(t *testing.T) {
	for _, bad := range []string{"169.254.169.254", "ftp://a", "http://", "http://u:p@a", "http://a?b=c", "http://a#b",
		"http://[::1", "::"} {
		if _, err := imds.New(imds.Config{Endpoint: bad}); err == nil ||
			!strings.Contains(err.Error(), "must be http://HOST[:PORT][/PATH]") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	c, err := imds.New(imds.Config{})
	if err != nil || c.Endpoint() != imds.DefaultEndpoint {
		t.Error(err)
	}
}

// TestOverASocket checks that the default transport ignores proxies of the environment.
func TestOverASocket(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/vm/x/metadata/instance" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, whole)
	}))
	defer server.Close()
	c, err := imds.New(imds.Config{Endpoint: server.URL + "/vm/x"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Instance(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := c.LoadBalancer(t.Context()); !azure.IsNotFound(err) {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{whole, `{"compute":null}`, `[]`,
		`{"compute":{"tagsList":[{"name":"a"}]},"network":{"interface":[{"ipv4":{"ipAddress":[{}]}}]}}`, "\x00",
		`{"loadbalancer":{"publicIpAddresses":[{}]}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := imds.DecodeInstance(body)
		if (err == nil) != (m.Compute != nil && m.Network != nil) {
			t.Errorf("%v with %+v", err, m)
		}
		if _, err := imds.DecodeLoadBalancer(body); err != nil && !strings.Contains(err.Error(), "load balancer metadata") {
			t.Error(err)
		}
	})
}
