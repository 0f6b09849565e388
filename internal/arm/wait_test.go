package arm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure"
)

const (
	operations = endpoint +
		"/subscriptions/s1/providers/Microsoft.Network/locations/eastus/operations/o1?api-version=2025-05-01&t=1&s=x%2By"
	results = endpoint + "/subscriptions/s1/providers/Microsoft.Network/locations/eastus/operationResults/o1?api-version=2025-05-01"
)

func header(pairs ...string) map[string]string {
	h := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = pairs[i+1]
	}
	return h
}

// TestOperationForms checks every form in which Azure shows a long-running operation, and the result
// for a caller.
func TestOperationForms(t *testing.T) {
	id := lb("l")
	done := resource(id, "Succeeded")
	port := func(link string) string { return strings.Replace(link, endpoint, endpoint+":443", 1) }
	async := header("Azure-AsyncOperation", operations)
	both := header("Azure-AsyncOperation", operations, "Location", results)
	located := header("Location", results)
	put := func(ctx context.Context, d *Client) (azure.Document, error) {
		return d.Put(ctx, azure.Write{ID: id, Body: azure.Document(`{}`)})
	}
	patch := func(ctx context.Context, d *Client) (azure.Document, error) {
		return d.Patch(ctx, azure.Write{ID: id, Body: azure.Document(`{}`)})
	}
	unseen := func(ctx context.Context, d *Client) (azure.Document, error) {
		return d.Put(ctx, azure.Write{ID: id, Body: azure.Document(`{}`), Unseen: true})
	}
	del := func(ctx context.Context, d *Client) (azure.Document, error) { return nil, d.Delete(ctx, id) }
	post := func(ctx context.Context, d *Client) (azure.Document, error) { return d.Post(ctx, id, "start", nil) }
	running, succeeded := answer{status: 200, body: `{"status":"InProgress"}`}, answer{status: 200, body: `{"status":"Succeeded"}`}

	for _, c := range []struct {
		name    string
		do      func(context.Context, *Client) (azure.Document, error)
		answers []answer
		want    string
		kind    azure.Kind // with fails
		fails   string     // in the error
		sent    int
		waits   []float64 // seconds between requests, when given
	}{
		{name: "put, 200 and done", do: put, answers: []answer{{status: 200, body: done}}, want: done, sent: 1},
		{name: "put, 201 without a state", do: put, answers: []answer{{status: 201, body: `{"id":"x"}`}}, want: `{"id":"x"}`, sent: 1},
		{name: "put, 200 and empty, so it is read", do: put, answers: []answer{{status: 200}, {status: 200, body: done}},
			want: done, sent: 2},
		{name: "put, a polling url but done already", do: put, answers: []answer{{status: 200, header: async, body: done}},
			want: done, sent: 1},
		{name: "put, 201 and a relative location that is the resource", do: put,
			answers: []answer{{status: 201, header: header("Location", string(id)), body: done}}, want: done, sent: 1},
		{name: "put, status document", do: put,
			answers: []answer{{status: 201, header: async, body: resource(id, "Updating")}, running, succeeded, {status: 200, body: done}},
			want:    done, sent: 4, waits: []float64{.5, 1, 0}},
		{name: "put, status document at a URL with the default port", do: put,
			answers: []answer{{status: 201, header: header("Azure-AsyncOperation", port(operations)), body: resource(id, "Updating")},
				running, succeeded, {status: 200, body: done}}, want: done, sent: 4},
		{name: "delete, location with the default port", do: del,
			answers: []answer{{status: 202, header: header("Location", port(results))},
				{status: 202, header: header("Location", port(results))}, {status: 204}}, sent: 3},
		{name: "put, status document that holds the resource", do: put,
			answers: []answer{{status: 202, header: both},
				{status: 200, body: `{"status":"Succeeded","properties":{"output":` + done + `}}`}}, want: done, sent: 2},
		{name: "put, status document that holds something else", do: put,
			answers: []answer{{status: 202, header: both},
				{status: 200, body: `{"status":"Succeeded","properties":{"output":{"id":"/other"}}}`}, {status: 200, body: done}},
			want: done, sent: 3},
		{name: "put, unseen and done: the answer costs nothing", do: unseen, answers: []answer{{status: 200, body: done}},
			want: done, sent: 1},
		{name: "put, unseen and status document: it is not read again", do: unseen,
			answers: []answer{{status: 201, header: async, body: resource(id, "Updating")}, running, succeeded}, sent: 3,
			waits: []float64{.5, 1}},
		{name: "put, unseen and it fails", do: unseen,
			answers: []answer{{status: 201, header: async}, {status: 200, body: `{"status":"Canceled"}`}}, kind: azure.Changed,
			fails: "Canceled", sent: 2},
		{name: "put, Operation-Location", do: put,
			answers: []answer{{status: 201, header: header("Operation-Location", operations)}, succeeded, {status: 200, body: done}},
			want:    done, sent: 3},
		{name: "put, growing waits", do: put,
			answers: []answer{{status: 201, header: async}, running, running, running, running, running, running, succeeded,
				{status: 200, body: done}},
			want: done, sent: 9, waits: []float64{.5, 1, 2, 4, 8, 8, 8, 0}},
		{name: "put, Retry-After rules each wait", do: put,
			answers: []answer{{status: 201, header: header("Azure-AsyncOperation", operations, "Retry-After", "10")},
				{status: 200, header: header("Retry-After", "1"), body: `{"status":"InProgress"}`}, running, succeeded,
				{status: 200, body: done}},
			want: done, sent: 5, waits: []float64{10, 1, .5, 0}},
		{name: "put, Retry-After in milliseconds", do: put,
			answers: []answer{{status: 201, header: header("Azure-AsyncOperation", operations, "x-ms-retry-after-ms", "250")}, succeeded,
				{status: 200, body: done}},
			want: done, sent: 3, waits: []float64{.25, 0}},
		{name: "put, state in the resource", do: put,
			answers: []answer{{status: 201, body: resource(id, "RegisteringDns")}, {status: 200, body: resource(id, "Updating")},
				{status: 200, body: done}},
			want: done, sent: 3, waits: []float64{.5, 1}},
		{name: "put, 202 and state in the resource", do: put, answers: []answer{{status: 202}, {status: 200, body: done}},
			want: done, sent: 2},
		{name: "put, 202 with location", do: put,
			answers: []answer{{status: 202, header: header("Location", results, "Retry-After", "17")}, {status: 202},
				{status: 200, body: `{"other":1}`}, {status: 200, body: done}},
			want: done, sent: 4, waits: []float64{17, .5, 0}},
		{name: "put, the location moves", do: put,
			answers: []answer{{status: 202, header: located}, {status: 202, header: header("Location", results+"&moved=1")},
				{status: 200, body: done}},
			want: done, sent: 3},
		{name: "put, fails in the status document", do: put,
			answers: []answer{{status: 201, header: async},
				{status: 200,
					body: `{"status":"Failed","error":{"code":"RetryableError","message":"A retryable error occurred.","details":[{"code":"ReferencedResourceNotProvisioned","message":"resource /subscriptions/s1/resourceGroups/g/providers/Microsoft.Network/publicIPAddresses/p is not in Succeeded state"}]}}`}},
			kind: azure.Busy, fails: "ReferencedResourceNotProvisioned", sent: 2},
		{name: "put, canceled by a newer one", do: put,
			answers: []answer{{status: 201, header: async},
				{status: 200,
					body: `{"status":"Canceled","error":{"code":"Canceled","message":"m","details":[{"code":"CanceledAndSupersededDueToAnotherOperation","message":"d"}]}}`}},
			kind: azure.Changed, fails: "CanceledAndSuperseded", sent: 2},
		{name: "put, canceled without a word", do: put,
			answers: []answer{{status: 201, header: async}, {status: 200, body: `{"status":"Canceled"}`}}, kind: azure.Changed,
			fails: "Canceled", sent: 2},
		{name: "put, a precondition fails in the poll", do: put,
			answers: []answer{{status: 202, header: both, body: "{}"},
				{status: 200, body: `{"error":{"code":"PreconditionFailed","message":"m"},"status":"Failed"}`}},
			kind: azure.Changed, fails: "PreconditionFailed", sent: 2},
		{name: "put, the resource ends failed", do: put,
			answers: []answer{{status: 201, body: resource(id, "Updating")}, {status: 200, body: resource(id, "Failed")}},
			kind:    azure.Internal, fails: "Failed", sent: 2},
		{name: "patch, as put", do: patch,
			answers: []answer{{status: 202, header: both, body: "{}"}, succeeded, {status: 200, body: done}}, want: done, sent: 3},
		{name: "delete, 204", do: del, answers: []answer{{status: 204}}, sent: 1},
		{name: "delete, 404 is gone", do: del, answers: []answer{{status: 404, body: fail("ResourceNotFound")}}, sent: 1},
		{name: "delete, 200 with async headers", do: del, answers: []answer{{status: 200, header: both}, running, succeeded}, sent: 3},
		{name: "delete, 202 with location to 204", do: del,
			answers: []answer{{status: 202, header: located}, {status: 202}, {status: 204}}, sent: 3},
		{name: "delete, 202 without a place to look", do: del, answers: []answer{{status: 202}}, kind: azure.Internal,
			fails: "does not say where", sent: 1},
		{name: "delete, its state is gone with it", do: del,
			answers: []answer{{status: 202, header: located}, {status: 404, body: fail("ResourceGroupNotFound")}}, sent: 2 + unreadable},
		{name: "post, 200 and an answer", do: post, answers: []answer{{status: 200, body: `{"keys":[]}`}}, want: `{"keys":[]}`, sent: 1},
		{name: "post, 204", do: post, answers: []answer{{status: 204}}, sent: 1},
		{name: "post, 202 without a place to look", do: post, answers: []answer{{status: 202}}, kind: azure.Internal,
			fails: "does not say where", sent: 1},
		{name: "post, answer at the location", do: post,
			answers: []answer{{status: 202, header: located}, {status: 202}, {status: 200, body: `{"a":1}`}}, want: `{"a":1}`, sent: 3},
		{name: "post, answer in the status document", do: post,
			answers: []answer{{status: 202, header: both},
				{status: 200, body: `{"status":"Succeeded","properties":{"output":{"accessSAS":"u"}}}`}},
			want: `{"accessSAS":"u"}`, sent: 2},
		{name: "post, status document, then the location", do: post,
			answers: []answer{{status: 202, header: both}, running, succeeded, {status: 200, body: `{"a":2}`}}, want: `{"a":2}`, sent: 4},
		{name: "post, nothing to answer", do: post, answers: []answer{{status: 202, header: async}, succeeded}, sent: 2},
		{name: "post, state of what it answers is not its own", do: post,
			answers: []answer{{status: 202, header: located}, {status: 200, body: resource(id, "Updating")}},
			want:    resource(id, "Updating"), sent: 2},
		{name: "poll, a gateway error is no failure of the operation", do: del,
			answers: []answer{{status: 202, header: located}, {status: 400, body: fail("Odd")}, {status: 204}}, sent: 3},
		{name: "poll, never readable", do: put,
			answers: []answer{{status: 201, header: async}, {status: 404, body: fail("NotFound")}}, kind: azure.Unavailable,
			fails: "state cannot be read", sent: 1 + unreadable},
		{name: "poll, an empty success says nothing", do: del,
			answers: []answer{{status: 202, header: async}, {status: 200}, succeeded}, sent: 3},
		{name: "poll, another host", do: del,
			answers: []answer{{status: 202, header: header("Azure-AsyncOperation", "https://evil.test/x")}}, kind: azure.Internal,
			fails: "evil.test", sent: 1},
		{name: "poll, the host with another name before it", do: del,
			answers: []answer{{status: 202, header: header("Location", "https://eastus.management.test/x")}, {status: 204}}, sent: 2},
		{name: "poll, without encryption", do: del,
			answers: []answer{{status: 202, header: header("Location", "http://management.test/x")}}, kind: azure.Internal,
			fails: "not followed", sent: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := script(c.answers...)
				got, err := c.do(t.Context(), open(t, s))
				if string(got) != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
				if c.fails == "" && err != nil || c.fails != "" &&
					(err == nil || !strings.Contains(err.Error(), c.fails) || azure.KindOf(err) != c.kind) {
					t.Errorf("error %v of kind %v, want %q of kind %v", err, azure.KindOf(err), c.fails, c.kind)
				}
				sent, at := s.trace()
				if len(sent) != c.sent {
					t.Errorf("sent %q, want %d requests", sent, c.sent)
				}
				var waits []float64
				for i := 1; i < len(at); i++ {
					waits = append(waits, (at[i] - at[i-1]).Seconds())
				}
				if diff := cmp.Diff(c.waits, waits); c.waits != nil && diff != "" {
					t.Errorf("waits (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A polling URL is signed and must come back as it was given, with the token.
func TestPollingURLIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script(answer{status: 202, header: header("Azure-AsyncOperation", operations)},
			answer{status: 200, body: `{"status":"Succeeded"}`})
		if err := open(t, s).Delete(t.Context(), lb("l")); err != nil {
			t.Fatal(err)
		}
		poll := s.requests()[1]
		if poll.query != "api-version=2025-05-01&t=1&s=x%2By" || poll.header.Get("Authorization") != "Bearer secret-token" {
			t.Errorf("polled with query %q and authorization %q", poll.query, poll.header.Get("Authorization"))
		}
	})
}

func TestCancelEndsTheWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script(answer{status: 202, header: header("Location", results, "Retry-After", "600")})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		start := time.Now()
		err := open(t, s).Delete(ctx, lb("l"))
		if azure.KindOf(err) != azure.Canceled || !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want canceled", err)
		}
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("came back after %v, want 3s", waited)
		}
	})
}

// TestWritesAreFinished checks a client that finishes its writes. A write that was sent when its caller gave up comes
// to its end, and an unsent one is not sent. After the time for finishing, the client gives up.
func TestWritesAreFinished(t *testing.T) {
	const operation = 30 * time.Second
	for name, c := range map[string]struct {
		finish, gives time.Duration
		want          azure.Kind // Exists for none
		ends          time.Duration
	}{
		"not at all":               {0, 3 * time.Second, azure.Canceled, 3 * time.Second},
		"on its way to Azure":      {time.Minute, time.Second, azure.Exists, 32 * time.Second},
		"while its operation runs": {time.Minute, 20 * time.Second, azure.Exists, 32 * time.Second},
		"it takes too long":        {5 * time.Second, 10 * time.Second, azure.Canceled, 15 * time.Second},
		"no caller gives up":       {time.Minute, time.Hour, azure.Exists, 32 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				s := &server{answer: func(n int, _ request) answer {
					switch {
					case n == 0: // the answer takes a while, too
						return answer{status: 201, header: header("Azure-AsyncOperation", operations, "Retry-After", "6"),
							after: 2 * time.Second}
					case time.Since(start) < operation:
						return answer{status: 200, header: header("Retry-After", "6"), body: `{"status":"InProgress"}`}
					}
					return answer{status: 200, body: `{"status":"Succeeded"}`}
				}}
				d := open(t, s, func(o *Config) { o.Finish = c.finish })
				ctx, cancel := context.WithTimeout(t.Context(), c.gives)
				defer cancel()
				_, err := d.Put(ctx, azure.Write{ID: lb("l"), Body: azure.Document(`{}`), Unseen: true})
				if c.want == azure.Exists && err != nil || c.want != azure.Exists && (err == nil || ctx.Err() == nil) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(start); took != c.ends {
					t.Errorf("it ended after %v, want %v", took, c.ends)
				}
				if ctx.Err() == nil {
					return
				}
				before := len(s.requests())
				if _, err := d.Put(ctx, azure.Write{ID: lb("l"), Body: azure.Document(`{}`)}); err == nil {
					t.Error("a write was begun after its caller had given up")
				}
				if sent := len(s.requests()) - before; sent != 0 {
					t.Errorf("%d requests were sent after their caller had given up", sent)
				}
			})
		})
	}
}

func TestMinimumRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon := header("Location", results, "Retry-After", "1")
		s := script(answer{status: 202, header: soon}, answer{status: 202, header: header("Retry-After", "9")}, answer{status: 204})
		d := open(t, s, func(c *Config) { c.MinimumRetryAfter, c.RetryDelay = true, 5*time.Second })
		if err := d.Delete(t.Context(), lb("l")); err != nil {
			t.Fatal(err)
		}
		if _, at := s.trace(); !slices.Equal(at, []time.Duration{0, 5 * time.Second, 14 * time.Second}) {
			t.Errorf("requests at %v, want 0, 5 and 14 s", at)
		}
	})
}

// Begin returns as soon as Azure has accepted the request. The operation waits for the end, for a caller that may
// have another context.
func TestBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		accepted := answer{status: 201, header: header("Azure-AsyncOperation", operations, "Retry-After", "30")}
		s := script(accepted, answer{status: 200, body: `{"status":"Succeeded"}`},
			answer{status: 200, body: resource(lb("l"), "Succeeded")},
			answer{status: 404, body: `{"error":{"code":"NotFound"}}`}, answer{status: 409, body: `{"error":{"code":"Conflict"}}`})
		d := open(t, s, func(c *Config) { c.Retries = -1 })
		start := time.Now()
		op, err := d.Begin(t.Context(), azure.Request{Verb: azure.Put, ID: lb("l"), Body: azure.Document(`{}`)})
		if err != nil || time.Since(start) > 0 || len(s.requests()) != 1 {
			t.Fatalf("accepted after %v and %d requests: %v", time.Since(start), len(s.requests()), err)
		}
		later, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if doc, err := op.Wait(later); err != nil || !doc.ID().Equal(lb("l")) || time.Since(start) != 30*time.Second {
			t.Errorf("%s after %v: %v", doc, time.Since(start), err)
		}
		op, err = d.Begin(t.Context(), azure.Request{Verb: azure.Delete, ID: lb("gone")})
		if err != nil {
			t.Fatal("a delete of what is not there:", err)
		}
		if _, err := op.Wait(t.Context()); err != nil {
			t.Error("a delete of what is not there:", err)
		}
		if _, err := d.Begin(t.Context(), azure.Request{Verb: azure.Post, ID: lb("l"), Action: "start"}); azure.KindOf(err) != azure.Busy {
			t.Errorf("a refused request: %v", err)
		}
		for _, r := range []azure.Request{{ID: lb("l")}, {Verb: "GET", ID: lb("l")}, {Verb: azure.Put, ID: lb("l")},
			{Verb: azure.Post, ID: lb("l")}} {
			if _, err := d.Begin(t.Context(), r); azure.KindOf(err) != azure.Invalid {
				t.Errorf("%+v: %v", r, err)
			}
		}
	})
}
