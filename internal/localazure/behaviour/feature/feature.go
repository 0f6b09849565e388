// Package feature has the registrations of subscriptions for preview features. Layer L2.
package feature

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// registrationType is the type of the registrations of a subscription for preview features.
const registrationType = "Microsoft.Features/featureProviders/subscriptionFeatureRegistrations"

// Types are the types of Microsoft.Features.
func Types() []behaviour.Type {
	registration := behaviour.Plain("Microsoft.Features")
	registration.Created = 200
	return []behaviour.Type{
		{Name: "Microsoft.Features/featureProviders", Style: behaviour.Plain("Microsoft.Features"), ReadOnly: true, NoState: true,
			Find: func(c *behaviour.Call) (behaviour.Object, error) {
				return behaviour.Object{"id": string(c.ID), "name": c.ID.Name(), "type": c.Type.Name}, nil
			}},
		{Name: registrationType, Style: registration, NoState: true, Own: []string{"properties.registrationDate"},
			Fill: func(c *behaviour.Call) error {
				behaviour.Set(c.Doc, "properties.state", "Registered")
				behaviour.Set(c.Doc, "properties.providerNamespace", c.ID.Parent().Name())
				behaviour.Set(c.Doc, "properties.featureName", c.ID.Name())
				behaviour.Set(c.Doc, "properties.subscriptionId", c.ID.Subscription())
				behaviour.Set(c.Doc, "properties.approvalType", "AutoApproval")
				behaviour.Set(c.Doc, "properties.shouldFeatureDisplayInPortal", false)
				behaviour.Default(c.Doc, "properties.registrationDate", behaviour.Timestamp(c.Now()))
				return nil
			},
			Show: func(_ *behaviour.Call, view behaviour.Object) { view["type"] = strings.ToLower(registrationType) },
		},
	}
}

// Routes answers the requests of the older API: its paths name two providers. known reports whether there is a provider with a namespace.
func Routes(known func(namespace string) bool) []behaviour.Route {
	const (
		here = "/subscriptions/{subscription}/providers/Microsoft.Features/"
		one  = here + "providers/{namespace}/features/{feature}"
	)
	register := func(state, said string) func(*behaviour.Call) (behaviour.Reply, error) {
		return func(c *behaviour.Call) (behaviour.Reply, error) {
			id := featureID(c)
			c.Put(id, behaviour.Object{"name": id.Name(), "properties": behaviour.Object{"state": state}})
			if !known(c.Param["namespace"]) {
				return get(c, known)
			}
			return behaviour.Reply{Status: 200, Body: feature(id, said)}, nil
		}
	}
	show := func(c *behaviour.Call) (behaviour.Reply, error) { return get(c, known) }
	return []behaviour.Route{
		{Method: "GET", Pattern: here + "features", Do: list, Permission: "Microsoft.Features/features/read"},
		{Method: "GET", Pattern: here + "providers/{namespace}/features", Do: list,
			Permission: "Microsoft.Features/providers/features/read"},
		{Method: "GET", Pattern: one, Do: show, Permission: "Microsoft.Features/providers/features/read"},
		{Method: "POST", Pattern: one + "/register", Do: register("Registered", "Registered"), Writes: true,
			Permission: "Microsoft.Features/providers/features/register/action"},
		{Method: "POST", Pattern: one + "/unregister", Do: register("Unregistered", "Unregistering"), Writes: true,
			Permission: "Microsoft.Features/providers/features/unregister/action"},
	}
}

func featureID(c *behaviour.Call) azure.ID {
	return azure.SubscriptionID(c.Param["subscription"]).Resource("Microsoft.Features/featureProviders", c.Param["namespace"]).
		Child("subscriptionFeatureRegistrations", c.Param["feature"])
}

// feature is a registration as the older API shows it.
func feature(id azure.ID, state string) behaviour.Object {
	return behaviour.Object{
		"id": string(azure.SubscriptionID(id.Subscription())) + "/providers/Microsoft.Features/providers/" + id.Parent().Name() +
			"/features/" + id.Name(),
		"type": "Microsoft.Features/providers/features", "name": id.Parent().Name() + "/" + id.Name(),
		"properties": behaviour.Object{"state": state},
	}
}

func get(c *behaviour.Call, known func(namespace string) bool) (behaviour.Reply, error) {
	if !known(c.Param["namespace"]) {
		return behaviour.Reply{},
			behaviour.UnknownNamespace(c.Param["namespace"])
	}
	state := "NotRegistered"
	if doc, there := c.Get(featureID(c)); there {
		state = behaviour.Text(doc, "properties.state")
	}
	return behaviour.Reply{Status: 200, Body: feature(featureID(c), state)}, nil
}

// list lists the features that the subscription has registered or unregistered: the local Azure knows no others.
func list(c *behaviour.Call) (behaviour.Reply, error) {
	items := []any{}
	for id, doc := range c.List(azure.SubscriptionID(c.Param["subscription"]), registrationType) {
		if namespace := c.Param["namespace"]; namespace == "" || strings.EqualFold(namespace, id.Parent().Name()) {
			items = append(items, feature(id, behaviour.Text(doc, "properties.state")))
		}
	}
	return behaviour.Reply{Status: 200, Body: behaviour.Object{"value": items}}, nil
}
