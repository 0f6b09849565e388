package emulator

import (
	"slices"
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
	if err := t.authorizeLinks(r, c.Doc); err != nil {
		return err
	}
	if err := t.checkReferences(stored, id, doc); err != nil {
		return err
	}
	o := t.newOperation(r, c.Verb)
	long := longHeaders(k, c)
	if err := t.overlap(r, o); err != nil {
		return err
	}
	o.body, o.notes, o.old = r.body, c.Notes, c.Old
	now := long == behaviour.None || k.Style.Prompt[c.Verb]
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

// checkReferences refuses a document that names what does not exist, or what is
// not ready.
func (t *transaction) checkReferences(k *kind, id azure.ID, doc behaviour.Object) error {
	if !k.Style.CheckReferences && !k.Style.Provisioned {
		return nil
	}
	for _, ref := range references(id, doc) {
		to := azure.ID(ref.target)
		other := t.kinds.of(to.Type())
		if other == nil || other.Find != nil || other.ReadOnly {
			continue
		}
		target, ok := t.Get(to)
		if !ok {
			if k.Style.CheckReferences {
				return behaviour.InvalidReference(id, t.spelling(to, doc))
			}
			continue
		}
		if k.Style.Provisioned && other.Style.Provisioned && t.busy(other, to) {
			return notProvisioned(id, azure.ID(behaviour.Text(target, "id")), other)
		}
	}
	return nil
}

// spelling finds the id as the document spells it.
func (t *transaction) spelling(id azure.ID, value any) azure.ID {
	switch v := value.(type) {
	case behaviour.Object:
		for _, x := range v {
			if found := t.spelling(id, x); found != id {
				return found
			}
		}
	case []any:
		for _, x := range v {
			if found := t.spelling(id, x); found != id {
				return found
			}
		}
	case string:
		if id.Equal(azure.ID(v)) {
			return azure.ID(v)
		}
	}
	return id
}

// busy reports whether a create or update of the resource itself runs.
func (t *transaction) busy(k *kind, id azure.ID) bool {
	return slices.ContainsFunc(t.operations.byKey[holderOf(k, id).Key()], func(o *operation) bool {
		return isWrite(o.Verb) && o.Resource.Equal(id)
	})
}

func notProvisioned(id, to azure.ID, k *kind) error {
	segment := k.segment()
	e := behaviour.Refusal(429, "RetryableError", "A retryable error occurred.").
		With("ReferencedResourceNotProvisioned", "Cannot proceed with operation because resource %s used by resource %s is not in Succeeded state. Resource is in Updating state and the last operation that updated/is updating the resource is Put%sOperation.",
			to, id, strings.ToUpper(segment[:1])+strings.TrimSuffix(strings.TrimSuffix(segment[1:], "es"), "s"))
	e.RetryAfter = 10
	return e
}

// overlap decides what happens to operations that run on the document already.
func (t *transaction) overlap(r *request, o *operation) error {
	for _, other := range slices.Clone(t.operations.byKey[o.held().Key()]) {
		if err := t.beside(r, o, other); err != nil {
			return err
		}
	}
	return nil
}

// beside decides about one operation that runs when another is to start.
func (t *transaction) beside(r *request, o, other *operation) error {
	style := r.kind.Style
	same := other.Resource.Equal(o.Resource)
	if other.Verb == behaviour.Delete {
		if same && o.Verb == behaviour.Delete || other.kind == t.groups {
			return nil
		}
		if o.Resource.Under(other.Resource) || other.Resource.Under(o.Resource) {
			return t.inProgress(r, other)
		}
	}
	switch style.Overlap {
	case behaviour.Supersede:
		if !same && style.Alone {
			return t.inProgress(r, other)
		}
		if same {
			t.supersede(other, o)
		}
	case behaviour.Busy:
		return conflict()
	case behaviour.Queue:
		if last := other.due.Add(o.due.Sub(o.Start)); other.due.After(o.Start) && last.After(o.due) {
			o.due = last
		}
	case behaviour.Parallel:
	}
	return nil
}

func conflict() error {
	return behaviour.Conflict("Conflict", "The request failed due to conflict with a concurrent request. To resolve it, please refer to https://aka.ms/activitylog to get more details on the conflicting requests.")
}

// inProgress refuses a request because of a running operation, in the provider's way.
func (t *transaction) inProgress(r *request, other *operation) error {
	p := other.kind.Style.Protocol
	if r.kind.Style.Overlap != behaviour.Supersede || p.Status == nil {
		return conflict()
	}
	err := behaviour.Refusal(429, "AnotherOperationInProgress", "Another operation on this or dependent resource is in progress. To retrieve status of the operation use uri: %s.",
		t.pollURL(r, p, p.Status(other.Operation)))
	err.RetryAfter = 10
	return err
}

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

// delete serves DELETE of a resource.
func (t *transaction) delete(r *request) error {
	k := r.kind
	if k.ReadOnly {
		return methodNotAllowed(r)
	}
	if g := r.id.Group(); g != "" && k != t.groups {
		if _, ok := t.Get(azure.GroupID(r.id.Subscription(), g)); !ok {
			return behaviour.GroupNotFound(g)
		}
	}
	c := r.call(t)
	c.Verb = behaviour.Delete
	old, ok := t.Get(r.id)
	if !ok {
		if k == t.groups {
			return behaviour.GroupNotFound(r.id.Group())
		}
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
	o := t.newOperation(r, behaviour.Delete)
	if err := t.overlap(r, o); err != nil {
		return err
	}
	long := longHeaders(k, c)
	if long == behaviour.None || k.Style.Prompt[behaviour.Delete] {
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
	if k.InUse != nil {
		if by := t.usedBy(c.ID); len(by) > 0 {
			if err := k.InUse(c, by); err != nil {
				return err
			}
		}
	}
	if k.Refuse != nil {
		if err := k.Refuse(c); err != nil {
			return err
		}
	}
	for _, child := range k.inline {
		for _, element := range behaviour.Objects(c.Old, child.Inline) {
			inside := *c
			inside.ID, inside.Type = c.ID.Child(child.segment(), behaviour.Text(element, "name")), child.Type
			inside.Old, inside.Parent = element, c.Old
			if err := t.deletable(&inside, child); err != nil {
				return err
			}
		}
	}
	return nil
}

// usedBy are the referrers that do not lie below the resource itself. What the
// resource's own document says is not in the index.
func (t *transaction) usedBy(id azure.ID) []behaviour.Referrer {
	return slices.DeleteFunc(t.store.referrers(id), func(r behaviour.Referrer) bool { return r.Resource.Under(id) })
}

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

func or(value, otherwise int) int {
	if value == 0 {
		return otherwise
	}
	return value
}
