package azure

import (
	"context"
	"time"
)

// Query names a list of resources.
type Query struct {
	// Scope is what the list is in: a resource group, a subscription, or the
	// parent of sub-resources.
	Scope ID
	// Type is the full type of what is listed, "Microsoft.Network/loadBalancers".
	// For sub-resources it includes the parent's types.
	Type string
	// Expand and Filter are sent as $expand and $filter when not empty.
	Expand, Filter string
	// Suffix is the last label of the names of record sets, sent as $recordsetnamesuffix when not empty.
	Suffix string
	// Patience is how long the list may wait in all, between its pages, because Azure throttles. It then goes on with the next page.
	Patience time.Duration
}

// Reader reads Azure. Errors are [*Error].
type Reader interface {
	// Get reads one resource; its absence is an error of kind NotFound.
	Get(ctx context.Context, id ID) (Document, error)
	// List reads all pages of a list; nothing there is an empty list.
	List(ctx context.Context, q Query) ([]Document, error)
}

// Priority orders the requests that wait for the same limit of Azure: higher ones go first.
type Priority int8

// The priorities. A detached disk frees a place for one to attach, and pods wait for both.
const (
	Compare   Priority = iota - 1 // looks for differences; nothing waits for it
	Provision                     // the usual one: something is made, changed or deleted
	Attach                        // attaches disks
	Detach                        // detaches disks
)

// At returns a reader that reads with a priority. A reader that does not know priorities is returned as it is.
func At(r Reader, p Priority) Reader {
	if ranked, ok := r.(interface{ At(p Priority) Reader }); ok {
		return ranked.At(p)
	}
	return r
}

// Access is a reader and a writer of Azure.
type Access struct {
	Reader
	Writer
}

// At returns the reader with a priority.
func (a Access) At(p Priority) Reader { return At(a.Reader, p) }

// Verb is what a [Request] does.
type Verb string

// The verbs.
const (
	Put    Verb = "PUT"    // creates or replaces a resource
	Patch  Verb = "PATCH"  // merges the body into a resource
	Delete Verb = "DELETE" // removes a resource; one that is not there is no error
	Post   Verb = "POST"   // runs an action of a resource
	Get    Verb = "GET"    // reads what a header or parameter chooses, such as a snapshot; all else is read by a [Reader]
)

// Request is one change that a [Writer] makes.
type Request struct {
	Verb Verb
	ID   ID
	// Action is the name of the action that a POST runs.
	Action string
	// Parameters are query parameters beside the api-version.
	Parameters map[string]string
	// Header has the headers that some types read beside the usual ones.
	Header map[string]string
	Body   Document
	// Priority is that of the request and of the polls of its operation.
	Priority Priority
	// IfMatch is the etag that the resource must still have, "" for none.
	IfMatch string
	// Create demands that the resource does not exist yet.
	Create bool
	// Unseen says that the caller does not use the result of the write. If Azure's own answers do not hold the
	// resource, the result is empty, and no read is needed.
	Unseen bool
	// Additive says that each such PUT creates something more, as a POST may: a snapshot of a file share. It is sent
	// again only if Azure cannot have seen it.
	Additive bool
}

// Op names what a request does, as errors say it: "PUT", "POST start".
func (r Request) Op() string {
	if r.Action != "" {
		return string(r.Verb) + " " + r.Action
	}
	return string(r.Verb)
}

// Writer changes Azure. Errors are [*Error].
type Writer interface {
	// Begin sends a request and returns when Azure has accepted it. An operation that
	// was begun must be waited for.
	Begin(ctx context.Context, r Request) (*Operation, error)
}

// Do makes a change and returns when Azure has finished it. The result is the resource as Azure made it, or the
// answer of an action, which may be empty.
func Do(ctx context.Context, w Writer, r Request) (Document, error) {
	op, err := w.Begin(ctx, r)
	if err != nil {
		return nil, err
	}
	return op.Wait(ctx)
}

// Operation is a request that Azure has accepted and may still be working on.
type Operation struct {
	wait func(context.Context) (Document, error)
}

// Done is an operation that ended with an answer.
func Done(answer Document) *Operation {
	return Later(func(context.Context) (Document, error) { return answer, nil })
}

// Later is an operation with a function that waits for its end and returns its result.
func Later(wait func(context.Context) (Document, error)) *Operation { return &Operation{wait} }

// Wait returns when Azure has finished. The result is the resource as Azure made it, or the answer of an action.
// Cancelling ctx ends the wait and not the operation. Wait is called once.
func (o *Operation) Wait(ctx context.Context) (Document, error) { return o.wait(ctx) }

// Around is a writer that calls enter before each request. When the request has ended or was refused, it calls the
// function that enter returned. An error of enter refuses the request.
func Around(w Writer, enter func(context.Context, Request) (leave func(Document, error), err error)) Writer {
	return WriterFunc(func(ctx context.Context, r Request) (*Operation, error) {
		leave, err := enter(ctx, r)
		if err != nil {
			return nil, err
		}
		op, err := w.Begin(ctx, r)
		if err != nil {
			leave(nil, err)
			return nil, err
		}
		return Later(func(ctx context.Context) (Document, error) {
			answer, err := op.Wait(ctx)
			leave(answer, err)
			return answer, err
		}), nil
	})
}

// WriterFunc is a [Writer] that is a function.
type WriterFunc func(context.Context, Request) (*Operation, error)

// Begin implements [Writer].
func (f WriterFunc) Begin(ctx context.Context, r Request) (*Operation, error) { return f(ctx, r) }

// Immediate is a writer that finishes each request before it answers.
func Immediate(do func(context.Context, Request) (Document, error)) Writer {
	return WriterFunc(func(ctx context.Context, r Request) (*Operation, error) {
		answer, err := do(ctx, r)
		if err != nil {
			return nil, err
		}
		return Done(answer), nil
	})
}

// Write is a [Request] to a method that says the verb.
type Write = Request

// Verbs has a method for each verb, each of which returns when Azure has finished.
type Verbs struct{ Writer }

// ByVerb has the methods of [Verbs] for a writer.
func ByVerb(w Writer) Verbs { return Verbs{w} }

// Put creates or replaces a resource and returns it as Azure made it.
func (v Verbs) Put(ctx context.Context, w Write) (Document, error) { return v.do(ctx, Put, w) }

// Patch merges the body into a resource.
func (v Verbs) Patch(ctx context.Context, w Write) (Document, error) { return v.do(ctx, Patch, w) }

// Delete removes a resource. A resource that is not there is no error.
func (v Verbs) Delete(ctx context.Context, id ID) error {
	_, err := v.do(ctx, Delete, Write{ID: id})
	return err
}

// Post runs an action of a resource and returns its answer, which may be empty.
func (v Verbs) Post(ctx context.Context, id ID, action string, body Document) (Document, error) {
	return v.do(ctx, Post, Write{ID: id, Action: action, Body: body})
}

func (v Verbs) do(ctx context.Context, verb Verb, w Write) (Document, error) {
	w.Verb = verb
	return Do(ctx, v.Writer, w)
}
