package resources

import (
	"encoding/json"
	"errors"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/catalog"
	"kaz/internal/template"
)

// bind checks the template of a deployment and the parameters given to it.
func bind(c *behaviour.Call, s *source) (*template.Template, error) {
	id := c.ID.Subscription()
	tenant := c.TenantOf(id)
	d := template.Deployment{
		ID: c.ID, Location: behaviour.Text(c.Doc, "location"), Parameters: s.given, Azure: existing{c},
		TemplateLink: s.link, Environment: environment(c.Host), Now: c.Now(), GUID: c.GUID, Budget: c.Budget(),
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
	t, err := template.Bind(s.document, d)
	if err != nil {
		return nil, invalidTemplate(err)
	}
	return t, nil
}

// invalidTemplate is how the resource manager refuses a template.
func invalidTemplate(err error) error {
	message := err.Error()
	if e, ok := errors.AsType[*template.Error](err); ok {
		message = e.Message
	}
	return behaviour.Gateway(400, "InvalidTemplate", "Deployment template validation failed: '%s'.", strings.TrimSuffix(message, "."))
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
func (e existing) Provider(namespace string) template.Object { return provider("", namespace) }

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
