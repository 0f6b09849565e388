package core

import (
	"net/http"
	"strconv"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/latency"
	"kaz/internal/localazure/core/operation"
	"kaz/internal/localazure/core/random"
	"kaz/internal/localazure/core/store"
)

// starter begins the operations of requests, decides about operations that run already,
// and makes the headers by which clients poll.
type starter struct {
	docs    *store.Transaction
	runner  *operation.Runner
	latency latency.Model
	random  *random.Source
	groups  *kind.Kind
}

// operation makes the record of an operation that starts now. Its request waits as long
// as the reply takes.
func (s starter) operation(r *request, v behaviour.Verb) *operation.Operation {
	r.wait = s.latency.Reply(r.Kind, v)
	due := s.docs.At.Add(r.wait + s.latency.Operation(r.Kind, v))
	o := operation.New(behaviour.Operation{ID: s.random.GUID(), Verb: v, Resource: r.ID, Start: s.docs.At, Location: s.region(r)},
		r.Kind, due)
	o.Fault, o.Caller = r.operationFault, r.caller
	return o
}

// region is the location of the resource that a request is about.
func (s starter) region(r *request) string {
	for id := r.ID; id != ""; id = id.Parent() {
		if doc, ok := s.docs.Get(id); ok {
			if l := behaviour.Text(doc, "location"); l != "" && l != "global" {
				return l
			}
		}
	}
	if l := document.NormalLocation(behaviour.Text(r.body, "location")); l != "" {
		return l
	}
	return "eastus"
}

// pollHeaders adds the headers by which a client follows an operation.
func (s starter) pollHeaders(r *request, to *reply, o *operation.Operation, long behaviour.Headers) {
	if long == behaviour.None {
		return
	}
	p := r.Kind.Style.Protocol
	if long&behaviour.AsyncOperation != 0 && p.Status != nil {
		to.set("Azure-AsyncOperation", s.pollURL(r, p, p.Status(o.Operation)))
	}
	if long&behaviour.Location != 0 && p.Result != nil {
		to.set("Location", s.pollURL(r, p, p.Result(o.Operation)))
	}
	if long&behaviour.Notification != 0 {
		to.set("Azure-AsyncNotification", "Enabled")
	}
	s.latency.RetryAfter(to.headers(), r.Kind.Wait(o.Verb).First)
}

// pollURL makes a poll path absolute, with the parameters that ARM appends.
func (s starter) pollURL(r *request, p behaviour.Protocol, path string) string {
	version := r.version
	if p.Version != "" {
		version = p.Version
	}
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	tick := strconv.FormatInt(store.Ticks(s.docs.At), 10)
	return r.host + path + sep + "api-version=" + version + "&t=" + tick + "&c=local&s=" + signature(path, tick) + "&h=" +
		signature(tick, path)
}

// poll answers a request to the URL of an operation; the reply's status is 0 when the
// operation is no longer known.
func (s starter) poll(r *request) reply {
	o, result := s.runner.Queue.Polled(r.http.URL.Path)
	if o == nil {
		return reply{}
	}
	p := o.Kind.Style.Protocol
	answer := p.Poll(o.Operation, result || r.query.Get("monitor") == "true")
	to := reply{status: answer.Status, body: answer.Body}
	to.freeze()
	if !o.End.IsZero() {
		return to
	}
	if answer.Status == http.StatusAccepted && p.Result != nil {
		to.set("Location", s.pollURL(r, p, p.Result(o.Operation)))
	}
	s.latency.RetryAfter(to.headers(), o.Kind.Wait(o.Verb).Later)
	return to
}
