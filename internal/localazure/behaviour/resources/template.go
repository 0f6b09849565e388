package resources

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/resources/environment"
	"kaz/internal/localazure/behaviour/resources/provider"
	"kaz/internal/localazure/core/catalog"
	"kaz/internal/template"
)

// bind checks the template of a deployment and the parameters given to it. A template that is not bound yet is bound with those
// nested in it.
func bind(c *behaviour.Call, s *source) (*template.Template, error) {
	d := deploymentOf(c, s)
	t, known, err := c.Work().Bound(s.document, d)
	if !known {
		work, call, of := c.Work(), *c, *s
		of.linked = maps.Clone(s.linked)
		if err := c.Compute(func(look behaviour.Look) { expansion{work, look}.expand(call, &of, d, 0) }); err != nil {
			return nil, err
		}
		t, _, err = c.Work().Bound(s.document, d)
	}
	if err != nil {
		return nil, invalidTemplate(err)
	}
	return t, nil
}

// expansion binds a template and those nested in it, as far as they are known before the outer one runs.
type expansion struct {
	work *template.Work
	look behaviour.Look
}

// expand binds the template of a deployment, and computes what it sends. It reports whether nothing is wrong as far as this is known.
// What is wrong is found again by the behaviour that needs the template.
func (e expansion) expand(c behaviour.Call, s *source, d template.Deployment, depth int) bool {
	t, err := e.work.Bind(s.document, d)
	if err != nil {
		return false
	}
	for _, r := range t.Resources {
		if r.Nested() && (depth == mostNested || !e.expandNested(c, s, t, r, depth)) {
			return false
		}
	}
	t.PreviewAll()
	return true
}

func (e expansion) expandNested(c behaviour.Call, s *source, t *template.Template, r *template.Resource, depth int) bool {
	body, err := t.Preview(r)
	if err != nil {
		return template.NeedsResources(err)
	}
	inner, of := nestedCall(&c, s, r, body), (*source)(nil)
	var to template.Deployment
	e.look(func(w behaviour.World) {
		inner.World = w
		if of, err = sourceOf(inner); err == nil {
			to = deploymentOf(inner, of)
		}
	})
	if err != nil || !e.expand(*inner, of, to, depth+1) {
		return false
	}
	maps.Copy(s.linked, of.linked)
	return true
}

// nestedCall is the call of a nested deployment with its body.
func nestedCall(c *behaviour.Call, s *source, r *template.Resource, body behaviour.Object) *behaviour.Call {
	inner := *c
	inner.ID, inner.Old, inner.Body = r.ID, nil, s.nestedBody(body)
	inner.Doc = behaviour.Object{"location": body["location"]}
	return &inner
}

// deploymentOf is what the template of a deployment is bound to.
func deploymentOf(c *behaviour.Call, s *source) template.Deployment {
	id := c.ID.Subscription()
	tenant := c.TenantOf(id)
	d := template.Deployment{
		ID: c.ID, Location: behaviour.Text(c.Doc, "location"), Parameters: s.given, Azure: existing{c},
		TemplateLink: s.link, Hash: hash, Environment: environment.Of(c.Host), Now: c.Now(), GUID: c.GUID,
		Subscription: behaviour.Object{"id": string(azure.SubscriptionID(id)), "subscriptionId": id, "tenantId": tenant,
			"displayName": "kaz"},
		Tenant: behaviour.Object{"id": "/tenants/" + tenant, "tenantId": tenant, "countryCode": "US", "displayName": "kaz"},
	}
	if c.Caller.Principal != nil {
		d.Deployer = behaviour.Object{"objectId": c.Caller.Principal.ObjectID, "tenantId": tenant, "userPrincipalName": ""}
	}
	if name := c.ID.Group(); name != "" {
		d.Group = behaviour.Object{
			"id": string(azure.GroupID(id, name)), "name": name, "type": groupType, "location": "",
			"properties": behaviour.Object{"provisioningState": "Succeeded"},
		}
		if group, ok := c.Get(azure.GroupID(id, name)); ok {
			d.Group["location"] = behaviour.Text(group, "location")
			if tags := behaviour.Sub(group, "tags"); tags != nil {
				d.Group["tags"] = tags
			}
		}
	}
	return d
}

// invalidTemplate is how the resource manager refuses a template.
func invalidTemplate(err error) error {
	message, step := strings.TrimSuffix(err.Error(), "."), "validation"
	if e, ok := errors.AsType[*template.Error](err); ok {
		if message = strings.TrimSuffix(e.Message, "."); e.Parse {
			message, step = e.Message, "parse"
		}
	}
	return behaviour.Gateway(400, "InvalidTemplate", "Deployment template %s failed: '%s'.", step, message)
}

// existing answers a template from the resources that exist.
type existing struct{ c *behaviour.Call }

// Zones implements [template.Azure].
func (e existing) Zones(location string) map[string]string {
	zones := map[string]string{}
	if r, ok := catalog.FindRegion(location); ok {
		for _, z := range r.Zones {
			zones[z] = physicalZone(r, z)
		}
	}
	return zones
}

// Provider implements [template.Azure].
func (e existing) Provider(namespace string) template.Object { return provider.Document("", namespace) }

// bygone are properties that a type shows only before an api-version. internalData is recorded in 2019-07-01. The first
// version without it is not recorded.
var bygone = []struct{ fullType, until, property string }{
	{"Microsoft.Compute/availabilitySets", "2020-06-01", "internalData"},
}

// Reference implements [template.Azure].
func (e existing) Reference(r template.Reference) (template.Object, error) {
	if err := e.c.Permit(e.c.Caller, behaviour.TypeInActions(r.ID.Type())+"/read", r.ID); err != nil {
		return nil, err
	}
	doc, ok := e.c.View(r.ID)
	if !ok {
		return nil, behaviour.NotFound(r.ID)
	}
	view := behaviour.Clone(doc)
	for _, b := range bygone {
		if r.ID.Is(b.fullType) && r.Version != "" && r.Version < b.until {
			behaviour.Default(view, "properties."+b.property, behaviour.Object{})
		}
	}
	return view, nil
}

// List implements [template.Azure].
func (e existing) List(function string, r template.Reference, body any) (any, error) {
	object, _ := body.(behaviour.Object)
	answer, err := e.c.Act(e.c.Caller, r.ID, function, object)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	var tree any // an action's answer may hold structs
	err = json.Unmarshal(text, &tree)
	return tree, err
}
