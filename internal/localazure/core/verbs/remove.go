package verbs

import (
	"cmp"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/checks"
	"kaz/internal/localazure/core/message"
)

// remover serves DELETE of a resource.
type remover struct {
	finder
	starter starter
}

func (t remover) remove(r *message.Request) (message.Reply, error) {
	if err := t.checks.Pass(checks.Placed, r, nil); err != nil {
		return message.Reply{}, err
	}
	old, ok, err := t.stored(r)
	if err != nil {
		return message.Reply{}, err
	}
	if !ok {
		return message.Reply{Status: cmp.Or(r.Kind.Style.Absent, 204)}, nil
	}
	c := t.call(r, behaviour.Delete)
	c.Old = old
	if err := t.checks.Pass(checks.Conditional, r, c); err != nil {
		return message.Reply{}, err
	}
	if r.Kind.RemoveVersion != nil {
		if done, err := r.Kind.RemoveVersion(c); done || err != nil {
			return message.Reply{Status: cmp.Or(r.Kind.Style.Deleted, 200)}, err
		}
	}
	if err := t.checks.Pass(checks.Accepted, r, c); err != nil {
		return message.Reply{}, err
	}
	return t.start(r, c)
}

// start begins the operation that deletes, or deletes at once.
func (t remover) start(r *message.Request, c *behaviour.Call) (message.Reply, error) {
	k := r.Kind
	o := t.starter.operation(r, behaviour.Delete)
	o.Notes = c.Notes
	if err := t.starter.overlap(r, o); err != nil {
		return message.Reply{}, err
	}
	long := longHeaders(k, c)
	if long == behaviour.None || k.Style.Prompt[behaviour.Delete] && o.Fault == nil {
		if err := t.starter.runner.Finish(o); err != nil {
			return message.Reply{}, err
		}
	} else {
		if k.Style.Deleting != "" && k.Inline == "" {
			t.docs.SetState(r.ID, k.Style.Deleting)
		}
		t.starter.runner.Start(o)
	}
	to := message.Reply{Status: cmp.Or(k.Style.Deleted, 200)}
	if k.AtOnce != nil && long == behaviour.None {
		to.Status = 200
	}
	if k.DeleteReply != nil {
		to.Body = k.DeleteReply(c)
	}
	t.starter.pollHeaders(r, &to, o, long)
	return to, nil
}
