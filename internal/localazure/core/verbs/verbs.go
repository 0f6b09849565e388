// Package verbs carries out requests to resources: read, write, remove, act. Layer L2.
package verbs

import (
	"encoding/json"
	"net/http"

	"kaz/internal/localazure/core/checks"
	"kaz/internal/localazure/core/message"
	"kaz/internal/localazure/core/world"
)

// Do carries out a request from outside, and makes the reply while the transaction lasts. It adds the headers that only this
// provider sends.
func Do(t *world.Transaction, r *message.Request) (message.Reply, error) {
	reply, err := do(t, r)
	if err != nil {
		return message.Reply{}, err
	}
	if r.Kind.Header != nil {
		for name, value := range r.Kind.Header(r.Call(t.World, ""), reply.Status) {
			reply.Set(name, value)
		}
	}
	reply.Freeze()
	shape(r, &reply)
	return reply, nil
}

// shape leaves out of the reply what the API version of the request does not have. Only resources and lists of them have a model.
func shape(r *message.Request, reply *message.Reply) {
	text, ok := reply.Body.(json.RawMessage)
	if !ok || r.Action != "" || r.Method == http.MethodDelete {
		return
	}
	answer := r.Kind.Model.Answer(r.Kind.Name, r.Version)
	if r.List {
		reply.Body = json.RawMessage(answer.List(text))
		return
	}
	reply.Body = json.RawMessage(answer.Resource(text))
}

func do(t *world.Transaction, r *message.Request) (message.Reply, error) {
	if r.Reads() {
		return reader{newFinder(t)}.read(r, t.Parts.Latency)
	}
	if err := checks.In(t).Pass(checks.Received, r, nil); err != nil {
		return message.Reply{}, err
	}
	switch {
	case r.List:
	case r.Method == http.MethodPut && r.Action == "":
		return newWriter(t).put(r)
	case r.Method == http.MethodPatch && r.Action == "":
		return newWriter(t).patch(r)
	case r.Method == http.MethodDelete && r.Action == "":
		return newRemover(t).remove(r)
	case r.Method == http.MethodPost && r.Action != "":
		return newActions(t).post(r)
	}
	return message.Reply{}, r.NotAllowed()
}

// Poll answers a request to the URL of an operation; the reply's status is 0 when the
// operation is no longer known.
func Poll(t *world.Transaction, r *message.Request) message.Reply { return newStarter(t).poll(r) }

func newFinder(t *world.Transaction) finder {
	return finder{docs: t.Transaction, world: t.World, checks: checks.In(t)}
}

func newStarter(t *world.Transaction) starter {
	return starter{docs: t.Transaction, runner: &t.Runner, latency: t.Parts.Latency, random: t.Parts.Random, groups: t.Parts.Groups}
}

func newWriter(t *world.Transaction) writer {
	return writer{finder: newFinder(t), starter: newStarter(t), identities: identities{known: t.Known(userAssigned)}}
}

func newRemover(t *world.Transaction) remover { return remover{newFinder(t), newStarter(t)} }

func newActions(t *world.Transaction) actions { return actions{newFinder(t), newStarter(t)} }
