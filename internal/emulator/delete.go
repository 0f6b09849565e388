package emulator

import (
	"slices"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// delete serves DELETE of a resource.
func (t *transaction) delete(r *request) error {
	k := r.kind
	if k.ReadOnly {
		return methodNotAllowed(r)
	}
	if g := r.id.Group(); g != "" {
		if _, ok := t.Get(azure.GroupID(r.id.Subscription(), g)); !ok {
			return behaviour.GroupNotFound(g)
		}
	}
	c := r.call(t)
	c.Verb = behaviour.Delete
	old, ok := t.Get(r.id)
	if !ok {
		r.reply = reply{status: or(k.Style.Absent, 204)}
		return nil
	}
	c.Old = old
	t.addParent(r, c)
	if fault := t.precondition(r); fault != nil {
		return fault
	}
	if err := t.deletable(c, k); err != nil {
		return err
	}
	return t.startDelete(r, c)
}

func (t *transaction) startDelete(r *request, c *behaviour.Call) error {
	k := r.kind
	o := t.newOperation(r, behaviour.Delete)
	if err := t.overlap(r, o); err != nil {
		return err
	}
	long := longHeaders(k, c)
	if long == behaviour.None || k.Style.Prompt[behaviour.Delete] && o.fault == nil {
		if err := t.finishNow(o); err != nil {
			return err
		}
	} else {
		if k.Style.Deleting != "" && k.Inline == "" {
			t.setState(r.id, k.Style.Deleting)
		}
		t.start(o)
	}
	r.reply = reply{status: or(k.Style.Deleted, 200)}
	if k.AtOnce != nil && long == behaviour.None {
		r.reply.status = 200
	}
	if k.Farewell != nil {
		r.reply.body = k.Farewell(c)
	}
	t.pollHeaders(r, o, long)
	return nil
}

func (t *transaction) deletable(c *behaviour.Call, k *kind) error {
	if err := t.unused(c, k); err != nil {
		return err
	}
	if k.Refuse != nil {
		return k.Refuse(c)
	}
	return nil
}

// usedBy are the referrers that do not lie below the resource itself. What the
// resource's own document says is not in the index.
func (t *transaction) usedBy(id azure.ID) []behaviour.Referrer {
	return slices.DeleteFunc(t.store.referrers(id), func(r behaviour.Referrer) bool { return r.Resource.Under(id) })
}
