package arm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/pause"
)

// unreadable is how many reads of an operation's state may fail in a row, each
// after its own retries, before the wait is given up.
const unreadable = 5

// perform sends a write. The returned operation waits until Azure has finished the write. No lock is held meanwhile.
// The end of ctx ends the wait, but not the operation in Azure. Before the write is sent, the wait ends at once.
// After that, it ends when the client's time for finishing is over.
func (d *Client) perform(ctx context.Context, c call) (*azure.Operation, error) {
	start := time.Now()
	ended := func(doc azure.Document, err error) (azure.Document, error) {
		took := time.Since(start)
		d.metrics.finished(c.subject, err, took)
		d.metrics.known.Finished(c.shown(), err, took)
		if err != nil {
			return nil, err
		}
		return doc, nil
	}
	lasting, done := d.outlast(ctx)
	if c.method != http.MethodPut {
		d.seen.note(c)
	}
	op, err := d.begin(ctx, lasting, c)
	if err != nil {
		done()
		_, err = ended(nil, err)
		return nil, err
	}
	return azure.Later(func(later context.Context) (azure.Document, error) {
		if later != ctx { // another caller waits
			done()
			lasting, done = d.outlast(later)
		}
		defer done()
		doc, err := ended(d.finish(lasting, op))
		if err == nil || c.method != http.MethodPut { // a failed deletion may have deleted
			d.seen.note(c)
		}
		if c.method == http.MethodDelete && azure.IsNotFound(err) {
			return nil, nil
		}
		return doc, err
	}), nil
}

// begin sends a write and finds out how Azure shows its state.
func (d *Client) begin(ctx, lasting context.Context, c call) (*operation, error) {
	if c.isPrompt() {
		c.subject.Turns = ""
	}
	end, err := d.budget.Await(ctx, c.subject.Turns)
	if err != nil {
		return nil, interrupted(ctx, c)
	}
	defer end()
	first, failure := d.sendLasting(ctx, lasting, c)
	if failure != nil && failure.Code == unregistered && d.register(ctx, c) == nil {
		first, failure = d.sendLasting(ctx, lasting, c)
	}
	if failure != nil {
		return nil, failure
	}
	op, err := d.started(c, first)
	if err != nil {
		return nil, &azure.Error{Kind: azure.Internal, Op: c.op, ID: c.id, Status: first.status, Cause: err}
	}
	op.replaced = c.subject.Shared && c.header.Get("If-None-Match") != "" && first.status == http.StatusOK
	return op, nil
}

// finish waits until Azure has finished. If Azure replaced a shared document although the request demanded a new one,
// changes of other writers may be lost. That is an error of kind Changed, so that the caller reads again and adds
// what is missing.
func (d *Client) finish(ctx context.Context, op *operation) (azure.Document, error) {
	if err := d.wait(ctx, op); err != nil {
		return nil, err
	}
	if op.replaced {
		return nil, &azure.Error{Kind: azure.Changed, Op: op.call.op, ID: op.call.id, Status: op.last.status,
			Message: "azure replaced a resource that the request demanded to be new"}
	}
	return d.result(ctx, op)
}

// outlast returns a context that ends later than ctx, by the client's time for finishing.
func (d *Client) outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.finishing <= 0 {
		return ctx, func() {}
	}
	lasting, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = pause.For(lasting, d.finishing) // it ends early when the write is done
		end(context.Cause(ctx))
	})
	return lasting, func() {
		stop()
		end(nil)
	}
}

// form is where Azure shows the state of an operation.
type form int

const (
	inReply    form = iota // the first reply says that it is done
	inStatus               // a status document: Azure-AsyncOperation, Operation-Location
	inLocation             // the HTTP status of the Location
	inResource             // provisioningState of the resource
)

// operation is a write that Azure has accepted.
type operation struct {
	call     call
	form     form
	poll     *url.URL
	location *url.URL
	last     reply
	accepted []byte        // the body of the first reply
	polls    int           // waits without a Retry-After so far
	first    time.Duration // the wait before the first poll
	entry    *entry        // nil if no list shows the operation
	replaced bool          // Azure replaced a resource that should have been new
	began    time.Time
}

// started finds out how Azure tells the state of what it just accepted.
func (d *Client) started(c call, first reply) (*operation, error) {
	op := &operation{call: c, last: first, accepted: first.body, began: time.Now()}
	var err error
	if location := first.header.Get("Location"); location != "" && needsLocation(c, first) {
		if op.location, err = d.build.trusted(location); err != nil {
			return nil, err
		}
	}
	merges := c.method == http.MethodPut || c.method == http.MethodPatch
	state := provisioningState(first.body)
	switch {
	case merges && strings.EqualFold(state, "Succeeded"):
		// Azure gives a polling URL even if the write is done at once.
	case hasStatusURL(first):
		op.form = inStatus
		op.poll, err = d.build.trusted(statusURL(first))
	case op.location != nil:
		op.form, op.poll = inLocation, op.location
	case merges && (first.status == http.StatusAccepted || state != ""):
		op.form, op.poll = inResource, c.url
	case first.status == http.StatusAccepted:
		return nil, errors.New("azure accepted the request but does not say where its state is shown")
	}
	return op, err
}

// needsLocation reports whether the client follows the Location of a reply. A Location may also name the resource.
func needsLocation(c call, first reply) bool {
	if hasStatusURL(first) {
		return c.method == http.MethodPost // the answer of the action is there
	}
	return first.status == http.StatusAccepted
}

func hasStatusURL(r reply) bool { return statusURL(r) != "" }

func statusURL(r reply) string {
	return or(r.header.Get("Azure-AsyncOperation"), r.header.Get("Operation-Location"))
}

// wait polls until the operation ended, and returns its failure.
func (d *Client) wait(ctx context.Context, op *operation) error {
	if op.form == inReply {
		return nil
	}
	if op.form == inResource {
		if done, err := op.ended(); done || err != nil {
			return err
		}
	}
	if op.call.isPrompt() {
		return d.waitPromptly(ctx, op)
	}
	var over func()
	op.entry, over = d.listPolls.join(op.call)
	defer over()
	for failures := 0; ; {
		ended, err := d.untilPoll(ctx, op)
		if err != nil {
			return interrupted(ctx, op.call)
		}
		if ended {
			return nil
		}
		if failure := d.readState(ctx, op); failure != nil {
			if failures++; ctx.Err() != nil || failures >= unreadable {
				return d.lost(ctx, op, failure)
			}
			continue
		}
		failures = 0
		if done, err := op.ended(); done || err != nil {
			return err
		}
	}
}

// untilPoll waits until the next poll is due. It reports whether the operation is known by then to have succeeded.
func (d *Client) untilPoll(ctx context.Context, op *operation) (ended bool, err error) {
	wait := d.pace(op)
	op.first = or(op.first, wait)
	switch {
	case op.entry != nil && op.entry.leaves:
		return false, d.awaitDeletion(ctx, op.entry, wait)
	case op.entry != nil && op.form == inStatus && d.listPolls.waits(op.entry):
		return d.awaitCreation(ctx, op, wait)
	case op.isLate(wait):
		return d.watch(ctx, op, wait)
	}
	return false, pause.For(ctx, wait)
}

// readState polls once.
func (d *Client) readState(ctx context.Context, op *operation) *azure.Error {
	r, failure := d.send(ctx, d.follow(op.call, op.poll, "poll"))
	return d.take(op, r, failure)
}

// take reads the answer of a poll.
func (d *Client) take(op *operation, r reply, failure *azure.Error) *azure.Error {
	if failure != nil {
		op.last.header = nil // the wait that it named is over
		return failure
	}
	op.last = r
	if op.form == inStatus && r.status == http.StatusOK && op.state() == "" {
		return &azure.Error{Kind: azure.Unavailable, Op: op.call.op, ID: op.call.id, Status: r.status,
			Message: "the polling document has no status"}
	}
	if next := r.header.Get("Location"); op.form == inLocation && r.status == http.StatusAccepted && next != "" {
		to, err := d.build.trusted(next)
		if err != nil {
			return &azure.Error{Kind: azure.Internal, Op: op.call.op, ID: op.call.id, Cause: err}
		}
		op.poll = to
	}
	return nil
}

// pace is the wait until the next poll: the one that Azure asks for, or else a growing one.
func (d *Client) pace(op *operation) time.Duration {
	if wait := retryAfter(op.last.header, time.Now()); wait > 0 {
		if d.minimumRetry {
			wait = max(wait, d.retry.delay)
		}
		return wait
	}
	wait := min(firstPoll<<min(op.polls, 4), longestPoll)
	if op.call.isPrompt() {
		wait = max(promptPace(op.call.promptMedian(), time.Since(op.began)), time.Duration(d.prompt.Load())*time.Second/promptRate)
	}
	op.polls++
	return min(wait, longestPoll)
}

const (
	firstPoll   = 500 * time.Millisecond
	longestPoll = 8 * time.Second
)

// lost is the error of an operation with a state that cannot be read, nil for a deletion that succeeded. The state of
// a deletion may be gone together with the deleted resource.
func (d *Client) lost(ctx context.Context, op *operation, failure *azure.Error) error {
	if ctx.Err() != nil {
		return interrupted(ctx, op.call)
	}
	if op.call.method == http.MethodDelete && failure.Kind == azure.NotFound {
		resource := op.call
		resource.method, resource.subject.Verb = http.MethodGet, "get"
		if _, absent := d.send(ctx, resource); absent != nil && absent.Kind == azure.NotFound {
			return nil
		}
	}
	e := *failure
	e.Cause = fmt.Errorf("azure accepted the request, but its state cannot be read: %w", failure)
	e.Message, e.Code = "", ""
	if e.Kind == azure.NotFound { // it is the state that was not found
		e.Kind = azure.Unavailable
	}
	return &e
}

// status is what a polling document says. Members of other types are no error:
// the location form may answer with any resource.
type status struct {
	state  string
	output json.RawMessage
}

func parseStatus(body []byte) status {
	var doc struct {
		Status     json.RawMessage `json:"status"`
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return status{}
	}
	var properties struct {
		Output json.RawMessage `json:"output"`
	}
	_ = json.Unmarshal(doc.Properties, &properties) // no object has no output
	s := status{output: properties.Output}
	_ = json.Unmarshal(doc.Status, &s.state) // no text is no state
	return s
}

func provisioningState(body []byte) string {
	var doc struct {
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return ""
	}
	var properties struct {
		ProvisioningState json.RawMessage `json:"provisioningState"`
	}
	_ = json.Unmarshal(doc.Properties, &properties) // no object has no state
	var state string
	_ = json.Unmarshal(properties.ProvisioningState, &state) // no text is no state
	return state
}

// state is the operation's state by the last reply's body, "" if that has none.
func (op *operation) state() string {
	switch op.form {
	case inStatus:
		return or(parseStatus(op.last.body).state, provisioningState(op.last.body))
	case inLocation:
		if op.last.status == http.StatusAccepted || op.call.method == http.MethodPost {
			return ""
		}
	}
	return provisioningState(op.last.body)
}

// ended reads the last reply: whether the operation has ended, and its failure.
func (op *operation) ended() (bool, error) {
	state := op.state()
	if state == "" { // Azure leaves it to the HTTP status
		return op.last.status != http.StatusAccepted, nil
	}
	switch strings.ToLower(state) {
	case "succeeded":
		return true, nil
	case "failed", "canceled":
		return true, op.failed(state)
	}
	return false, nil
}

func (op *operation) failed(state string) error {
	var doc struct {
		Error      json.RawMessage `json:"error"`
		Properties struct {
			Error json.RawMessage `json:"error"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(op.last.body, &doc) // an unreadable body gives no explanation
	f := parseFault(doc.Error)
	if len(f.codes) == 0 {
		f = parseFault(doc.Properties.Error)
	}
	e := f.failed(op.call, http.StatusOK)
	if len(f.codes) == 0 && strings.EqualFold(state, "canceled") {
		e.Kind = azure.Changed // only a newer operation cancels one
	}
	if e.Message == "" {
		e.Message = "the operation ended in state " + state
	}
	return e
}

// result is what the caller of a finished operation gets: the resource as it is
// now, or the answer of an action.
func (d *Client) result(ctx context.Context, op *operation) (azure.Document, error) {
	switch op.call.method {
	case http.MethodDelete:
		return nil, nil
	case http.MethodPost:
		return d.answer(ctx, op)
	}
	// A status document is no resource, and earlier replies lack what Azure fills in at the end.
	doc := azure.Document(op.last.body)
	if op.form != inStatus && isObject(doc) && (op.form != inLocation || doc.ID().Equal(op.call.id)) {
		return doc, nil
	}
	// For disks, the last status document holds the resource.
	if output := azure.Document(parseStatus(op.last.body).output); op.form == inStatus && output.ID().Equal(op.call.id) {
		return output, nil
	}
	if op.call.unseen {
		return nil, nil
	}
	c := d.follow(op.call, op.call.url, "get")
	c.document = true
	return d.read(ctx, c)
}

// answer is what an action returns: in the reply or the last poll, or at the Location beside a status document. Without all
// of them it is what the first reply said when Azure accepted the request.
func (d *Client) answer(ctx context.Context, op *operation) (azure.Document, error) {
	if op.form != inStatus {
		return op.last.body, nil
	}
	if output := parseStatus(op.last.body).output; len(output) > 0 {
		return azure.Document(output), nil
	}
	if op.location == nil {
		return azure.Document(op.accepted), nil
	}
	at := &operation{call: op.call, form: inLocation, poll: op.location}
	r, failure := d.send(ctx, d.follow(op.call, op.location, "poll"))
	if failure != nil {
		return nil, failure
	}
	at.last = r
	if done, err := at.ended(); !done && err == nil {
		if err := d.wait(ctx, at); err != nil {
			return nil, err
		}
	}
	return at.last.body, nil
}
