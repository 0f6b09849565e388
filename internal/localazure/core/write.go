package core

import (
	"cmp"
	"fmt"
	"net/http"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/access"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/operation"
	"kaz/internal/localazure/core/store"
)

// writer serves PUT and PATCH of a resource.
type writer struct {
	scopes
	starter    starter
	access     *access.Control
	references references
	remover    remover
	identities identities
}

func (t writer) put(r *request) (reply, error) {
	if r.Kind.ReadOnly {
		return reply{}, methodNotAllowed(r)
	}
	if err := t.check(r); err != nil {
		return reply{}, err
	}
	c := r.call(t.world, behaviour.Create)
	if c.Old, _ = t.docs.Get(r.ID); c.Old != nil {
		c.Verb = behaviour.Update
	} else if r.forget != nil {
		r.forget(r.body)
	}
	if err := t.checkMembers(r, c); err != nil {
		return reply{}, err
	}
	c.Doc = document.FromBody(r.Kind, r.ID, r.body, c.Old)
	c.Doc["name"] = r.ID.Name()
	return t.write(r, c)
}

func (t writer) patch(r *request) (reply, error) {
	if r.Kind.ReadOnly {
		return reply{}, methodNotAllowed(r)
	}
	if err := t.check(r); err != nil {
		return reply{}, err
	}
	old, ok, err := t.stored(r)
	if err != nil {
		return reply{}, err
	}
	if !ok {
		return reply{}, t.missing(r)
	}
	c := r.call(t.world, behaviour.Patch)
	c.Old, c.Doc = old, behaviour.Clone(old)
	if err := t.checkMembers(r, c); err != nil {
		return reply{}, err
	}
	switch {
	case r.Kind.Merge != nil:
		if err := r.Kind.Merge(c); err != nil {
			return reply{}, err
		}
	case r.Kind.Style.TagsOnly:
		if tags, ok := r.body["tags"]; ok {
			c.Doc["tags"] = behaviour.Clone(tags)
		}
	default:
		document.Merge(c.Doc, r.body)
	}
	c.Doc = document.FromBody(r.Kind, r.ID, c.Doc, old)
	c.Doc["name"] = r.ID.Name()
	return t.write(r, c)
}

// mayWrite checks the rights to the resources that c.Doc names, and policies.
func (t writer) mayWrite(r *request, c *behaviour.Call) error {
	if err := t.access.AuthorizeLinks(r.links(), c.Doc); err != nil {
		return err
	}
	return t.checkPolicies(r, c)
}

// write checks and stores c.Doc, and begins the operation that settles it.
func (t writer) write(r *request, c *behaviour.Call) (reply, error) {
	if err := t.mayWrite(r, c); err != nil {
		return reply{}, err
	}
	if fault := t.precondition(r); fault != nil {
		if !r.Kind.Style.PreconditionInPoll {
			return reply{}, fault
		}
		return t.acceptAndFail(r, c, fault), nil
	}
	if err := t.starter.notBeingDeleted(r); err != nil {
		return reply{}, err
	}
	whole, stored, err := t.prepare(r, c)
	if err != nil {
		return reply{}, err
	}
	if err := t.checkAround(r, c, whole); err != nil {
		return reply{}, err
	}
	o := t.starter.operation(r, c.Verb)
	if err := t.starter.overlap(r, o); err != nil {
		return reply{}, err
	}
	o.Body, o.Notes, o.Old = r.body, c.Notes, c.Old
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
		return reply{}, err
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

// prepare completes the document and returns the call of the document to store. This is the document of c or, for an inline
// child, its parent's document with the child in it.
func (t writer) prepare(r *request, c *behaviour.Call) (*behaviour.Call, *kind.Kind, error) {
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

// checkAround checks a document against its model and what is around it. whole is the call of the document
// that holds it.
func (t writer) checkAround(r *request, c, whole *behaviour.Call) error {
	if err := t.checkValues(r, c); err != nil {
		return err
	}
	if err := t.references.check(r.Kind, r.ID, c.Doc); err != nil {
		return err
	}
	return t.starter.checkBlockers(r, whole)
}

// acceptAndFail makes an operation that fails, for providers that check preconditions
// after they have accepted the request.
func (t writer) acceptAndFail(r *request, c *behaviour.Call, fault *behaviour.Error) reply {
	o := t.starter.operation(r, c.Verb)
	t.starter.runner.Reject(o, fault)
	to := reply{status: successStatus(r.Kind, c.Verb), body: behaviour.Object{}}
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
func (t writer) answer(r *request, c *behaviour.Call, o *operation.Operation, long behaviour.Headers) (reply, error) {
	k := r.Kind
	to := reply{status: successStatus(k, c.Verb)}
	if k.AtOnce != nil && long == behaviour.None {
		to.status = cmp.Or(k.Style.Updated, http.StatusOK)
	}
	switch {
	case to.status == http.StatusAccepted && k.Style.Accepted == behaviour.EmptyObject:
		to.body = behaviour.Object{}
	case to.status == http.StatusAccepted && k.Style.Accepted == behaviour.Nothing:
	default:
		doc, ok := t.docs.Get(r.ID)
		if !ok {
			return reply{}, fmt.Errorf("%s is not there after it was written", r.ID)
		}
		to.body = document.View(*c, k, doc)
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
		if err := t.remover.allowed(&gone, child); err != nil {
			return err
		}
	}
	return nil
}
