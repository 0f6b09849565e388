package emulator

import (
	"strings"

	"kaz/internal/emulator/behaviour"
)

// post serves an action.
func (t *transaction) post(r *request) error {
	action, ok := findAction(r.kind, r.action)
	if !ok {
		return gateway(404, "InvalidResourceType", "The resource type '%s' could not be found in the namespace '%s' for api version '%s'.", r.kind.Name[len(r.id.Namespace())+1:]+"/"+r.action, r.id.Namespace(), r.version)
	}
	old, err := t.find(r)
	if err != nil && action.Anew {
		old, err = nil, t.scopeExists(r)
	}
	if err != nil {
		return err
	}
	c := r.call(t)
	c.Verb, c.Action = behaviour.Verb(actionName(r.kind, r.action)), actionName(r.kind, r.action)
	c.Old, c.Doc = old, behaviour.Clone(old)
	t.addParent(r, c)
	if fault := t.precondition(r); fault != nil {
		return fault
	}
	var body any
	if action.Do != nil {
		if body, err = action.Do(c); err != nil {
			return err
		}
	}
	e := t.store.entries[r.id.Key()]
	stored := e != nil && !behaviour.Equal(c.Doc, old)
	status := or(action.Status, 200)
	if !action.Long {
		r.wait = t.latency.reply(r.kind, c.Verb)
		if stored {
			t.save(e.kind, e.id, c.Doc, saving{state: behaviour.Text(c.Doc, "properties.provisioningState"), hidden: e.hidden})
		}
		r.reply = reply{status: status, body: body}
		return nil
	}
	return t.startAction(r, c, action, e)
}

func (t *transaction) startAction(r *request, c *behaviour.Call, action behaviour.Action, e *entry) error {
	o := t.newOperation(r, c.Verb)
	o.body, o.notes = r.body, c.Notes
	if err := t.overlap(r, o); err != nil {
		return err
	}
	if e = t.store.entries[e.id.Key()]; e != nil {
		state := action.Busy
		switch state {
		case "":
			state = "Updating"
		case "-":
			state = behaviour.Text(c.Doc, "properties.provisioningState")
		}
		t.save(e.kind, e.id, c.Doc, saving{state: state, hidden: e.hidden})
	}
	t.start(o)
	r.reply = reply{status: or(action.Status, 202)}
	headers := action.Headers
	if headers == behaviour.None {
		headers = r.kind.Style.Long[behaviour.Delete]
	}
	t.pollHeaders(r, o, headers)
	return nil
}

func findAction(k *kind, name string) (behaviour.Action, bool) {
	for n, a := range k.Actions {
		if strings.EqualFold(n, name) {
			return a, true
		}
	}
	return behaviour.Action{}, false
}

func actionName(k *kind, name string) string {
	for n := range k.Actions {
		if strings.EqualFold(n, name) {
			return n
		}
	}
	return name
}
