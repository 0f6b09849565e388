package verbs

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/checks"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/message"
	"kaz/internal/localazure/core/operation"
	"kaz/internal/localazure/core/store"
)

// writer serves PUT and PATCH of a resource.
type writer struct {
	finder
	starter    starter
	identities identities
}

func (t writer) put(r *message.Request) (message.Reply, error) {
	r.Kind.Model.Spell(r.Method, r.Kind.Name, r.Body)
	document.ReadZones(r.Body)
	if err := t.checks.Pass(checks.Placed, r, nil); err != nil {
		return message.Reply{}, err
	}
	c := r.Call(t.world, behaviour.Create)
	if c.Old, _ = t.docs.Get(r.ID); c.Old != nil {
		c.Verb = behaviour.Update
	} else if r.Forget != nil {
		r.Forget(r.Body)
	}
	if err := t.checks.Pass(checks.Compared, r, c); err != nil {
		return message.Reply{}, err
	}
	c.Doc = document.FromBody(r.Kind, r.ID, r.Body, c.Old)
	c.Doc["name"] = r.ID.Name()
	return t.write(r, c)
}

func (t writer) patch(r *message.Request) (message.Reply, error) {
	r.Kind.Model.Spell(r.Method, r.Kind.Name, r.Body)
	document.ReadZones(r.Body)
	if err := t.checks.Pass(checks.Placed, r, nil); err != nil {
		return message.Reply{}, err
	}
	old, ok, err := t.stored(r)
	if err != nil {
		return message.Reply{}, err
	}
	if !ok {
		return message.Reply{}, t.checks.Missing(r)
	}
	c := r.Call(t.world, behaviour.Patch)
	c.Old, c.Doc = old, behaviour.Clone(old)
	if err := t.checks.Pass(checks.Compared, r, c); err != nil {
		return message.Reply{}, err
	}
	switch {
	case r.Kind.Merge != nil:
		if err := r.Kind.Merge(c); err != nil {
			return message.Reply{}, err
		}
	case r.Kind.Style.TagsOnly:
		if tags, ok := r.Body["tags"]; ok {
			c.Doc["tags"] = behaviour.Clone(tags)
		}
	default:
		document.Merge(c.Doc, r.Body)
	}
	c.Doc = document.FromBody(r.Kind, r.ID, c.Doc, old)
	c.Doc["name"] = r.ID.Name()
	return t.write(r, c)
}

// write checks and stores c.Doc, and begins the operation that settles it.
func (t writer) write(r *message.Request, c *behaviour.Call) (message.Reply, error) {
	if err := t.checks.Pass(checks.Intended, r, c); err != nil {
		return message.Reply{}, err
	}
	if err := t.checks.Pass(checks.Conditional, r, c); err != nil {
		if fault, ok := errors.AsType[*behaviour.Error](err); ok && r.Kind.Style.PreconditionInPoll {
			return t.acceptAndFail(r, c, fault), nil
		}
		return message.Reply{}, err
	}
	whole, stored, err := t.prepare(r, c)
	if err != nil {
		return message.Reply{}, err
	}
	o := t.starter.operation(r, c.Verb)
	if err := t.starter.overlap(r, o); err != nil {
		return message.Reply{}, err
	}
	o.Body, o.Notes, o.Old = r.Body, c.Notes, c.Old
	long := longHeaders(r.Kind, c)
	now := long == behaviour.None || r.Kind.Style.Prompt[c.Verb] && o.Fault == nil
	saving := store.Saving{State: store.Succeeded, Touch: r.Kind.Style.Etag != behaviour.Counter}
	if !now {
		saving.State = r.Kind.Running(c.Verb)
	}
	saving.Hidden = r.Kind.Style.Hidden && c.Verb == behaviour.Create && long != behaviour.None
	t.docs.Save(stored, whole.ID, whole.Doc, saving)
	if !now {
		t.starter.runner.Start(o)
	} else if err := t.starter.runner.Finish(o); err != nil {
		return message.Reply{}, err
	}
	return t.answer(r, c, o, long)
}

// longHeaders are the polling headers of the reply to a write or delete, None when
// it ends in its reply.
func longHeaders(k *kind.Kind, c *behaviour.Call) behaviour.Headers {
	if k.AtOnce != nil && k.AtOnce(c) {
		return behaviour.None
	}
	return k.Style.Long[c.Verb]
}

// prepare makes the call of the document to store, with the checks before and after the provider completes it.
func (t writer) prepare(r *message.Request, c *behaviour.Call) (whole *behaviour.Call, stored *kind.Kind, err error) {
	if err = t.checks.Pass(checks.Accepted, r, c); err == nil {
		whole, stored, err = t.completed(r, c)
	}
	if err == nil {
		err = t.checks.Pass(checks.Completed, r, c)
	}
	if err == nil {
		err = t.checks.Pass(checks.Whole, r, whole)
	}
	return whole, stored, err
}

// completed completes the document and returns the call of the document to store. This is the document of c or, for an inline
// child, its parent's document with the child in it.
func (t writer) completed(r *message.Request, c *behaviour.Call) (*behaviour.Call, *kind.Kind, error) {
	k := r.Kind
	whole := *c
	if k.Inline == "" {
		t.addParent(r, c)
		if err := document.Locate(k, r.ID, c.Doc, c.Old); err != nil {
			return nil, nil, err
		}
		if k.Style.EmptyTags {
			behaviour.Default(c.Doc, "tags", behaviour.Object{})
		}
		if k.Where != behaviour.Nowhere || c.Doc["properties"] != nil || !k.NoState || k.Fields != nil {
			behaviour.Default(c.Doc, "properties", behaviour.Object{})
		}
		err := t.complete(c, k)
		whole = *c
		return &whole, k, err
	}
	stored := k.Holder()
	e := t.docs.Holder(k, r.ID)
	whole.ID, whole.Type, whole.Doc = e.ID, stored.Type, e.Fresh()
	parent := k.ParentIn(r.ID, whole.Doc)
	if parent == nil {
		return nil, nil, behaviour.ParentNotFound("write", r.ID)
	}
	document.Replace(parent, k.Inline, r.ID.Name(), c.Doc)
	outer := whole
	outer.Old, outer.Verb = t.docs.Doc(e), behaviour.Update
	err := t.complete(&outer, stored)
	return &whole, stored, err
}

// acceptAndFail makes an operation that fails, for providers that check preconditions
// after they have accepted the request.
func (t writer) acceptAndFail(r *message.Request, c *behaviour.Call, fault *behaviour.Error) message.Reply {
	o := t.starter.operation(r, c.Verb)
	t.starter.runner.Reject(o, fault)
	to := message.Reply{Status: successStatus(r.Kind, c.Verb), Body: behaviour.Object{}}
	t.starter.pollHeaders(r, &to, o, r.Kind.Style.Long[c.Verb])
	return to
}

func successStatus(k *kind.Kind, v behaviour.Verb) int {
	switch v {
	case behaviour.Create:
		return cmp.Or(k.Style.Created, http.StatusCreated)
	case behaviour.Patch:
		return cmp.Or(k.Style.Patched, http.StatusOK)
	}
	return cmp.Or(k.Style.Updated, http.StatusOK)
}

// answer is the reply to a PUT or PATCH.
func (t writer) answer(r *message.Request, c *behaviour.Call, o *operation.Operation, long behaviour.Headers) (message.Reply, error) {
	k := r.Kind
	to := message.Reply{Status: successStatus(k, c.Verb)}
	if k.AtOnce != nil && long == behaviour.None && c.Verb != behaviour.Create {
		to.Status = cmp.Or(k.Style.Updated, http.StatusOK)
	}
	switch {
	case to.Status == http.StatusAccepted && k.Style.Accepted == behaviour.EmptyObject:
		to.Body = behaviour.Object{}
	case to.Status == http.StatusAccepted && k.Style.Accepted == behaviour.Nothing:
	default:
		doc, ok := t.docs.Get(r.ID)
		if !ok {
			return message.Reply{}, fmt.Errorf("%s is not there after it was written", r.ID)
		}
		to.Body = document.View(*c, k, doc)
	}
	if k.Style.EtagHeader == behaviour.OnGetAndPut {
		t.etagHeader(r, &to)
	}
	t.starter.pollHeaders(r, &to, o, long)
	return to, nil
}

// complete turns what a client sent into the document that is stored. It calls the type's own Fill, then the Fill functions
// of the inline children, then the type's Check.
func (t writer) complete(c *behaviour.Call, k *kind.Kind) error {
	if k.Inline != "" && k.Fields != nil {
		behaviour.Default(c.Doc, "properties", behaviour.Object{})
	}
	if err := k.Fields.Normalize(c); err != nil {
		return err
	}
	if k.Inline == "" {
		if err := t.identities.complete(c); err != nil {
			return err
		}
		defer dropNone(c.Doc)
	}
	if k.Fill != nil {
		if err := k.Fill(c); err != nil {
			return err
		}
	}
	k.Fields.Complete(c)
	for _, child := range k.Children {
		if err := t.completeChildren(c, child); err != nil {
			return err
		}
	}
	if k.Check != nil {
		return k.Check(c)
	}
	return nil
}

func (t writer) completeChildren(c *behaviour.Call, child *kind.Kind) error {
	seen := map[string]bool{}
	for _, x := range behaviour.Array(c.Doc, child.Inline) {
		element, ok := x.(behaviour.Object)
		name := behaviour.Text(element, "name")
		if !ok || name == "" {
			return behaviour.Invalid("InvalidRequestFormat", "Cannot parse the request: every element of %s of resource %s needs a name.",
				child.Inline, c.ID)
		}
		inside := *c
		inside.ID, inside.Type = child.Child(c.ID, element), child.Type
		key := inside.ID.Key()
		if seen[key] {
			return behaviour.Invalid("InvalidRequestFormat", "Cannot parse the request.").
				With("DuplicateResourceName", "Resource %s has two child resources with the same name (%s).", c.ID, name)
		}
		seen[key] = true
		inside.Doc, inside.Old, inside.Parent = element, behaviour.Named(c.Old, child.Inline, name), c.Doc
		inside.Verb = behaviour.Update
		if inside.Old == nil {
			inside.Verb = behaviour.Create
		}
		if err := t.complete(&inside, child); err != nil {
			return err
		}
	}
	return t.completeRemovals(c, child, seen)
}

// completeRemovals asks of the children that a new document leaves out whether they
// may go.
func (t writer) completeRemovals(c *behaviour.Call, child *kind.Kind, kept map[string]bool) error {
	for _, old := range behaviour.Objects(c.Old, child.Inline) {
		gone := *c
		gone.Verb, gone.ID, gone.Type = behaviour.Delete, child.Child(c.ID, old), child.Type
		if kept[gone.ID.Key()] {
			continue
		}
		gone.Old, gone.Doc, gone.Parent = old, nil, c.Doc
		if err := t.checks.Removable(&gone, child); err != nil {
			return err
		}
	}
	return nil
}
