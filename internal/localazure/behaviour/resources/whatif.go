package resources

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/resources/difference"
	"kaz/internal/template"
)

// whatIf says what a deployment would change. It deploys, compares, and takes everything back, so the values that
// Azure adds count as they would.
//
// The request is an operation. A template that is invalid is the failure of the operation, not of the request.
func whatIf(c *behaviour.Call) (any, error) {
	call, t, _, err := checked(c)
	if fault, ok := errors.AsType[*behaviour.Error](err); ok && fault.Code == "InvalidTemplate" {
		return behaviour.Object{"status": "Failed", "error": fault.Body()}, nil
	}
	if err != nil {
		return nil, err
	}
	p := newPrediction(strings.EqualFold(behaviour.Text(c.Body, "properties.whatIfSettings.resultFormat"), "ResourceIdOnly"))
	call.ID, call.Verb = c.ID, behaviour.Create
	before := existingIn(call)
	call.Try(func() {
		p.look(call, stored(call.Doc), t)
		made := p.deploy(call, stored(call.Doc), t)
		for _, compare := range p.compare {
			compare()
		}
		p.rest(call, before, made)
	})
	if p.incomplete != nil {
		return nil, p.incomplete
	}
	if fault := p.refusal(c.ID); fault != nil {
		return behaviour.Object{"status": "Failed", "error": fault.Body()}, nil
	}
	slices.SortStableFunc(p.changes, func(a, b behaviour.Object) int {
		return strings.Compare(behaviour.Text(a, "resourceId"), behaviour.Text(b, "resourceId"))
	})
	return behaviour.Object{"status": "Succeeded", "properties": behaviour.Object{"correlationId": c.GUID(), "changes": p.changes}}, nil
}

// prediction collects the changes of a deployment.
type prediction struct {
	brief   bool // ids alone
	denied  []*behaviour.Error
	refused []*behaviour.Error // by the providers
	changes []behaviour.Object
	// before are the resources before the deployment, by key, as clients see them: nil for one that is not there.
	before map[string]behaviour.Object
	// compare notes what became of the resources, when all are made: a child of another resource may be removed and made again.
	compare []func()
	// incomplete is the error of a template that is not computed yet.
	incomplete error
}

func newPrediction(brief bool) *prediction {
	return &prediction{brief: brief, before: map[string]behaviour.Object{}}
}

// existingIn are the resources directly in the group of a deployment, as clients see them.
func existingIn(c *behaviour.Call) map[azure.ID]behaviour.Object {
	all := map[azure.ID]behaviour.Object{}
	if c.ID.Group() == "" {
		return all
	}
	for id := range c.In(c.ID.Parent()) {
		if view, ok := seen(c, id); ok && id.Namespace() != "Microsoft.Resources" {
			all[id] = behaviour.Clone(view)
		}
	}
	return all
}

// seen is what the caller sees of a resource, nothing of one that it may not read.
func seen(c *behaviour.Call, id azure.ID) (behaviour.Object, bool) {
	if !c.Allowed(c.Caller.Principal, behaviour.TypeInActions(id.Type())+"/read", id) {
		return nil, false
	}
	return c.View(id)
}

// deploy makes the resources of a template and notes what changes. It returns the ids of the resources.
func (p *prediction) deploy(c *behaviour.Call, s *source, t *template.Template) []azure.ID {
	var made []azure.ID
	for _, r := range t.Resources {
		if r.Nested() {
			made = append(made, p.nested(c, s, t, r)...)
			continue
		}
		made = append(made, r.ID)
		p.remember(c, r.ID)
		body, err := t.Body(r)
		sent := behaviour.Clone(body)
		if err == nil {
			err = c.ApplyVersion(c.Caller, r.ID, r.Version, body)
		}
		p.noteDenied(err)
		p.noteRefused(r.ID, body, err)
		p.compare = append(p.compare, func() { p.become(c, r, sent, err) })
	}
	return made
}

// noteRefused notes an error with which a provider refuses to make a resource, as it refuses the deployment. Errors of a resource that
// is there may depend on what else is there.
func (p *prediction) noteRefused(id azure.ID, body behaviour.Object, err error) {
	fault, ok := errors.AsType[*behaviour.Error](err)
	if body != nil && p.before[id.Key()] == nil && ok && fault.Status == 400 && !fault.Keep {
		detail := *fault
		detail.Target = string(id)
		p.refused = append(p.refused, &detail)
	}
}

// refusal is the error of a deployment of which providers refuse resources, nil for none.
func (p *prediction) refusal(deployment azure.ID) *behaviour.Error {
	if len(p.refused) == 0 {
		return nil
	}
	fault := behaviour.Gateway(400, "InvalidTemplateDeployment", "The template deployment '%s' is not valid according to the validation "+
		"procedure. See inner errors for details. Please see https://aka.ms/arm-deploy for usage details.", deployment.Name())
	fault.Details = p.refused
	return fault
}

// become notes what becomes of a resource. The error is that of its request. The body is nil if it cannot be computed.
func (p *prediction) become(c *behaviour.Call, r *template.Resource, sent behaviour.Object, err error) {
	before := p.before[r.ID.Key()]
	switch after, _ := seen(c, r.ID); {
	case err != nil && sent == nil:
		p.note(r.ID, "Unsupported", before, nil)["unsupportedReason"] = "The resource cannot be evaluated before it is deployed: " +
			err.Error()
	case before != nil && err == nil:
		p.modify(r, before, behaviour.Clone(after))
	case before != nil:
		p.modify(r, before, difference.Merged(before, sent))
	default:
		p.note(r.ID, "Create", nil, payload(r, sent))
	}
}

// look remembers the resources of a template, and of those nested in it as far as they are known from what exists.
func (p *prediction) look(c *behaviour.Call, s *source, t *template.Template) {
	for _, r := range t.Resources {
		if !r.Nested() {
			p.remember(c, r.ID)
			continue
		}
		if body, err := t.Body(r); err == nil {
			p.lookInside(nestedCall(c, s, r, body))
		}
	}
}

func (p *prediction) lookInside(inner *behaviour.Call) {
	of, err := sourceOf(inner)
	if err != nil {
		return
	}
	if nested, err := bind(inner, of); err == nil {
		p.look(inner, of, nested)
	}
}

// remember keeps how a resource is before the deployment.
func (p *prediction) remember(c *behaviour.Call, id azure.ID) {
	if _, known := p.before[id.Key()]; !known {
		view, _ := seen(c, id)
		p.before[id.Key()] = behaviour.Clone(view)
	}
}

// nested notes the changes of a nested deployment, which is no change itself.
func (p *prediction) nested(c *behaviour.Call, s *source, t *template.Template, r *template.Resource) []azure.ID {
	body, err := t.Body(r)
	var inner *behaviour.Call
	var of *source
	if err == nil {
		inner = nestedCall(c, s, r, body)
		of, err = sourceOf(inner)
	}
	var nested *template.Template
	if err == nil {
		nested, err = bind(inner, of)
	}
	if behaviour.Incomplete(err) {
		p.incomplete = cmp.Or(p.incomplete, err)
		return nil
	}
	if err != nil {
		p.note(r.ID, "Unsupported", nil, nil)["unsupportedReason"] = "The nested deployment cannot be evaluated before it is deployed: " +
			err.Error()
		return nil
	}
	return p.deploy(inner, of, nested)
}

// rest notes the resources of the group that the deployment does not make.
func (p *prediction) rest(c *behaviour.Call, before map[azure.ID]behaviour.Object, made []azure.ID) {
	keep := map[string]bool{}
	for _, id := range made {
		keep[id.TopLevel().Key()] = true
	}
	for id, view := range before {
		switch {
		case keep[id.Key()]:
		case completes(c.Body):
			p.note(id, "Delete", view, nil)
		default:
			p.note(id, "Ignore", view, view)
		}
	}
}

func (p *prediction) note(id azure.ID, what string, before, after behaviour.Object) behaviour.Object {
	change := behaviour.Object{"resourceId": string(id), "changeType": what}
	if p.brief {
		if what == "Create" || what == "Modify" || what == "NoChange" {
			change["changeType"] = "Deploy"
		}
	} else {
		if before != nil {
			change["before"] = difference.Settled(before)
		}
		if after != nil {
			change["after"] = difference.Settled(after)
		}
	}
	p.changes = append(p.changes, change)
	return change
}

func (p *prediction) modify(r *template.Resource, before, after behaviour.Object) {
	before, after = difference.Settled(before), difference.Settled(after)
	before["apiVersion"], after["apiVersion"] = r.Version, r.Version
	delta := difference.Between(before, after)
	if len(delta) == 0 {
		p.note(r.ID, "NoChange", before, after)
		return
	}
	change := p.note(r.ID, "Modify", before, after)
	if !p.brief {
		change["delta"] = delta
	}
}

// payload is a resource that is created, as the template has it.
func payload(r *template.Resource, body behaviour.Object) behaviour.Object {
	o := behaviour.Clone(body)
	if o == nil {
		o = behaviour.Object{}
	}
	entry := target(r.ID)
	o["id"], o["type"], o["name"], o["apiVersion"] = string(r.ID), r.ID.Type(), entry["resourceName"], r.Version
	if group := r.ID.Group(); group != "" {
		o["resourceGroup"] = group
	}
	return o
}
