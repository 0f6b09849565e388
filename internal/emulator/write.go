package emulator

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// put serves PUT of a resource.
func (t *transaction) put(r *request) error {
	k, id := r.kind, r.id
	if k.ReadOnly {
		return methodNotAllowed(r)
	}
	if err := t.scopeExists(r); err != nil {
		return err
	}
	c := r.call(t)
	c.Old, _ = t.Get(id)
	c.Verb = behaviour.Create
	if c.Old != nil {
		c.Verb = behaviour.Update
	}
	doc := admit(k, id, r.body, c.Old)
	doc["name"] = id.Name()
	c.Doc = doc
	return t.writeDocument(r, c)
}

// patch serves PATCH of a resource.
func (t *transaction) patch(r *request) error {
	k, id := r.kind, r.id
	if k.ReadOnly {
		return methodNotAllowed(r)
	}
	if err := t.scopeExists(r); err != nil {
		return err
	}
	c := r.call(t)
	old, ok := t.Get(id)
	if !ok {
		return notThere(t, r)
	}
	c.Old, c.Verb = old, behaviour.Patch
	c.Doc = behaviour.Clone(old)
	switch {
	case k.Merge != nil:
		if err := k.Merge(c); err != nil {
			return err
		}
	case k.Style.TagsOnly:
		if tags, ok := r.body["tags"]; ok {
			c.Doc["tags"] = behaviour.Clone(tags)
		}
	default:
		merge(c.Doc, r.body)
	}
	c.Doc = admit(k, id, c.Doc, old)
	c.Doc["name"] = id.Name()
	return t.writeDocument(r, c)
}

// writeDocument checks and stores c.Doc and makes the reply.
func (t *transaction) writeDocument(r *request, c *behaviour.Call) error {
	k := r.kind
	if fault := t.precondition(r); fault != nil {
		if !k.Style.PreconditionInPoll {
			return fault
		}
		return t.acceptAndFail(r, c, fault)
	}
	if err := t.notBeingDeleted(r); err != nil {
		return err
	}
	stored, id, doc, err := t.prepare(r, c)
	if err != nil {
		return err
	}
	whole := *c
	whole.ID, whole.Type, whole.Doc = id, stored.Type, doc
	if err := t.checkAround(r, c, &whole); err != nil {
		return err
	}
	o := t.newOperation(r, c.Verb)
	long := longHeaders(k, c)
	if err := t.overlap(r, o); err != nil {
		return err
	}
	o.body, o.notes, o.old = r.body, c.Notes, c.Old
	now := long == behaviour.None || k.Style.Prompt[c.Verb] && o.fault == nil
	state := succeeded
	if !now {
		state = running(k, c.Verb)
	}
	hidden := k.Style.Hidden && c.Verb == behaviour.Create && long != behaviour.None
	t.save(stored, id, doc, saving{state: state, hidden: hidden, touch: k.Style.Etag != behaviour.Counter})
	if !now {
		t.start(o)
	} else if err := t.finishNow(o); err != nil {
		return err
	}
	return t.writeReply(r, c, o, long)
}

// checkAround checks a document against what is around it. whole is the call of the document
// that holds it.
func (t *transaction) checkAround(r *request, c, whole *behaviour.Call) error {
	if err := t.authorizeLinks(r, c.Doc); err != nil {
		return err
	}
	if err := t.checkReferences(r.kind, r.id, c.Doc); err != nil {
		return err
	}
	return t.notBeside(r, whole)
}

// longHeaders are the polling headers of the reply to a write or delete, None when
// it ends in its reply.
func longHeaders(k *kind, c *behaviour.Call) behaviour.Headers {
	if k.AtOnce != nil && k.AtOnce(c) {
		return behaviour.None
	}
	return k.Style.Long[c.Verb]
}

// finishNow ends an operation within its request; what fails is the request.
func (t *transaction) finishNow(o *operation) error {
	t.register(o)
	o.index = -1
	o.End = t.now
	if o.fault != nil {
		return o.fault
	}
	if err := t.settle(o); err != nil {
		return err
	}
	t.retire(o)
	return nil
}

func running(k *kind, v behaviour.Verb) string {
	if v == behaviour.Create && k.Style.Creating != "" {
		return k.Style.Creating
	}
	if k.Style.Updating != "" {
		return k.Style.Updating
	}
	return "Updating"
}

// prepare completes the document and returns what is to be stored: c.Doc itself or,
// for an inline child, its parent's document with the child in it.
func (t *transaction) prepare(r *request, c *behaviour.Call) (*kind, azure.ID, behaviour.Object, error) {
	k := r.kind
	if k.Inline == "" {
		t.addParent(r, c)
		if err := locate(k, r.id, c.Doc, c.Old); err != nil {
			return nil, "", nil, err
		}
		if k.Style.EmptyTags {
			behaviour.Default(c.Doc, "tags", behaviour.Object{})
		}
		if k.Where != behaviour.Nowhere || c.Doc["properties"] != nil || !k.NoState {
			behaviour.Default(c.Doc, "properties", behaviour.Object{})
		}
		err := t.complete(c, k)
		return k, r.id, c.Doc, err
	}
	stored, id := k.holder(), holderOf(k, r.id)
	e := t.store.entries[id.Key()]
	doc := e.fresh()
	holder := elementHolder(k, r.id, stored, doc)
	if holder == nil {
		return nil, "", nil, behaviour.ParentNotFound("write", r.id)
	}
	element := c.Doc
	replaceNamed(holder, k.Inline, r.id.Name(), element)
	outer := *c
	outer.ID, outer.Type, outer.Doc, outer.Old = id, stored.Type, doc, t.store.doc(e)
	outer.Verb = behaviour.Update
	err := t.complete(&outer, stored)
	return stored, id, doc, err
}

// locate checks and normalises a document's location.
func locate(k *kind, id azure.ID, doc, old behaviour.Object) error {
	location := NormalLocation(behaviour.Text(doc, "location"))
	switch k.Where {
	case behaviour.Nowhere:
		delete(doc, "location")
		return nil
	case behaviour.Global:
		if location != "" && location != "global" {
			return gateway(400, "LocationNotAvailableForResourceType", "The provided location '%s' is not available for resource type '%s'. List of available regions for the resource type is 'global'.", location, k.Name)
		}
		doc["location"] = "global"
		return nil
	}
	if location == "" {
		location = behaviour.Text(old, "location")
	}
	if location == "" {
		if k.Where == behaviour.Anywhere {
			return nil
		}
		return gateway(400, "LocationRequired", "The location property is required for this definition.")
	}
	if had := behaviour.Text(old, "location"); had != "" && had != location {
		if id.Is("Microsoft.Resources/resourceGroups") {
			return gateway(409, "InvalidResourceGroupLocation", "Invalid resource group location '%s'. The Resource group already exists in location '%s'.", location, had)
		}
		return gateway(409, "InvalidResourceLocation", "The resource '%s' already exists in location '%s' in resource group '%s'. A resource with the same name cannot be created in location '%s'. Please select a new resource name.", id.Name(), had, id.Group(), location)
	}
	doc["location"] = location
	return nil
}

// NormalLocation is a region's name as Azure stores it: "East US" is "eastus".
func NormalLocation(s string) string { return strings.ToLower(strings.ReplaceAll(s, " ", "")) }

// newOperation makes the record of an operation that starts now.
func (t *transaction) newOperation(r *request, v behaviour.Verb) *operation {
	r.wait = t.latency.reply(r.kind, v)
	o := &operation{kind: r.kind, due: t.now.Add(r.wait + t.latency.operation(r.kind, v)), fault: r.operationFault, index: -1}
	o.Operation = behaviour.Operation{ID: t.random.guid(), Verb: v, Resource: r.id, Start: t.now, Location: t.region(r)}
	return o
}

// region is the location of the resource that a request is about.
func (t *transaction) region(r *request) string {
	for id := r.id; id != ""; id = id.Parent() {
		if doc, ok := t.Get(id); ok {
			if l := behaviour.Text(doc, "location"); l != "" && l != "global" {
				return l
			}
		}
	}
	if l := NormalLocation(behaviour.Text(r.body, "location")); l != "" {
		return l
	}
	return "eastus"
}

// unused refuses what others refer to, in the resource and in all its inline
// children. That the children refer to each other is no reason when they all go.
func (t *transaction) unused(c *behaviour.Call, k *kind) error {
	if k.InUse != nil {
		if by := t.usedBy(c.ID); len(by) > 0 {
			if err := k.InUse(c, by); err != nil {
				return err
			}
		}
	}
	for _, child := range k.inline {
		for _, element := range behaviour.Objects(c.Old, child.Inline) {
			inside := *c
			inside.ID, inside.Type = c.ID.Child(child.segment(), behaviour.Text(element, "name")), child.Type
			inside.Old, inside.Parent = element, c.Old
			if err := t.unused(&inside, child); err != nil {
				return err
			}
		}
	}
	return nil
}

func or(value, otherwise int) int {
	if value == 0 {
		return otherwise
	}
	return value
}
