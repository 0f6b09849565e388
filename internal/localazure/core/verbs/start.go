package verbs

import (
	"net/http"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/latency"
	"kaz/internal/localazure/core/message"
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
func (s starter) operation(r *message.Request, v behaviour.Verb) *operation.Operation {
	r.Wait = s.latency.Reply(r.Kind, v)
	due := s.docs.At.Add(r.Wait + s.latency.Operation(r.Kind, v))
	o := operation.New(behaviour.Operation{ID: s.random.GUID(), Verb: v, Resource: r.ID, Start: s.docs.At, Location: s.region(r)},
		r.Kind, due)
	o.Version, o.Fault, o.Caller, o.Work = r.Version, r.OperationFault, r.Caller, r.Work
	return o
}

// region is the location of the resource that a request is about.
func (s starter) region(r *message.Request) string {
	for id := r.ID; id != ""; id = id.Parent() {
		if doc, ok := s.docs.Get(id); ok {
			if l := behaviour.Text(doc, "location"); l != "" && l != "global" {
				return l
			}
		}
	}
	if l := document.NormalLocation(behaviour.Text(r.Body, "location")); l != "" {
		return l
	}
	return "eastus"
}

// pollHeaders adds the headers by which a client follows an operation.
func (s starter) pollHeaders(r *message.Request, to *message.Reply, o *operation.Operation, long behaviour.Headers) {
	if long == behaviour.None {
		return
	}
	p := r.Kind.Style.Protocol
	if long&behaviour.AsyncOperation != 0 && p.Status != nil {
		to.Set("Azure-AsyncOperation", r.PollURL(p, p.Status(o.Operation), s.docs.At))
	}
	if long&behaviour.Location != 0 && p.Result != nil {
		to.Set("Location", r.PollURL(p, p.Result(o.Operation), s.docs.At))
	}
	if long&behaviour.Notification != 0 {
		to.Set("Azure-AsyncNotification", "Enabled")
	}
	s.latency.RetryAfter(to.Headers(), r.Kind.Wait(o.Verb).First)
}

// poll answers a request to the URL of an operation; the reply's status is 0 when the
// operation is no longer known.
func (s starter) poll(r *message.Request) message.Reply {
	o, result := s.runner.Queue.Polled(r.URL.Path)
	if o == nil {
		return message.Reply{}
	}
	p := o.Kind.Style.Protocol
	answer := p.Poll(o.Operation, result || r.Query.Get("monitor") == "true")
	to := message.Reply{Status: answer.Status, Body: answer.Body}
	to.Freeze()
	if !o.End.IsZero() {
		return to
	}
	if answer.Status == http.StatusAccepted && p.Result != nil {
		to.Set("Location", r.PollURL(p, p.Result(o.Operation), s.docs.At))
	}
	s.latency.RetryAfter(to.Headers(), o.Kind.Wait(o.Verb).Later)
	return to
}
