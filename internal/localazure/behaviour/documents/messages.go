package documents

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// rootRule is the rule that every namespace of messages has.
var rootRule = behaviour.Object{"rights": []any{"Listen", "Manage", "Send"}}

// networkRules are the rules of the network that a namespace of messages begins with.
var networkRules = behaviour.Object{"publicNetworkAccess": "Enabled", "defaultAction": "Allow", "virtualNetworkRules": []any{},
	"ipRules": []any{}, "trustedServiceAccessEnabled": false}

// made are the resources that come into being with others, by their paths below these.
var made = map[string]map[string]behaviour.Object{
	"Microsoft.EventHub/namespaces": {
		"/authorizationRules/RootManageSharedAccessKey": rootRule, "/networkRuleSets/default": networkRules,
	},
	"Microsoft.EventHub/namespaces/eventhubs": {"/consumergroups/$Default": {}},
	"Microsoft.Relay/namespaces":              {"/authorizationRules/RootManageSharedAccessKey": rootRule},
	"Microsoft.Resources/deploymentScripts":   {"/logs/default": {"log": "The local Azure does not run deployment scripts."}},
	"Microsoft.ServiceBus/namespaces": {
		"/AuthorizationRules/RootManageSharedAccessKey": rootRule, "/networkRuleSets/default": networkRules,
	},
	"Microsoft.ServiceBus/namespaces/topics/subscriptions": {"/rules/$Default": {"action": behaviour.Object{}, "filterType": "SqlFilter",
		"sqlFilter": behaviour.Object{"sqlExpression": "1=1", "compatibilityLevel": 20}}},
}

// aliasRules shows the rules of a namespace below the alias for its recovery.
func aliasRules(t *behaviour.Type, rules string) {
	shown := func(alias azure.ID, name string, doc behaviour.Object) behaviour.Object {
		view := behaviour.Clone(doc)
		view["id"], view["name"], view["type"] = string(alias.Child("authorizationRules", name)), name, t.Name
		return view
	}
	t.All = func(c *behaviour.Call) ([]behaviour.Object, error) {
		items := []behaviour.Object{}
		for id, doc := range c.List(c.ID.Parent(), rules) {
			items = append(items, shown(c.ID, id.Name(), doc))
		}
		return items, nil
	}
	t.Find = func(c *behaviour.Call) (behaviour.Object, error) {
		for id, doc := range c.List(c.ID.Parent().Parent(), rules) {
			if strings.EqualFold(id.Name(), c.ID.Name()) {
				return shown(c.ID.Parent(), id.Name(), doc), nil
			}
		}
		return nil, nil
	}
}

// pairNamespaces gives the alias of a recovery to the partner, too: there it has the role Secondary.
func pairNamespaces(c *behaviour.Call) error {
	partner := azure.ID(behaviour.Text(c.Doc, "properties.partnerNamespace"))
	if _, there := c.Get(partner); !there {
		behaviour.Set(c.Doc, "properties.role", "PrimaryNotReplicating")
		return nil
	}
	if behaviour.Text(c.Doc, "properties.role") == "Secondary" {
		return nil
	}
	behaviour.Set(c.Doc, "properties.role", "Primary")
	c.Put(partner.Child("disasterRecoveryConfigs", c.ID.Name()), behaviour.Object{"properties": behaviour.Object{"role": "Secondary",
		"partnerNamespace": string(c.ID.Parent()), "provisioningState": "Succeeded"}})
	return nil
}
