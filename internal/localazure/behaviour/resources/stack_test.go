package resources_test

import (
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/authorization"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/documents"
	"kaz/internal/localazure/behaviour/identity"
	"kaz/internal/localazure/behaviour/network"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/core"
)

const stacksPath = "~/providers/Microsoft.Resources/deploymentStacks"

func startStacks(t *testing.T) *behaviourtest.Azure {
	return behaviourtest.Start(t, resources.Provider(), identity.Provider(), network.Provider(), authorization.Provider(),
		documents.Provider())
}

// stackBody is the body of a stack: an action for unmanaged resources, a mode of deny settings, and the resources of the template.
func stackBody(action, deny string, in ...string) string {
	return `{"location":"eastus","properties":{"actionOnUnmanage":{"resources":"` + action + `","resourceGroups":"` + action + `"},
		"denySettings":{"mode":"` + deny + `"},"template":{` + header + `"resources":[` + strings.Join(in, ",") + `]}}}`
}

// stack puts a stack, waits for its end, which is Succeeded or the code of an error, and returns it.
func stack(a *behaviourtest.Azure, path, body, end string) behaviour.Object {
	a.Helper()
	code, header, reply := a.Send("PUT", path, body)
	if code != 201 && code != 200 {
		a.Fatalf("stack: %d %v", code, reply)
	}
	poll := exchange{Do: "GET " + header.Get("Azure-AsyncOperation"), Has: has{"status": "succeeded"}}
	if end != "Succeeded" {
		poll.Has["status"], poll.Code = "failed", end
	}
	a.Run(poll)
	return a.Run(exchange{Do: "GET " + path})
}

func wants(a *behaviourtest.Azure, doc behaviour.Object, want has) {
	a.Helper()
	for path, value := range want {
		if got := behaviourtest.At(doc, path); !behaviour.Equal(got, value) {
			a.Errorf("%s is %v, want %v", path, got, value)
		}
	}
}

// The reply to the first PUT has the lists of what the stack manages, and its parameters with their types as the template writes them. A
// stack without resources is deleted in the reply.
func TestTheRepliesOfAStack(t *testing.T) {
	a := startStacks(t)
	one := stacksPath + "/one"
	a.Run(exchange{Do: "GET " + one, Status: 404, Code: "DeploymentStackResourceNotFound"})
	body := strings.Replace(stackBody("detach", "none"), `"template":{`,
		`"parameters":{"Given":{"value":"x"}},"template":{"parameters":{"Given":{"type":"string"},"left":{"type":"int","defaultValue":1}},`, 1)
	a.Run(exchange{Do: "PUT " + one, Body: body, Status: 201, Has: has{
		"properties.provisioningState": "initializing", "properties.parameters": has{"Given": has{"type": "string", "value": "x"}},
		"properties.resources.#": 0, "properties.detachedResources.#": 0, "properties.deletedResources.#": 0,
		"properties.failedResources.#": 0, "systemData.createdByType": "User",
	}})
	a.Run(exchange{Do: "GET " + one}, exchange{Do: "DELETE " + one + "?unmanageAction.Resources=detach"}, exchange{Do: "GET " + one, Status: 404,
		Code: "DeploymentStackResourceNotFound"})
}

// After a failed deployment a stack manages its earlier and its new resources, and says which resource failed.
func TestAStackThatFails(t *testing.T) {
	a := startStacks(t)
	one := stacksPath + "/one"
	stack(a, one, stackBody("delete", "none", identityIn("before", "")), "Succeeded")
	bad := `{"type":"Microsoft.Network/virtualNetworks","apiVersion":"2024-05-01","location":"eastus","name":"bad","properties":{
		"addressSpace":{"addressPrefixes":["10.0.0.0/40"]}}}`
	wants(a, stack(a, one, stackBody("delete", "none", identityIn("made", ""), bad), "DeploymentStackDeploymentFailed"), has{
		"properties.provisioningState": "failed", "properties.error.code": "DeploymentStackDeploymentFailed", "properties.resources.#": 2,
		"properties.failedResources.#": 1, "properties.error.details.0.code": "DeploymentFailed",
	})
	a.Run(exchange{Do: "GET " + identities + "/before"}, exchange{Do: "GET " + identities + "/made"})
	wants(a, stack(a, one, stackBody("delete", "none", identityIn("made", "")), "Succeeded"), has{
		"properties.provisioningState": "succeeded", "properties.error": nil, "properties.resources.#": 1, "properties.deletedResources.#": 1,
	})
	a.Run(exchange{Do: "GET " + identities + "/before", Status: 404, Code: "ResourceNotFound"})
}

// What is in use cannot be deleted: the stack fails, and manages it further.
func TestAStackThatCannotDelete(t *testing.T) {
	a := startStacks(t)
	one := stacksPath + "/one"
	vnet := `{"type":"Microsoft.Network/virtualNetworks","apiVersion":"2024-05-01","location":"eastus","name":"v","properties":{
		"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"s","properties":{"addressPrefix":"10.0.0.0/24"}}]}}`
	stack(a, one, stackBody("delete", "none", vnet, identityIn("kept", "")), "Succeeded")
	const nic = "~/providers/Microsoft.Network/networkInterfaces/nic"
	a.Run(exchange{Do: "PUT " + nic, Status: 201, Body: `{"location":"eastus","properties":{"ipConfigurations":[{"name":"c","properties":{
		"subnet":{"id":"` + behaviourtest.Group + `/providers/Microsoft.Network/virtualNetworks/v/subnets/s"}}}]}}`})
	wants(a, stack(a, one, stackBody("delete", "none", identityIn("kept", "")), "DeploymentStackDeleteResourcesFailed"), has{
		"properties.error.code": "DeploymentStackDeleteResourcesFailed", "properties.failedResources.#": 1, "properties.resources.#": 2,
	})
	code, header, _ := a.Send("DELETE", one+"?unmanageAction.Resources=delete", "")
	if code != 202 {
		a.Fatalf("delete: %d", code)
	}
	a.Run(exchange{Do: "GET " + header.Get("Azure-AsyncOperation"), Has: has{"status": "failed"},
		Code: "DeploymentStackDeleteResourcesFailed"})
	wants(a, a.Run(exchange{Do: "GET " + one}), has{"properties.resources.#": 1, "properties.deletedResources.#": 1})
	a.Run(exchange{Do: "DELETE " + one, Status: 202})
	a.Run(exchange{Do: "GET ~/providers/Microsoft.Network/virtualNetworks/v"})
}

// A stack of a subscription has groups, which it deletes if it is told so.
func TestAStackOfASubscription(t *testing.T) {
	a := startStacks(t)
	one := "~~/providers/Microsoft.Resources/deploymentStacks/one"
	group := `{"type":"Microsoft.Resources/resourceGroups","apiVersion":"2022-09-01","location":"eastus","name":"made"}`
	wants(a, stack(a, one, stackBody("detach", "none", group), "Succeeded"), has{"properties.resources.#": 1,
		"properties.deploymentScope": behaviourtest.Subscription})
	wants(a, stack(a, one, stackBody("delete", "none"), "Succeeded"), has{"properties.resources.#": 0, "properties.deletedResources.#": 1})
	a.Run(exchange{Do: "GET ~~/resourceGroups/made", Status: 404, Code: "ResourceGroupNotFound"})
	inGroup := strings.Replace(stackBody("delete", "none", identityIn("there", "")), `"properties":{`,
		`"properties":{"deploymentScope":"`+behaviourtest.Group+`",`, 1)
	stack(a, one, inGroup, "Succeeded")
	a.Run(exchange{Do: "GET " + identities + "/there"})
}

// What a stack denies counts for owners, but for principals and actions that it excludes, and ends when the stack denies it no longer.
func TestAStackDenies(t *testing.T) {
	const operator = "99999999-0000-0000-0000-000000000001"
	a := behaviourtest.StartWith(t, core.Options{
		Providers: []behaviour.Provider{resources.Provider(), identity.Provider(), authorization.Provider(), documents.Provider()},
		Authenticator: people{
			"owner": {ObjectID: "owner", Owner: true}, "operator": {ObjectID: operator, Owner: true},
			"member": {ObjectID: "member", Groups: []string{operator}, Owner: true},
		},
	})
	a.Token = "owner"
	one, kept := stacksPath+"/one", identities+"/kept"
	denies := func(more string, in ...string) string {
		return strings.Replace(stackBody("delete", "denyWriteAndDelete", in...), `"mode":`, more+`"mode":`, 1)
	}
	excluded := `"excludedPrincipals":["` + operator + `"],`
	stack(a, one, denies(excluded, identityIn("kept", "")), "Succeeded")
	const write = `{"location":"eastus"}`
	a.Run(
		exchange{Do: "DELETE " + kept, Status: 403, Code: "DenyAssignmentAuthorizationFailed"},
		exchange{Do: "PUT " + kept, Body: write, Status: 403, Code: "DenyAssignmentAuthorizationFailed"},
		exchange{Do: "GET " + kept},
		exchange{Do: "GET " + kept + "/providers/Microsoft.Authorization/denyAssignments", Has: has{"value.#": 1,
			"value.0.properties.isSystemProtected": true}},
		exchange{Do: "PUT " + deployment, Body: of(`{"resources":[`+identityIn("kept", "")+`]}`, ""), Status: 403,
			Code: "InvalidTemplateDeployment"},
	)
	for _, token := range []string{"operator", "member"} {
		a.Token = token
		a.Run(exchange{Do: "PUT " + kept, Body: write})
	}
	a.Token = "owner"
	mayWrite := `"excludedActions":["Microsoft.ManagedIdentity/*/write"],`
	stack(a, one, denies(mayWrite, identityIn("kept", ""), identityIn("more", "")), "Succeeded")
	a.Run(
		exchange{Do: "PUT " + kept, Body: write},
		exchange{Do: "DELETE " + kept, Status: 403, Code: "DenyAssignmentAuthorizationFailed"},
	)
	stack(a, one, stackBody("delete", "none", identityIn("kept", "")), "Succeeded")
	a.Run(exchange{Do: "DELETE " + kept, Status: 200})
}

func TestRefusedStacks(t *testing.T) {
	a := startStacks(t)
	good := stackBody("delete", "none", identityIn("x", ""))
	for _, refused := range []struct{ path, body, code string }{
		{stacksPath + "/a%20b", good, "InvalidDeploymentStackName"},
		{stacksPath + "/s", strings.Replace(good, `"resources":"delete"`, `"resources":"forget"`, 1), "InvalidRequestContent"},
		{stacksPath + "/s", strings.Replace(good, `"mode":"none"`, `"mode":"all"`, 1), "InvalidRequestContent"},
		{stacksPath + "/s", strings.Replace(good, `"mode":"none"`, `"mode":"none","excludedPrincipals":[1,2,3,4,5,6]`, 1),
			"InvalidRequestContent"},
		{stacksPath + "/s", strings.Replace(good, `"denySettings":`, `"deploymentScope":"/providers/x","denySettings":`, 1),
			"InvalidDeploymentScope"},
		{stacksPath + "/s", `{"properties":{}}`, "InvalidRequestContent"},
		{stacksPath + "/s", `{"properties":{"actionOnUnmanage":{"resources":"delete"},"denySettings":{"mode":"none"}}}`, "InvalidRequestContent"},
		{stacksPath + "/s", stackBody("delete", "none", `{"type":"x"}`), "InvalidTemplate"},
		{"~~/providers/Microsoft.Resources/deploymentStacks/s", strings.Replace(good, `"location":"eastus",`, "", 1), "LocationRequired"},
	} {
		a.Run(exchange{Do: "PUT " + refused.path, Body: refused.body, Status: 400, Code: refused.code})
	}
	a.Run(exchange{Do: "GET " + stacksPath, Has: has{"value.#": 0}})
	stack(a, stacksPath+"/s", good, "Succeeded")
	a.Run(exchange{Do: "DELETE " + stacksPath + "/s?unmanageAction.Resources=forget", Status: 400, Code: "InvalidRequestContent"})
}
