package resources_test

import (
	"testing"

	"kaz/internal/localazure/behaviour/authorization"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/network"
	"kaz/internal/localazure/behaviour/resources"
)

const (
	vnetPath  = "~/providers/Microsoft.Network/virtualNetworks/v"
	nicPath   = "~/providers/Microsoft.Network/networkInterfaces/n"
	otherPath = "~~/resourceGroups/other"
)

func startScopes(t *testing.T) *behaviourtest.Azure {
	a := behaviourtest.Start(t, resources.Provider(), network.Provider(), authorization.Provider())
	a.Run(
		exchange{Do: "PUT " + otherPath, Body: `{"location":"eastus"}`, Status: 201},
		exchange{Do: "PUT " + vnetPath, Status: 201, Body: `{"location":"eastus","tags":{"a":"1"},"properties":{"addressSpace":{
			"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"s","properties":{"addressPrefix":"10.0.0.0/24"}}]}}`},
		exchange{Do: "PUT " + nicPath, Status: 201, Body: `{"location":"eastus","properties":{"ipConfigurations":[{"name":"c","properties":{
			"subnet":{"id":"` + behaviourtest.Group + `/providers/Microsoft.Network/virtualNetworks/v/subnets/s"}}}]}}`},
	)
	return a
}

// The tags of a scope are a resource of their own.
func TestTagsOfAScope(t *testing.T) {
	const tags = vnetPath + "/providers/Microsoft.Resources/tags/default"
	startScopes(t).Run(
		exchange{Do: "GET " + tags, Has: has{"properties.tags.a": "1", "type": "Microsoft.Resources/tags", "name": "default"}},
		exchange{Do: "PATCH " + tags, Body: `{"operation":"Merge","properties":{"tags":{"b":"2"}}}`, Has: has{"properties.tags.a": "1",
			"properties.tags.b": "2"}},
		exchange{Do: "GET " + vnetPath, Has: has{"tags.a": "1", "tags.b": "2"}},
		exchange{Do: "PATCH " + tags, Body: `{"operation":"Delete","properties":{"tags":{"a":"1"}}}`, Has: has{"properties.tags.a": nil}},
		exchange{Do: "PATCH " + tags, Body: `{"operation":"Other","properties":{"tags":{}}}`, Status: 400, Code: "InvalidTagsPatchOperation"},
		exchange{Do: "PUT " + tags, Body: `{"properties":{"tags":{"c":"3"}}}`, Has: has{"properties.tags.c": "3", "properties.tags.b": nil}},
		exchange{Do: "GET " + vnetPath, Has: has{"tags.c": "3", "tags.b": nil, "properties.subnets.#": 1}},
		exchange{Do: "PATCH " + vnetPath, Body: `{"tags":{"d":"4"}}`},
		exchange{Do: "GET " + tags, Has: has{"properties.tags.d": "4", "properties.tags.c": nil}},
		exchange{Do: "DELETE " + tags},
		exchange{Do: "GET " + vnetPath, Has: has{"tags": nil}},
		exchange{Do: "PUT ~~/providers/Microsoft.Resources/tags/default", Body: `{"properties":{"tags":{"s":"5"}}}`},
		exchange{Do: "GET ~~/providers/Microsoft.Resources/tags/default", Has: has{"properties.tags.s": "5"}},
	)
}

// A lock holds for its scope and all below. A lock below also refuses a deletion.
func TestLocks(t *testing.T) {
	const lock = vnetPath + "/providers/Microsoft.Authorization/locks/l"
	startScopes(t).Run(
		exchange{Do: "PUT " + lock, Body: `{"properties":{"level":"never"}}`, Status: 400, Code: "InvalidLockLevel"},
		exchange{Do: "PUT " + lock, Body: `{"properties":{"level":"cannotdelete","notes":"n"}}`, Status: 201,
			Has: has{"properties.level": "CanNotDelete", "type": "Microsoft.Authorization/locks"}},
		exchange{Do: "DELETE " + vnetPath, Status: 409, Code: "ScopeLocked"},
		exchange{Do: "DELETE ~", Status: 409, Code: "ScopeLocked"},
		exchange{Do: "PATCH " + vnetPath, Body: `{"tags":{"x":"y"}}`},
		exchange{Do: "GET ~~/providers/Microsoft.Authorization/locks", Has: has{"value.#": 1}},
		exchange{Do: "PUT " + lock, Body: `{"properties":{"level":"ReadOnly"}}`},
		exchange{Do: "PATCH " + vnetPath, Body: `{"tags":{"x":"z"}}`, Status: 409, Code: "ScopeLocked"},
		exchange{Do: "DELETE " + lock},
		exchange{Do: "PATCH " + vnetPath, Body: `{"tags":{"x":"z"}}`},
	)
}

func TestPolicies(t *testing.T) {
	const base = "~~/providers/Microsoft.Authorization/"
	definition := behaviourtest.Subscription + "/providers/Microsoft.Authorization/policyDefinitions/p"
	startScopes(t).Run(
		exchange{Do: "GET " + base + "policyDefinitions/p", Status: 404, Code: "PolicyDefinitionNotFound"},
		exchange{Do: "PUT " + base + "policyDefinitions/p", Body: `{"properties":{"displayName":"P"}}`, Status: 400, Code: "InvalidRequestContent"},
		exchange{Do: "PUT " + base + "policyDefinitions/p", Status: 201, Body: `{"properties":{"displayName":"P","policyRule":{
			"if":{"field":"name","equals":"x"},"then":{"effect":"deny"}},"parameters":{"names":{"type":"array","defaultValue":[]}}}}`,
			Has: has{"properties.policyType": "Custom", "properties.mode": "Indexed", "properties.parameters.names.type": "Array",
				"properties.metadata.createdBy": "6b617a00-0000-4000-8000-000000000000"}},
		exchange{Do: "PUT ~/providers/Microsoft.Authorization/policyAssignments/a", Status: 201, Body: `{"properties":{
			"policyDefinitionId":"` + definition + `"}}`, Has: has{"properties.enforcementMode": "Default",
			"properties.scope": behaviourtest.Group}},
		exchange{Do: "PUT ~/providers/Microsoft.Authorization/policyAssignments/b", Status: 404, Code: "PolicyDefinitionNotFound",
			Body: `{"properties":{"policyDefinitionId":"` + definition + `2"}}`},
		exchange{Do: "GET ~/providers/Microsoft.Authorization/policyAssignments?$filter=atScope()", Has: has{"value.#": 1}},
		exchange{Do: "GET " + base + "policyAssignments?$filter=atScope()", Has: has{"value.#": 0}},
		exchange{Do: "DELETE ~/providers/Microsoft.Authorization/policyAssignments/a"},
	)
}

func TestFeatures(t *testing.T) {
	const one = "~~/providers/Microsoft.Features/providers/Microsoft.Network/features/AllowIt"
	startScopes(t).Run(
		exchange{Do: "GET " + one, Has: has{"name": "Microsoft.Network/AllowIt", "properties.state": "NotRegistered"}},
		exchange{Do: "POST " + one + "/register", Has: has{"properties.state": "Registered"}},
		exchange{Do: "GET ~~/providers/Microsoft.Features/features", Has: has{"value.#": 1}},
		exchange{Do: "GET ~~/providers/Microsoft.Features/providers/Microsoft.Compute/features", Has: has{"value.#": 0}},
		exchange{Do: "POST " + one + "/unregister", Has: has{"properties.state": "Unregistering"}},
		exchange{Do: "GET " + one, Has: has{"properties.state": "Unregistered"}},
		exchange{Do: "PUT ~~/providers/Microsoft.Features/featureProviders/Microsoft.Network/subscriptionFeatureRegistrations/It", Body: `{}`,
			Has: has{"type": "microsoft.features/featureproviders/subscriptionfeatureregistrations", "properties.state": "Registered",
				"properties.approvalType": "AutoApproval", "properties.shouldFeatureDisplayInPortal": false}},
		exchange{Do: "GET ~~/providers/Microsoft.Features/providers/None.Such/features/x", Status: 404, Code: "InvalidResourceNamespace"},
	)
}

// A moved resource has its parts, and references lead to its new place.
func TestMoveOfResources(t *testing.T) {
	const moved = otherPath + "/providers/Microsoft.Network/virtualNetworks/v"
	body := `{"resources":["` + behaviourtest.Group + `/providers/Microsoft.Network/virtualNetworks/v"],"targetResourceGroup":"` +
		behaviourtest.Subscription + `/resourceGroups/other"}`
	startScopes(t).Run(
		exchange{Do: "POST ~/moveResources", Body: `{"resources":["/x"],"targetResourceGroup":"` + behaviourtest.Subscription +
			`/resourceGroups/none"}`, Status: 400, Code: "InvalidTargetResourceGroup"},
		exchange{Do: "POST ~/validateMoveResources", Body: body, Status: 202},
		exchange{Do: "POST ~/moveResources", Body: body, Status: 202, Header: map[string]string{"Location": "*"}},
		exchange{Do: "GET " + vnetPath, Status: 404, Code: "ResourceNotFound"},
		exchange{Do: "GET " + moved, Has: has{"tags.a": "1", "properties.subnets.0.properties.ipConfigurations.#": 1}},
		exchange{Do: "GET " + nicPath, Has: has{"properties.ipConfigurations.0.properties.subnet.id": behaviourtest.Subscription +
			"/resourceGroups/other/providers/Microsoft.Network/virtualNetworks/v/subnets/s"}},
		exchange{Do: "POST ~/moveResources", Body: body, Status: 404, Code: "ResourceNotFound"},
	)
}
