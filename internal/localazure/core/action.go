package core

import (
	"cmp"
	"encoding/json"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/access"
	"kaz/internal/localazure/core/address"
	"kaz/internal/localazure/core/store"
)

// actions serves POST to a resource.
type actions struct {
	scopes
	starter starter
	access  *access.Control
}

func (t actions) post(r *request) (reply, error) {
	action, name, ok := r.Kind.Action(r.Action)
	if !ok {
		return reply{}, address.UnknownType(r.ID.Namespace(), r.Kind.Name[len(r.ID.Namespace())+1:]+"/"+r.Action, r.version)
	}
	old, err := t.find(r)
	if err != nil && action.Anew {
		old, err = nil, t.check(r)
	}
	if err != nil {
		return reply{}, err
	}
	if err := t.access.AuthorizeLinks(r.links(), r.body); err != nil {
		return reply{}, err
	}
	c := t.call(r, behaviour.Verb(name))
	c.Action, c.Old, c.Doc = name, old, behaviour.Clone(old)
	if fault := t.precondition(r); fault != nil {
		return reply{}, fault
	}
	var body any
	if action.Do != nil {
		if body, err = action.Do(c); err != nil {
			return reply{}, err
		}
	}
	if action.Long {
		return t.start(r, c, action, body)
	}
	r.wait = t.starter.latency.Reply(r.Kind, c.Verb)
	if e := t.docs.Entry(r.ID); e != nil && !behaviour.Equal(c.Doc, old) {
		state := behaviour.Text(c.Doc, "properties.provisioningState")
		t.docs.Save(e.Kind, e.ID, c.Doc, store.Saving{State: state, Hidden: e.Hidden})
	}
	return reply{status: cmp.Or(action.Status, 200), body: body}, nil
}

func (t actions) start(r *request, c *behaviour.Call, action behaviour.Action, body any) (reply, error) {
	o := t.starter.operation(r, c.Verb)
	o.Body, o.Notes = r.body, c.Notes
	if action.Deferred {
		text, err := json.Marshal(body)
		if err != nil {
			return reply{}, err
		}
		o.Output, body = json.RawMessage(text), nil
	}
	if err := t.starter.overlap(r, o); err != nil {
		return reply{}, err
	}
	if e := t.docs.Entry(r.ID); e != nil {
		state := cmp.Or(action.Busy, "Updating")
		if state == "-" {
			state = behaviour.Text(c.Doc, "properties.provisioningState")
		}
		t.docs.Save(e.Kind, e.ID, c.Doc, store.Saving{State: state, Hidden: e.Hidden})
	}
	t.starter.runner.Start(o)
	to := reply{status: cmp.Or(action.Status, 202), body: body}
	headers := action.Headers
	if headers == behaviour.None {
		headers = r.Kind.Style.Long[behaviour.Delete]
	}
	t.starter.pollHeaders(r, &to, o, headers)
	return to, nil
}
