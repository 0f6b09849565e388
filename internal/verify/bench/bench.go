// Package bench is what a probe of `kaz verify` works with: requests in the resource group of the run, what was seen, and resources that
// probes share. Layer L3.
package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/verify/cassette"
)

// Object is a JSON object.
type Object = map[string]any

// List is a JSON array.
type List = []any

// Place is where a run creates its resources.
type Place struct {
	Subscription, Location, Group string
	// Random makes names unique that all users of Azure share: a few lower-case letters and digits.
	Random string
	// Versions gives the api-version that kaz uses for a type.
	Versions func(fullType string) string
}

// GroupID is the id of the resource group.
func (p Place) GroupID() azure.ID { return azure.GroupID(p.Subscription, p.Group) }

// Client reads and writes Azure.
type Client interface {
	azure.Reader
	azure.Writer
}

// Bench is that of one probe. The first request that fails in a way that says nothing about a belief, such as for missing rights, ends
// the probe: all later calls do nothing.
type Bench struct {
	Place
	client   Client
	recorder *cassette.Recorder
	probe    string

	seen    []string
	differs bool
	err     error
	ids     []string // request ids of answers that differ
	last    string   // request id of the last answer
}

// New returns the bench of a probe.
func New(p Place, c Client, r *cassette.Recorder, probe string) *Bench {
	return &Bench{Place: p, client: c, recorder: r, probe: probe}
}

// Outcome is what a probe found.
type Outcome struct {
	// Seen are sentences about the answers of Azure.
	Seen []string
	// Differs says that an answer contradicts the belief.
	Differs bool
	// Err is why the probe could not be carried out.
	Err error
	// Requests are the ids of the requests with an answer that differs.
	Requests []string
}

// Outcome returns what was found.
func (b *Bench) Outcome() Outcome { return Outcome{b.seen, b.differs, b.err, b.ids} }

// Fail ends the probe: it was not carried out.
func (b *Bench) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Agree notes what was seen, and whether the belief is right by that.
func (b *Bench) Agree(ok bool, format string, args ...any) {
	if b.err != nil {
		return
	}
	b.seen = append(b.seen, fmt.Sprintf(format, args...))
	if !ok {
		b.differs = true
		if b.last != "" {
			b.ids = append(b.ids, b.last)
		}
	}
}

// See notes what was seen. It says nothing about the belief.
func (b *Bench) See(format string, args ...any) { b.Agree(true, format, args...) }

// ID is the id of a resource of this probe in the group.
func (b *Bench) ID(fullType, name string) azure.ID {
	return b.GroupID().Resource(fullType, b.probe+"-"+name)
}

// Unique is a name that no other user of Azure has, for types with short names of lower-case letters and digits. Each probe has one for
// each suffix.
func (b *Bench) Unique(suffix string) string {
	name := "kazv" + b.Random + strings.ReplaceAll(b.probe, "-", "")
	const most = 22 // of a storage account: 24
	return name[:min(len(name), most-len(suffix))] + suffix
}

// Answer is what Azure answered.
type Answer struct {
	// Status is that of the first answer. Operations go on after it.
	Status int
	Header http.Header
	// First is the body of the first answer. Body is the resource after the operation, or the answer of an action.
	First, Body azure.Document
	// Code and Message are those of the error, of the request or of its operation.
	Code, Message string
	// Failed says that the request or its operation failed.
	Failed bool
}

// Refused reports whether Azure refused with a status, and one of the codes if there are some.
func (a Answer) Refused(status int, codes ...string) bool {
	if !a.Failed || a.Status != status {
		return false
	}
	for _, code := range codes {
		if strings.EqualFold(code, a.Code) {
			return true
		}
	}
	return len(codes) == 0
}

func (a Answer) String() string {
	switch {
	case a.Failed && a.Code != "":
		return fmt.Sprintf("%d %s (%s)", a.Status, a.Code, shortened(a.Message))
	case a.Failed:
		return fmt.Sprintf("%d (%s)", a.Status, shortened(a.Message))
	}
	return fmt.Sprint(a.Status)
}

func shortened(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// Option changes a request.
type Option func(*azure.Request)

// Header adds a header.
func Header(name, value string) Option {
	return func(r *azure.Request) { r.Header = with(r.Header, name, value) }
}

// Parameter adds a parameter of the query, also the api-version.
func Parameter(name, value string) Option {
	return func(r *azure.Request) { r.Parameters = with(r.Parameters, name, value) }
}

// IfMatch and IfNew add preconditions.
func IfMatch(etag string) Option { return Header("If-Match", etag) }

// IfNew demands that the resource does not exist.
func IfNew() Option { return Header("If-None-Match", "*") }

func with(m map[string]string, name, value string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	m[name] = value
	return m
}

// Try sends a write and waits for its operation. Refusals are answers.
func (b *Bench) Try(ctx context.Context, verb azure.Verb, id azure.ID, body any, options ...Option) Answer {
	r := azure.Request{Verb: verb, ID: id}
	return b.try(ctx, r, body, options)
}

// Act runs an action of a resource.
func (b *Bench) Act(ctx context.Context, id azure.ID, action string, body any, options ...Option) Answer {
	return b.try(ctx, azure.Request{Verb: azure.Post, ID: id, Action: action}, body, options)
}

func (b *Bench) try(ctx context.Context, r azure.Request, body any, options []Option) Answer {
	if b.err != nil {
		return Answer{}
	}
	for _, option := range options {
		option(&r)
	}
	if err := encode(&r, body); err != nil {
		b.Fail(err)
		return Answer{}
	}
	mark := b.recorder.Len()
	doc, err := azure.Do(ctx, b.client, r)
	return b.answer(ctx, mark, string(r.Verb), doc, err)
}

func encode(r *azure.Request, body any) error {
	switch body := body.(type) {
	case nil:
		return nil
	case azure.Document:
		r.Body = body
		return nil
	}
	text, err := json.Marshal(body)
	r.Body = text
	return err
}

// answer makes an answer of the exchanges of a call. It ends the probe if there is no answer, or one that says nothing about beliefs.
func (b *Bench) answer(ctx context.Context, mark int, method string, doc azure.Document, err error) Answer {
	a := Answer{Body: doc}
	for _, e := range b.recorder.From(mark) {
		if e.Method == method && (method != http.MethodGet || a.Status == 0 || e.Status >= 400) {
			a.Status, a.Header, a.First = e.Status, e.AnswerHeader, e.Answer
			b.last = e.AnswerHeader.Get("X-Ms-Request-Id")
		}
	}
	if err == nil {
		return a
	}
	a.Failed, a.Message = true, err.Error()
	if e, ok := errors.AsType[*azure.Error](err); ok {
		a.Code, a.Message = e.Code, e.Message
	}
	if ctx.Err() != nil || a.Status == 0 || saysNothing(err, a.Code) {
		b.Fail(err)
	}
	return a
}

// saysNothing reports whether an error is about the subscription or the moment, and not about the request.
func saysNothing(err error, code string) bool {
	switch azure.KindOf(err) {
	case azure.Throttled, azure.Quota, azure.Capacity, azure.Canceled, azure.Unavailable:
		return true
	case azure.Denied:
		return strings.EqualFold(code, "AuthorizationFailed") || code == ""
	}
	switch strings.ToLower(code) {
	case "skunotavailable", "subscriptionnotfound", "missingsubscriptionregistration", "locationnotavailableforresourcetype",
		"requestdisallowedbypolicy":
		return true
	}
	return false
}

// Make creates a resource that the probe needs. A refusal ends the probe.
func (b *Bench) Make(ctx context.Context, id azure.ID, body any, options ...Option) azure.Document {
	return b.must(b.Try(ctx, azure.Put, id, body, options...), "PUT", id)
}

// Change merges a body into a resource that the probe needs.
func (b *Bench) Change(ctx context.Context, id azure.ID, body any) azure.Document {
	return b.must(b.Try(ctx, azure.Patch, id, body), "PATCH", id)
}

// Remove deletes a resource. A refusal ends the probe.
func (b *Bench) Remove(ctx context.Context, id azure.ID) {
	b.must(b.Try(ctx, azure.Delete, id, nil), "DELETE", id)
}

// Run runs an action that must succeed.
func (b *Bench) Run(ctx context.Context, id azure.ID, action string, body any) azure.Document {
	return b.must(b.Act(ctx, id, action, body), "POST "+action, id)
}

func (b *Bench) must(a Answer, what string, id azure.ID) azure.Document {
	if a.Failed && b.err == nil {
		b.Fail(fmt.Errorf("%s %s/%s: %s", what, id.Type(), id.Name(), a))
	}
	return a.Body
}

// Look reads a resource. That it is not there is an answer.
func (b *Bench) Look(ctx context.Context, id azure.ID) Answer {
	if b.err != nil {
		return Answer{}
	}
	mark := b.recorder.Len()
	doc, err := b.client.Get(ctx, id)
	return b.answer(ctx, mark, http.MethodGet, doc, err)
}

// Get reads a resource that must exist.
func (b *Bench) Get(ctx context.Context, id azure.ID) azure.Document {
	return b.must(b.Look(ctx, id), "GET", id)
}

// List reads a list.
func (b *Bench) List(ctx context.Context, scope azure.ID, fullType string) []azure.Document {
	return b.list(ctx, azure.Query{Scope: scope, Type: fullType})
}

func (b *Bench) list(ctx context.Context, q azure.Query) []azure.Document {
	if b.err != nil {
		return nil
	}
	mark := b.recorder.Len()
	all, err := b.client.List(ctx, q)
	if a := b.answer(ctx, mark, http.MethodGet, nil, err); a.Failed {
		b.Fail(fmt.Errorf("LIST %s: %s", q.Type, a))
	}
	return all
}

// Expanded reads a list with what $expand names.
func (b *Bench) Expanded(ctx context.Context, scope azure.ID, fullType, expand string) []azure.Document {
	return b.list(ctx, azure.Query{Scope: scope, Type: fullType, Expand: expand})
}

// Filtered reads a list with a $filter.
func (b *Bench) Filtered(ctx context.Context, scope azure.ID, fullType, filter string) []azure.Document {
	return b.list(ctx, azure.Query{Scope: scope, Type: fullType, Filter: filter})
}

// Mark returns a number for [Bench.Since].
func (b *Bench) Mark() int { return b.recorder.Len() }

// Since returns the exchanges since a mark.
func (b *Bench) Since(mark int) []cassette.Exchange { return b.recorder.From(mark) }
