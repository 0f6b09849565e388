package arm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/azure"
)

var (
	reset   = &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	refused = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
)

// What is sent again after which failure, and what the caller gets in the end.
func TestRetries(t *testing.T) {
	id := lb("l")
	ok := answer{status: 200, body: resource(id, "Succeeded")}
	get := func(ctx context.Context, d *Client) error { _, err := d.Get(ctx, id); return err }
	put := func(ctx context.Context, d *Client) error {
		_, err := d.Put(ctx, azure.Write{ID: id, Body: azure.Document(`{}`), IfMatch: `W/"1"`})
		return err
	}
	patch := func(ctx context.Context, d *Client) error {
		_, err := d.Patch(ctx, azure.Write{ID: id, Body: azure.Document(`{}`)})
		return err
	}
	snapshot := func(ctx context.Context, d *Client) error {
		_, err := azure.Do(ctx, d, azure.Request{Verb: azure.Put, ID: id, Body: azure.Document(`{}`), Additive: true})
		return err
	}
	del := func(ctx context.Context, d *Client) error { return d.Delete(ctx, id) }
	post := func(ctx context.Context, d *Client) error { _, err := d.Post(ctx, id, "start", nil); return err }
	status := func(n int) answer { return answer{status: n, body: fail("Whatever")} }

	for _, c := range []struct {
		name    string
		do      func(context.Context, *Client) error
		answers []answer
		sent    int
		kind    azure.Kind
		fails   bool
		unsure  bool
		atLeast time.Duration
	}{
		{name: "get, 500", do: get, answers: []answer{status(500), ok}, sent: 2},
		{name: "get, 502 as html", do: get, answers: []answer{{status: 502, body: "<html>"}, ok}, sent: 2},
		{name: "get, 503 with Retry-After", do: get, answers: []answer{{status: 503, header: header("Retry-After", "7")}, ok}, sent: 2,
			atLeast: 7 * time.Second},
		{name: "get, 504", do: get, answers: []answer{status(504), ok}, sent: 2},
		{name: "get, 408", do: get, answers: []answer{status(408), ok}, sent: 2},
		{name: "get, reset", do: get, answers: []answer{{err: reset}, ok}, sent: 2},
		{name: "get, success without a document", do: get, answers: []answer{{status: 200}, {status: 200, body: "{}"}, ok}, sent: 3},
		{name: "get, down for good", do: get, answers: []answer{status(500)}, sent: 4, fails: true, kind: azure.Unavailable,
			unsure: true},
		{name: "get, 404", do: get, answers: []answer{{status: 404, body: fail("ResourceNotFound")}}, sent: 1, fails: true,
			kind: azure.NotFound},
		{name: "get, 400", do: get, answers: []answer{status(400)}, sent: 1, fails: true, kind: azure.Invalid},
		{name: "get, 403", do: get, answers: []answer{{status: 403, body: fail("AuthorizationFailed")}}, sent: 1, fails: true,
			kind: azure.Denied},
		{name: "get, redirect", do: get, answers: []answer{{status: 302, header: header("Location", "https://evil.test/")}}, sent: 1,
			fails: true, kind: azure.Internal},
		{name: "get, hangs", do: get, answers: []answer{{after: time.Hour}, ok}, sent: 2, atLeast: time.Minute},
		{name: "put, reset", do: put, answers: []answer{{err: reset}, ok}, sent: 2},
		{name: "put, the first one came through unseen", do: put,
			answers: []answer{{err: reset}, {status: 412, body: fail("PreconditionFailed")}}, sent: 2, fails: true, kind: azure.Changed, unsure: true},
		{name: "put, the first one came through unseen, then throttled", do: put,
			answers: []answer{{err: reset}, {status: 429, header: header("Retry-After", "1200")}}, sent: 2, fails: true,
			kind: azure.Throttled, unsure: true},
		{name: "put, never arrived, then throttled", do: put,
			answers: []answer{{err: refused}, {status: 429, header: header("Retry-After", "1200")}}, sent: 2, fails: true,
			kind: azure.Throttled},
		{name: "put, 409", do: put, answers: []answer{{status: 409, body: fail("AnotherOperationInProgress")}}, sent: 1, fails: true,
			kind: azure.Busy},
		{name: "put that adds, reset: it may have run", do: snapshot, answers: []answer{{err: reset}}, sent: 1, fails: true,
			kind: azure.Unavailable},
		{name: "put that adds, never arrived", do: snapshot, answers: []answer{{err: refused}, ok}, sent: 2},
		{name: "patch, 500", do: patch, answers: []answer{status(500), ok}, sent: 2},
		{name: "delete, the first one came through unseen", do: del,
			answers: []answer{{err: reset}, {status: 404, body: fail("ResourceNotFound")}}, sent: 2},
		{name: "post, reset: it may have run", do: post, answers: []answer{{err: reset}}, sent: 1, fails: true, kind: azure.Unavailable},
		{name: "post, 500: it may have run", do: post, answers: []answer{status(500)}, sent: 1, fails: true, kind: azure.Unavailable},
		{name: "post, never arrived", do: post, answers: []answer{{err: refused}, {status: 204}}, sent: 2},
		{name: "post, throttled: not accepted", do: post,
			answers: []answer{{status: 429, header: header("Retry-After", "3")}, {status: 204}}, sent: 2, atLeast: 3 * time.Second},
		{name: "get, throttled", do: get,
			answers: []answer{{status: 429, header: header("Retry-After", "30"), body: fail("SubscriptionRequestsThrottled")}, ok},
			sent:    2, atLeast: 30 * time.Second},
		{name: "get, throttled without a time", do: get, answers: []answer{{status: 429}, {status: 429}, ok}, sent: 3,
			atLeast: 3 * time.Second},
		{name: "get, throttled for too long", do: get, answers: []answer{{status: 429, header: header("Retry-After", "1200")}}, sent: 1,
			fails: true, kind: azure.Throttled},
		{name: "put, 429 that means busy", do: put, answers: []answer{{status: 429, body: fail("ReferencedResourceNotProvisioned")}},
			sent: 1, fails: true, kind: azure.Busy},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, start := script(c.answers...), time.Now()
				err := c.do(t.Context(), open(t, s))
				if (err != nil) != c.fails || c.fails && azure.KindOf(err) != c.kind {
					t.Errorf("error %v of kind %v, want kind %v: %v", err, azure.KindOf(err), c.kind, c.fails)
				}
				if e, ok := errors.AsType[*azure.Error](err); ok && e.Unsure != c.unsure {
					t.Errorf("%v: unsure %v, want %v", err, e.Unsure, c.unsure)
				}
				if got := len(s.requests()); got != c.sent {
					t.Errorf("%d requests, want %d", got, c.sent)
				}
				if took := time.Since(start); took < c.atLeast {
					t.Errorf("came back after %v, want at least %v", took, c.atLeast)
				}
			})
		})
	}
}

func TestRetriesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script(answer{status: 500})
		d := open(t, s, func(c *Config) { c.Retries, c.RetryDelay = 9, time.Second })
		if _, err := d.Get(t.Context(), lb("l")); azure.KindOf(err) != azure.Unavailable {
			t.Fatal(err)
		}
		_, at := s.trace()
		for i, want := range []float64{1, 2, 4, 8, 16, 32, 60, 60, 60} {
			if wait := (at[i+1] - at[i]).Seconds(); wait < want*.8 || wait > want*1.2+.001 {
				t.Errorf("retry %d after %.2f s, want %v s give or take a fifth", i+1, wait, want)
			}
		}
	})
}

// The backoff settings of azure.json: the first wait, its growth, and the random part.
func TestRetriesAsConfigured(t *testing.T) {
	for name, c := range map[string]struct {
		retries int
		delay   time.Duration
		factor  float64
		jitter  float64
		want    []float64 // at least; with jitter at most so much more
	}{
		"the usual of cloudProviderBackoff": {5, 5 * time.Second, 1.5, 1, []float64{5, 7.5, 11.25, 16.875, 25.3125}},
		"constant":                          {3, 2 * time.Second, 1, 0.1, []float64{2, 2, 2}},
		"longer than a minute":              {2, 90 * time.Second, 3, 0.5, []float64{90, 90}},
		"none":                              {-1, 5 * time.Second, 1.5, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := script(answer{status: 503})
				d := open(t, s, func(o *Config) {
					o.Retries, o.RetryDelay, o.RetryFactor, o.RetryJitter = c.retries, c.delay, c.factor, c.jitter
				})
				if _, err := d.Get(t.Context(), lb("l")); azure.KindOf(err) != azure.Unavailable {
					t.Fatal(err)
				}
				_, at := s.trace()
				if len(at) != len(c.want)+1 {
					t.Fatalf("%d requests, want %d", len(at), len(c.want)+1)
				}
				for i, want := range c.want {
					if wait := (at[i+1] - at[i]).Seconds(); wait < want-.001 || wait > want*(1+c.jitter)+.001 {
						t.Errorf("retry %d after %.2f s, want %v s and at most %v of that more", i+1, wait, want, c.jitter)
					}
				}
			})
		})
	}
}

// The headers of a request, and what must never leave the process otherwise.
func TestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := script(answer{status: 200, body: resource(lb("a b(1)"), "Succeeded")})
		d := open(t, s, func(c *Config) {
			c.UserAgent, c.Auxiliary = "me/1", token("other-token")
			c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		body := azure.Document(`{"properties":{"adminPassword":"hunter2"}}`)
		if _, err := d.Put(t.Context(), azure.Write{ID: lb("a b(1)"), Body: body, IfMatch: `W/"7"`}); err != nil {
			t.Fatal(err)
		}
		r := s.requests()[0]
		for name, want := range map[string]string{
			"Authorization": "Bearer secret-token", "X-Ms-Authorization-Auxiliary": "Bearer other-token",
			"If-Match": `W/"7"`, "User-Agent": "me/1", "Content-Type": "application/json",
		} {
			if got := r.header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if r.path != string(lb("a b(1)")) || r.query != "api-version=2025-05-01" || r.body != string(body) {
			t.Errorf("sent %s?%s %s", r.path, r.query, r.body)
		}
		if r.header.Get("X-Ms-Client-Request-Id") == "" || r.header.Get("X-Ms-Correlation-Request-Id") == "" {
			t.Error("request ids are missing")
		}
		if lines := strings.Count(log.String(), "\n"); lines != 1 {
			t.Errorf("%d lines of log for one request:\n%s", lines, log.String())
		}
		for _, secret := range []string{"hunter2", "secret-token", "other-token"} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log has %q:\n%s", secret, log.String())
			}
		}
	})
}

func TestCreateDemandsThatNothingIsThere(t *testing.T) {
	s := script(answer{status: 201, body: `{"id":"x"}`})
	d := open(t, s)
	if _, err := d.Put(t.Context(), azure.Write{ID: lb("l"), Body: azure.Document(`{}`), Create: true}); err != nil {
		t.Fatal(err)
	}
	if got := s.requests()[0].header.Get("If-None-Match"); got != "*" {
		t.Errorf("If-None-Match %q, want *", got)
	}
}

// Requests that cannot be right are refused before anything is sent.
func TestInvalidRequests(t *testing.T) {
	body := azure.Document(`{}`)
	for name, do := range map[string]func(*Client) error{
		"no id":        func(d *Client) error { _, err := d.Get(t.Context(), ""); return err },
		"no id at all": func(d *Client) error { _, err := d.Get(t.Context(), "x"); return err },
		"dots": func(d *Client) error {
			return d.Delete(t.Context(), group.Resource("Microsoft.Network/loadBalancers", ".."))
		},
		"unknown type": func(d *Client) error { return d.Delete(t.Context(), group.Resource("Contoso.Rockets/rockets", "r")) },
		"empty body":   func(d *Client) error { _, err := d.Put(t.Context(), azure.Write{ID: lb("l")}); return err },
		"new and with etag": func(d *Client) error {
			_, err := d.Put(t.Context(), azure.Write{ID: lb("l"), Body: body, IfMatch: "x", Create: true})
			return err
		},
		"no action":           func(d *Client) error { _, err := d.Post(t.Context(), lb("l"), "", nil); return err },
		"query in the action": func(d *Client) error { _, err := d.Post(t.Context(), lb("l"), "start?x=y", nil); return err },
		"list without type":   func(d *Client) error { _, err := d.List(t.Context(), azure.Query{Scope: group}); return err },
		"list in a bad scope": func(d *Client) error {
			_, err := d.List(t.Context(), azure.Query{Scope: "x", Type: "Microsoft.Network/loadBalancers"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := script(answer{status: 200, body: "{}"})
			if err := do(open(t, s)); azure.KindOf(err) != azure.Invalid {
				t.Errorf("error %v, want one of kind invalid", err)
			}
			if n := len(s.requests()); n != 0 {
				t.Errorf("%d requests were sent", n)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]Config{
		"no endpoint":      {},
		"no scheme":        {Endpoint: "management.azure.com"},
		"another scheme":   {Endpoint: "ftp://x"},
		"user in endpoint": {Endpoint: "https://u:p@x"},
		"bad version":      {Endpoint: endpoint, APIVersions: map[string]string{"Microsoft.Network": "latest"}},
	} {
		if d, err := New(c); err == nil || d != nil || strings.Contains(err.Error(), ":p@") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClientsShareARegisterer(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	s := script(answer{status: 200, body: resource(lb("l"), "Succeeded")})
	for range 2 {
		d := open(t, s, func(c *Config) { c.Registerer = r })
		if _, err := d.Get(t.Context(), lb("l")); err != nil {
			t.Fatal(err)
		}
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "kaz_arm_request_duration_seconds" {
			if n := f.GetMetric()[0].GetHistogram().GetSampleCount(); n != 2 || len(f.GetMetric()) != 1 {
				t.Errorf("%d requests counted in %d series, want 2 in 1", n, len(f.GetMetric()))
			}
			return
		}
	}
	t.Error("requests are not counted")
}

type refusal struct{}

func (refusal) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, errors.New("client secret is wrong")
}

func TestCredentialRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, set := range map[string]func(*Config){
			"credential": func(c *Config) { c.Credential = refusal{} },
			"auxiliary":  func(c *Config) { c.Auxiliary = refusal{} },
		} {
			s := script(answer{status: 200})
			_, err := open(t, s, set).Get(t.Context(), lb("l"))
			if azure.KindOf(err) != azure.Denied || !strings.Contains(err.Error(), "client secret is wrong") || len(s.requests()) != 0 {
				t.Errorf("%s: %v after %d requests", name, err, len(s.requests()))
			}
		}
	})
}

// TestProviderIsRegistered checks that the first use of a provider registers it, once for all callers
// that need it.
func TestProviderIsRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registered time.Time
		var mu sync.Mutex
		s := &server{answer: func(_ int, r request) answer {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case r.method == http.MethodPost:
				registered = time.Now().Add(8 * time.Second)
				return answer{status: 200, body: `{"registrationState":"Registering"}`}
			case strings.HasSuffix(r.path, "/providers/Microsoft.Network"):
				if time.Now().Before(registered) {
					return answer{status: 200, body: `{"registrationState":"Registering"}`}
				}
				return answer{status: 200, body: `{"registrationState":"Registered"}`}
			case registered.IsZero() || time.Now().Before(registered):
				return answer{status: 409, body: fail("MissingSubscriptionRegistration"), after: time.Second}
			}
			return answer{status: 200, body: resource(lb("l"), "Succeeded")}
		}}
		d := open(t, s)
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				if _, err := d.Put(t.Context(), azure.Write{ID: lb(fmt.Sprint(i)), Body: azure.Document(`{}`)}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		posts := 0
		for _, r := range s.requests() {
			if r.method == http.MethodPost {
				posts++
			}
		}
		if posts != 1 {
			t.Errorf("registered %d times", posts)
		}
	})
}
