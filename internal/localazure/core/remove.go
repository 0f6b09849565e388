package core

import (
	"cmp"
	"slices"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/kind"
)

// remover serves DELETE of a resource.
type remover struct {
	scopes
	starter starter
}

func (t remover) remove(r *request) (reply, error) {
	if r.Kind.ReadOnly {
		return reply{}, methodNotAllowed(r)
	}
	if g := r.ID.Group(); g != "" && t.docs.Entry(azure.GroupID(r.ID.Subscription(), g)) == nil {
		return reply{}, behaviour.GroupNotFound(g)
	}
	old, ok, err := t.stored(r)
	if err != nil {
		return reply{}, err
	}
	if !ok {
		return reply{status: cmp.Or(r.Kind.Style.Absent, 204)}, nil
	}
	c := t.call(r, behaviour.Delete)
	c.Old = old
	if fault := t.precondition(r); fault != nil {
		return reply{}, fault
	}
	if r.Kind.RemoveVersion != nil {
		if done, err := r.Kind.RemoveVersion(c); done || err != nil {
			return reply{status: cmp.Or(r.Kind.Style.Deleted, 200)}, err
		}
	}
	if err := t.allowed(c, r.Kind); err != nil {
		return reply{}, err
	}
	return t.start(r, c)
}

// start begins the operation that deletes, or deletes at once.
func (t remover) start(r *request, c *behaviour.Call) (reply, error) {
	k := r.Kind
	o := t.starter.operation(r, behaviour.Delete)
	o.Notes = c.Notes
	if err := t.starter.overlap(r, o); err != nil {
		return reply{}, err
	}
	long := longHeaders(k, c)
	if long == behaviour.None || k.Style.Prompt[behaviour.Delete] && o.Fault == nil {
		if err := t.starter.runner.Finish(o); err != nil {
			return reply{}, err
		}
	} else {
		if k.Style.Deleting != "" && k.Inline == "" {
			t.docs.SetState(r.ID, k.Style.Deleting)
		}
		t.starter.runner.Start(o)
	}
	to := reply{status: cmp.Or(k.Style.Deleted, 200)}
	if k.AtOnce != nil && long == behaviour.None {
		to.status = 200
	}
	if k.Farewell != nil {
		to.body = k.Farewell(c)
	}
	t.starter.pollHeaders(r, &to, o, long)
	return to, nil
}

// allowed refuses to remove what is in use, and what its type refuses to remove.
func (t remover) allowed(c *behaviour.Call, k *kind.Kind) error {
	if err := t.unused(c, k); err != nil {
		return err
	}
	if k.Refuse != nil {
		return k.Refuse(c)
	}
	return nil
}

// unused refuses to remove a resource to which others refer, or to one of its inline
// children. That the children refer to each other is no reason when they all go.
func (t remover) unused(c *behaviour.Call, k *kind.Kind) error {
	if k.InUse != nil {
		if by := t.usedBy(c.ID); len(by) > 0 {
			if err := k.InUse(c, by); err != nil {
				return err
			}
		}
	}
	for _, child := range k.Children {
		for _, element := range behaviour.Objects(c.Old, child.Inline) {
			inside := *c
			inside.ID, inside.Type = child.Child(c.ID, element), child.Type
			inside.Old, inside.Parent = element, c.Old
			if err := t.unused(&inside, child); err != nil {
				return err
			}
		}
	}
	return nil
}

// usedBy are the referrers that do not lie below the resource itself. What the
// resource's own document says is not in the index.
func (t remover) usedBy(id azure.ID) []behaviour.Referrer {
	return slices.DeleteFunc(t.docs.Referrers(id), func(r behaviour.Referrer) bool { return r.Resource.Under(id) })
}
