package arm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"kaz/internal/arm/budget"
	"kaz/internal/azure"
	"kaz/internal/observe/trace"
	"kaz/internal/pause"
)

type retryOptions struct {
	times        int
	delay        time.Duration
	factor       float64
	jitter       float64 // negative: a fifth in both directions
	throttleWait time.Duration
}

// largestReply bounds what is read of one answer; a page of a thousand instances
// with their views is a few megabytes.
const largestReply = 64 << 20

// send sends a request until Azure answers it, and retries what is safe.
func (d *Client) send(ctx context.Context, c call) (reply, *azure.Error) {
	return d.sendLasting(ctx, ctx, c)
}

// sendLasting is send with a second context for requests on their way. It sends nothing after the end of ctx, and
// gives up what was sent at the end of lasting.
func (d *Client) sendLasting(ctx, lasting context.Context, c call) (reply, *azure.Error) {
	var p patience
	p.start = time.Now()
	for {
		r, failure := d.attempt(ctx, lasting, c, d.retry.throttleWait-time.Since(p.start))
		if failure == nil {
			return r, nil
		}
		failure.Unsure = p.unsure
		again, wait := d.again(c, failure, &p)
		if !again {
			return r, failure.Error
		}
		p.unsure = p.unsure || failure.Status != http.StatusTooManyRequests && !failure.unsent && !failure.waiting
		d.metrics.retried(c.subject, failure.Kind)
		if pause.For(ctx, wait) != nil {
			return r, interrupted(ctx, c)
		}
	}
}

// patience counts what a request has cost so far.
type patience struct {
	start              time.Time
	retries, throttled int
	unsure             bool // an attempt got no clear answer
}

// failure is why an attempt did not succeed.
type failure struct {
	*azure.Error
	unsent  bool // Azure cannot have seen the request
	futile  bool // the next attempt will fail alike
	waiting bool // the budget turned it away
}

// cause is the error, if there is one.
func (f *failure) cause() error {
	if f == nil {
		return nil
	}
	return f.Error
}

// azureError is the error as Azure's kinds have it, nil if there is none.
func (f *failure) azureError() *azure.Error {
	if f == nil {
		return nil
	}
	return f.Error
}

// again decides whether a request that failed is sent again, and when.
func (d *Client) again(c call, f *failure, p *patience) (bool, time.Duration) {
	if f.Status == http.StatusTooManyRequests && f.Kind == azure.Throttled && !c.once {
		// The budget is closed now. The next attempt waits there.
		const most = 20
		p.throttled++
		return p.throttled <= most, 0
	}
	p.retries++
	if c.once || f.futile || f.waiting || p.retries > d.retry.times || !transient(f) {
		return false, 0
	}
	// Azure merges a PATCH, so kaz may repeat a PATCH like a PUT.
	if (c.additive || c.method == http.MethodPost) && !f.unsent {
		return false, 0
	}
	wait := max(d.retry.backoff(p.retries), f.RetryAfter)
	return time.Since(p.start)+wait <= d.retry.throttleWait, wait
}

func transient(f *failure) bool {
	switch f.Status {
	case 0, http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return f.Kind == azure.Unavailable && f.Status < 300
}

// backoff is the wait before a retry. Each wait is longer than the one before, up to a minute, or up to the first
// wait if that is longer. It is randomized so that callers that failed together do not retry together.
func (o retryOptions) backoff(retry int) time.Duration {
	longest := max(o.delay, time.Minute).Seconds()
	wait := min(o.delay.Seconds()*math.Pow(o.factor, float64(retry-1)), longest)
	if o.jitter >= 0 {
		wait *= 1 + rand.Float64()*o.jitter
	} else {
		wait *= 0.8 + rand.Float64()*0.4
	}
	return time.Duration(wait * float64(time.Second))
}

// attempt sends a request once, when the budget lets it.
func (d *Client) attempt(ctx, lasting context.Context, c call, patience time.Duration) (reply, *failure) {
	turn, err := d.budget.Enter(ctx, c.subject, patience)
	if err == nil && ctx.Err() != nil {
		turn.Unused()
		err = ctx.Err()
	}
	if err != nil {
		if ctx.Err() != nil {
			return reply{}, &failure{Error: interrupted(ctx, c), futile: true}
		}
		d.metrics.known.Throttled(c.shown())
		return reply{}, &failure{Error: throttled(c, err), waiting: true}
	}
	d.metrics.waited(c, turn)
	lasting, span := trace.Start(lasting, c.method+" "+c.spelled,
		slog.String("azure_id", string(c.id)), slog.String("verb", c.subject.Verb),
		slog.String("correlation_id", c.correlation), slog.Duration("budget_wait", turn.Waited))
	start := time.Now()
	r, f := d.exchange(lasting, c)
	turn.Done(r.status, r.header, f.azureError())
	d.observe(ctx, c, r, f, time.Since(start))
	span.Set(slog.Int("status", r.status), slog.String("request_id", r.header.Get("X-Ms-Request-Id")))
	span.End(f.cause())
	return r, f
}

// throttled is the error of a request that was not sent. Azure asks all requests of its kind to wait longer than this
// request may.
func throttled(c call, err error) *azure.Error {
	e := &azure.Error{Kind: azure.Throttled, Op: c.op, ID: c.id, Cause: err}
	if closed, ok := errors.AsType[*budget.ClosedError](err); ok {
		e.RetryAfter = closed.Wait
	}
	return e
}

// exchange sends a request and reads the answer.
func (d *Client) exchange(ctx context.Context, c call) (reply, *failure) {
	limited, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	req, err := d.request(limited, c)
	if err != nil {
		return reply{}, &failure{Error: &azure.Error{Kind: azure.Internal, Op: c.op, ID: c.id, Cause: err}, futile: true}
	}
	resp, err := d.pipeline.Do(req)
	if err != nil {
		return reply{}, unanswered(ctx, c, err)
	}
	defer resp.Body.Close()
	r := reply{status: resp.StatusCode, header: resp.Header}
	r.body, err = io.ReadAll(io.LimitReader(resp.Body, largestReply+1))
	switch {
	case err != nil:
		return r, unanswered(ctx, c, err)
	case len(r.body) > largestReply:
		err := fmt.Errorf("the answer is larger than %d bytes", largestReply)
		return r, &failure{Error: &azure.Error{Kind: azure.Internal, Op: c.op, ID: c.id, Status: r.status, Cause: err}, futile: true}
	}
	return r, judged(c, r)
}

func (d *Client) request(ctx context.Context, c call) (*policy.Request, error) {
	req, err := runtime.NewRequest(ctx, c.method, c.url.String())
	if err != nil {
		return nil, err
	}
	runtime.SkipBodyDownload(req) // it is read above, with a bound
	h := req.Raw().Header
	maps.Copy(h, c.header)
	h.Set("Accept", "application/json")
	h.Set("User-Agent", d.userAgent)
	h.Set("X-Ms-Correlation-Request-Id", c.correlation)
	h.Set("X-Ms-Client-Request-Id", newUUID())
	if len(c.body) > 0 {
		return req, req.SetBody(streaming.NopCloser(bytes.NewReader(c.body)), "application/json")
	}
	return req, nil
}

// unanswered is the failure of a request that got no answer, or half of one.
func unanswered(ctx context.Context, c call, err error) *failure {
	if ctx.Err() != nil {
		return &failure{Error: interrupted(ctx, c), futile: true}
	}
	if _, ok := errors.AsType[nonRetriable](err); ok {
		return &failure{Error: &azure.Error{Kind: credentialKind(err), Op: c.op, ID: c.id, Cause: err}, futile: true, unsent: true}
	}
	var dial *net.OpError
	unsent := errors.As(err, &dial) && dial.Op == "dial"
	return &failure{Error: &azure.Error{Kind: azure.Unavailable, Op: c.op, ID: c.id, Cause: err}, unsent: unsent}
}

// nonRetriable marks azcore's errors before a request is sent; here they all come
// from credentials.
type nonRetriable interface {
	error
	NonRetriable()
}

// credentialKind tells a refused credential from an identity service that is down,
// or that did not answer at all.
func credentialKind(err error) azure.Kind {
	if e, ok := errors.AsType[*azure.Error](err); ok { // a token that is itself kept in Azure
		return e.Kind
	}
	e, ok := errors.AsType[*azidentity.AuthenticationFailedError](err)
	if !ok {
		return azure.Denied
	}
	if e.RawResponse == nil || e.RawResponse.StatusCode >= 500 || e.RawResponse.StatusCode == http.StatusTooManyRequests {
		return azure.Unavailable
	}
	return azure.Denied
}

// judged is the failure that an answer stands for, nil for success.
func judged(c call, r reply) *failure {
	if r.status >= 200 && r.status < 300 {
		if c.document && !isObject(r.body) && (c.subject.Verb != "list" || !isArray(r.body)) {
			return &failure{Error: &azure.Error{Kind: azure.Unavailable, Op: c.op, ID: c.id, Status: r.status,
				Message: "the answer has no document"}}
		}
		return nil
	}
	e := parseFault(r.body).failed(c, r.status)
	e.RetryAfter = retryAfter(r.header, time.Now())
	return &failure{Error: e}
}

// interrupted is the error of a caller that gave up.
func interrupted(ctx context.Context, c call) *azure.Error {
	cause := context.Cause(ctx)
	return &azure.Error{Kind: azure.KindOf(ctx.Err()), Op: c.op, ID: c.id, Cause: cause}
}

func newUUID() string {
	id, err := runtime.NewUUID()
	if err != nil { // the system has no random numbers; ids only serve to find a request in logs
		return ""
	}
	return id
}
