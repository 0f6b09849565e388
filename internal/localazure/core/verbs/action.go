package verbs

import (
	"cmp"
	"encoding/json"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/checks"
	"kaz/internal/localazure/core/message"
	"kaz/internal/localazure/core/store"
)

// actions serves POST to a resource.
type actions struct {
	finder
	starter starter
}

func (t actions) post(r *message.Request) (message.Reply, error) {
	action, name, ok := r.Kind.Action(r.Action)
	if !ok {
		return message.Reply{}, behaviour.UnknownType(r.ID.Namespace(), r.Kind.Name[len(r.ID.Namespace())+1:]+"/"+r.Action, r.Version)
	}
	old, err := t.find(r)
	if err != nil && action.OnAbsent {
		old, err = nil, t.checks.Pass(checks.Placed, r, nil)
	}
	if err != nil {
		return message.Reply{}, err
	}
	c := t.call(r, behaviour.Verb(name))
	c.Action, c.Old, c.Doc = name, old, behaviour.Clone(old)
	if err := t.checks.Pass(checks.Intended, r, c); err != nil {
		return message.Reply{}, err
	}
	if err := t.checks.Pass(checks.Conditional, r, c); err != nil {
		return message.Reply{}, err
	}
	var body any
	if action.Do != nil {
		if body, err = action.Do(c); err != nil {
			return message.Reply{}, err
		}
	}
	if action.Long {
		return t.start(r, c, action, body)
	}
	r.Wait = t.starter.latency.Reply(r.Kind, c.Verb)
	if e := t.docs.Entry(r.ID); e != nil && !behaviour.Equal(c.Doc, old) {
		state := behaviour.Text(c.Doc, "properties.provisioningState")
		t.docs.Save(e.Kind, e.ID, c.Doc, store.Saving{State: state, Hidden: e.Hidden})
	}
	return message.Reply{Status: cmp.Or(action.Status, 200), Body: body}, nil
}

func (t actions) start(r *message.Request, c *behaviour.Call, action behaviour.Action, body any) (message.Reply, error) {
	o := t.starter.operation(r, c.Verb)
	o.Body, o.Notes = r.Body, c.Notes
	if action.Deferred {
		text, err := json.Marshal(body)
		if err != nil {
			return message.Reply{}, err
		}
		o.Output, body = json.RawMessage(text), nil
	}
	if err := t.starter.overlap(r, o); err != nil {
		return message.Reply{}, err
	}
	if e := t.docs.Entry(r.ID); e != nil {
		state := cmp.Or(action.Busy, "Updating")
		if state == "-" {
			state = behaviour.Text(c.Doc, "properties.provisioningState")
		}
		t.docs.Save(e.Kind, e.ID, c.Doc, store.Saving{State: state, Hidden: e.Hidden})
	}
	t.starter.runner.Start(o)
	to := message.Reply{Status: cmp.Or(action.Status, 202), Body: body}
	headers := action.Headers
	if headers == behaviour.None {
		headers = r.Kind.Style.Long[behaviour.Delete]
	}
	t.starter.pollHeaders(r, &to, o, headers)
	return to, nil
}
