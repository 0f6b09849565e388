package resources_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/authorization"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/identity"
	"kaz/internal/localazure/behaviour/registry"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/core"
)

type (
	exchange = behaviourtest.Exchange
	has      = map[string]any
)

const (
	deployment = "~/providers/Microsoft.Resources/deployments/d"
	identities = "~/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
)

func start(t *testing.T) *behaviourtest.Azure {
	return behaviourtest.Start(t, resources.Provider(), identity.Provider(), storage.Provider(), registry.Provider(),
		authorization.Provider())
}

// header is what every template begins with.
const header = `"$schema":"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#","contentVersion":"1.0.0.0",`

// whole is a template with its header.
func whole(template string) string {
	if strings.Contains(template[:min(len(template), 80)], `"$schema"`) {
		return template
	}
	return strings.Replace(template, "{", "{"+header, 1)
}

// of is the body of a deployment.
func of(template, parameters string) string {
	if parameters == "" {
		parameters = "{}"
	}
	return `{"properties":{"mode":"Incremental","template":` + whole(template) + `,"parameters":` + parameters + `}}`
}

// ended is the deployment after its operation, which must end with the status.
func ended(a *behaviourtest.Azure, body, status string) behaviour.Object {
	a.Helper()
	code, header, reply := a.Send("PUT", deployment, body)
	if code != 201 && code != 200 {
		a.Fatalf("deployment: %d %v", code, reply)
	}
	poll := exchange{Do: "GET " + header.Get("Azure-AsyncOperation"), Has: has{"status": status}}
	if status == "Failed" {
		poll.Code = "DeploymentFailed"
	}
	a.Run(poll)
	return a.Run(exchange{Do: "GET " + deployment})
}

const twoIdentities = `{
	"parameters": {
		"prefix": {"type": "string", "allowedValues": ["a", "b"]},
		"place": {"type": "string", "defaultValue": "[resourceGroup().location]"},
		"secret": {"type": "securestring", "defaultValue": "x"},
		"tags": {"type": "object", "defaultValue": {"made": "by template"}}
	},
	"variables": {"name": "[concat(parameters('prefix'), '-', toLower('NODE'))]", "names": ["[variables('name')]"],
		"type": "Microsoft.ManagedIdentity/userAssignedIdentities"},
	"resources": [
		{
			"type": "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials", "apiVersion": "2024-11-30",
				"name": "[concat(variables('names')[0], '/cred')]",
			"dependsOn": ["[resourceId('Microsoft.ManagedIdentity/userAssignedIdentities', variables('name'))]", "never"],
			"properties": {"issuer": "https://oidc",
				"subject": "[reference(resourceId('Microsoft.ManagedIdentity/userAssignedIdentities', variables('name'))).clientId]",
				"audiences": ["it''s"]}
		},
		{"type": "Microsoft.ManagedIdentity/userAssignedIdentities", "apiVersion": "2024-11-30", "name": "[variables('name')]",
			"location": "[parameters('place')]", "tags": "[parameters('tags')]"},
		{"type": "Microsoft.ManagedIdentity/userAssignedIdentities", "apiVersion": "2024-11-30", "name": "never", "location": "eastus",
			"condition": false}
	],
	"outputs": {
		"client": {"type": "string", "value": "[reference(variables('name')).clientId]"},
		"newest": {"type": "string", "value": "[providers('Microsoft.Compute', 'disks').apiVersions[0]]"},
		"name": {"type": "string",
			"value": "[reference(resourceId(variables('type'), variables('name')), '2024-11-30', 'Full').id]"},
		"literal": {"type": "string", "value": "[[not an expression]"}
	}
}`

func TestADeploymentMakesItsResourcesInOrder(t *testing.T) {
	a := start(t)
	done := ended(a, of(twoIdentities, `{"prefix":{"value":"a"}}`), "Succeeded")
	made := a.Run(exchange{Do: "GET " + identities + "/a-node", Has: has{"tags.made": "by template", "location": "eastus"}})
	client := behaviour.Text(made, "properties.clientId")
	for path, want := range (has{
		"properties.provisioningState": "Succeeded", "properties.outputs.client.value": client, "properties.outputs.client.type": "String",
		"properties.outputs.newest.value": "2025-01-02",
		"properties.outputs.name.value": strings.Replace(behaviourtest.Group, "resourceGroups", "resourcegroups",
			1) + strings.TrimPrefix(identities, "~") + "/a-node",
		"properties.outputs.literal.value": "[not an expression]", "properties.parameters.secret.type": "SecureString",
		"properties.parameters.secret.value": nil,
		"properties.parameters.place.value":  "eastus", "properties.outputResources.#": 2, "properties.dependencies.#": 1,
		"properties.providers.0.resourceTypes.#": 2, "$template": nil,
	}) {
		if got := behaviourtest.At(done, path); !behaviour.Equal(got, want) {
			t.Errorf("%s of the deployment is %v, want %v", path, got, want)
		}
	}
	a.Run(
		exchange{Do: "GET " + identities, Has: has{"value.#": 1}},
		exchange{Do: "GET " + identities + "/a-node/federatedIdentityCredentials/cred", Has: has{"properties.subject": client}},
		exchange{Do: "GET " + deployment + "/operations",
			Has: has{"value.#": 3, "value.0.properties.provisioningState": "Succeeded",
				"value.2.properties.provisioningOperation": "EvaluateDeploymentOutput", "value.2.properties.targetResource": nil,
				"value.1.properties.targetResource.resourceName": "a-node/cred", "value.2.properties.serviceRequestId": nil}},
		exchange{Do: "POST " + deployment + "/exportTemplate", Has: has{"template.variables.names.#": 1}},
		exchange{Do: "DELETE " + deployment, Status: 202, Header: map[string]string{"Location": "*"}},
		exchange{Do: "GET " + deployment, Status: 404, Code: "DeploymentNotFound"},
		exchange{Do: "GET " + deployment + "/operations", Status: 404, Code: "ParentResourceNotFound"},
		exchange{Do: "GET " + identities + "/a-node"},
	)
}

func TestATemplateAsksForKeys(t *testing.T) {
	a := start(t)
	done := ended(a, of(`{"resources":[
		{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion": "2024-01-01","name":"n","location":"eastus",
			"tags":{"key":"[listKeys('account', '2024-01-01').keys[0].keyName]"}},
		{"type":"Microsoft.Storage/storageAccounts","apiVersion": "2024-01-01","name":"account","location":"eastus","sku":{"name":"Standard_LRS"}}],
		"outputs":{"name":{"type":"string","value":"[uniqueString('hello', 'world')]"}}}`, ""), "Succeeded")
	if got := behaviourtest.At(done, "properties.outputs.name.value"); got != "a7wkljktk6wne" {
		t.Errorf("the output is %v", got)
	}
	a.Run(exchange{Do: "GET " + identities + "/n", Has: has{"tags.key": "key1"}})
	failed := ended(a, of(`{"resources":[{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion": "2024-01-01","name":"n",
		"location":"eastus","tags":{"key":"[listKeys(resourceId('Microsoft.Storage/storageAccounts', 'nothing'), '1').x]"}}]}`, ""),
		"Failed")
	if message := behaviourtest.At(failed, "properties.error.details.0.message"); !strings.Contains(fmt.Sprint(message),
		"ResourceNotFound") {
		t.Errorf("the error is %v", message)
	}
}

// doubling is a template with variables of ever longer strings.
func doubling() string {
	var b strings.Builder
	b.WriteString(`{"variables":{"v0":"xxxxxxxxxxxxxxxx"`)
	for i := range 30 {
		fmt.Fprintf(&b, `,"v%d":"[concat(variables('v%d'),variables('v%d'))]"`, i+1, i, i)
	}
	b.WriteString(`},"resources":[{"type":"A.B/c","name":"[variables('v30')]","apiVersion": "2024-01-01"}]}`)
	return b.String()
}

// TestRefusedBeforeAnythingIsMade has templates that Azure refuses at once, although their first resource could be made.
func TestRefusedBeforeAnythingIsMade(t *testing.T) {
	const identity = `{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion":"2024-11-30","name":"n","location":"eastus"}`
	with := func(resource string) string { return `{"resources":[` + identity + `,` + resource + `]}` }
	second := func(fields string) string {
		return with(strings.Replace(identity, `"name":"n"`, `"name":"m"`+fields, 1))
	}
	for name, c := range map[string]struct{ template, code, says string }{
		"an unknown parameter":          {second(`,"tags":{"x":"[parameters('q')]"}`), "InvalidTemplate", "parameter 'q' is not found"},
		"in a branch that is not taken": {second(`,"tags":{"x":"[if(true(), 'a', variables('q'))]"}`), "InvalidTemplate", "variable 'q'"},
		"an unknown function in an output": {`{"resources":[` + identity + `],"outputs":{"o":{"type":"string","value":"[soon()]"}}}`,
			"InvalidTemplate", "'soon' is not supported"},
		"in a variable that is not used": {`{"variables":{"v":"[variables('w')]"},"resources":[` + identity + `]}`, "InvalidTemplate",
			"variable 'w'"},
		"an unknown namespace": {with(`{"type":"Micro.Soft/x","apiVersion":"2024-11-30","name":"x"}`), "InvalidResourceNamespace", "'Micro.Soft'"},
		"an unknown type": {with(`{"type":"Microsoft.ManagedIdentity/x","apiVersion":"2024-11-30","name":"x"}`), "InvalidResourceType",
			"'x' could not be found in the namespace 'Microsoft.ManagedIdentity'"},
		"the newest api-version": {strings.Replace(second(""), `"2024-11-30","name":"m"`, `"latest","name":"m"`, 1),
			"NoRegisteredProviderFound", "API version 'latest'"},
		"a nested deployment without a mode": {with(`{"type":"Microsoft.Resources/deployments","apiVersion":"2024-11-01","name":"x",` +
			`"properties":{"template":{` + header + `"resources":[]}}}`), "InvalidTemplate", "no mode"},
		"within a nested deployment": {with(`{"type":"Microsoft.Resources/deployments","apiVersion":"2024-11-01","name":"x",` +
			`"properties":{"mode":"Incremental","template":{` + header + `"resources":[{"type":"Micro.Soft/x","apiVersion":"2024-11-30","name":"x"}]}}}`),
			"InvalidResourceNamespace", "'Micro.Soft'"},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t)
			for _, do := range []string{"PUT " + deployment, "POST " + deployment + "/validate"} {
				code, _, got := a.Send(strings.Fields(do)[0], strings.Fields(do)[1], of(c.template, ""))
				message := behaviour.Text(got, "error.message")
				if code/100 != 4 || behaviour.Text(got, "error.code") != c.code || !strings.Contains(message, c.says) {
					t.Errorf("%s: %d %v, want %s that says %q", do, code, got, c.code, c.says)
				}
			}
			a.Run(exchange{Do: "GET " + identities, Has: has{"value.#": 0}})
		})
	}
}

// TestRefusedOutputs checks that a deployment fails with the code of outputs that cannot be computed.
func TestRefusedOutputs(t *testing.T) {
	for name, value := range map[string]string{"a text for a number": `"x"`, "an absent resource": `"[reference('/subscriptions/s').x]"`} {
		t.Run(name, func(t *testing.T) {
			a := start(t)
			ended(a, of(`{"resources":[],"outputs":{"o":{"type":"int","value":`+value+`}}}`, ""), "Failed")
			a.Run(exchange{Do: "GET " + deployment, Has: has{"properties.error.details.0.code": "DeploymentOutputEvaluationFailed"}})
		})
	}
}

func TestRefusedTemplates(t *testing.T) {
	resource := func(fields string) string {
		return `{"resources":[{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion":"2024-11-30","name":"n",
			"location":"eastus"` + fields + `}]}`
	}
	cases := map[string]struct{ template, parameters, says string }{
		"a function that is not supported": {resource(`,"tags":{"a":"[soon('x')]"}`), "", "'soon' is not supported"},
		"one that is not, deep inside":     {resource(`,"tags":{"a":"[concat('x', newGuid())]"}`), "", "default value of a parameter"},
		"a copy loop without a name":       {resource(`,"copy":{"count":2}`), "", "'copy'"},
		"a broken expression":              {resource(`,"tags":{"a":"[concat('x']"}`), "", ""},
		"a string that is not closed":      {resource(`,"tags":{"a":"[concat('x)]"}`), "", "not closed"},
		"no api-version":                   {`{"resources":[{"type":"A.B/c","name":"n"}]}`, "", "api-version is missing"},
		"names that do not fit the type": {`{"resources":[{"type":"A.B/c/d","name":"n","apiVersion": "2024-01-01"}]}`, "",
			"needs 2 names, 1 are given"},
		"a nested deployment that calls a function of none": {`{"resources":[{"type":"Microsoft.Resources/deployments","name":"n",
			"apiVersion": "2024-01-01","properties":{"mode":"Incremental","template":{` + header + `"resources":[{"type":"A.B/c","apiVersion": "2024-01-01",
			"name":"[soon()]"}]}}}]}`, "", "'soon' is not supported"},
		"a circle": {`{"resources":[{"type":"A.B/c","name":"x","apiVersion": "2024-01-01","dependsOn":["A.B/c/y"]},{"type":"A.B/c","name":"y",
			"apiVersion": "2024-01-01","dependsOn":["A.B/c/x"]}]}`, "",
			"Circular dependency"},
		"a dependency on nothing": {`{"resources":[{"type":"A.B/c","name":"x","apiVersion": "2024-01-01","dependsOn":["A.B/c/y"]}]}`, "",
			"'A.B/c/y' is not defined in the template"},
		"a resource twice": {`{"resources":[{"type":"A.B/c","name":"x","apiVersion": "2024-01-01"},{"type":"A.B/c","name":"X",
			"apiVersion": "2024-01-01"}]}`, "", "multiple times"},
		"a missing parameter":         {`{"parameters":{"p":{"type":"string"}},"resources":[]}`, "", "'p'"},
		"an undeclared parameter":     {`{"parameters":{},"resources":[]}`, `{"q":{"value":1}}`, "'q'"},
		"a parameter of another type": {`{"parameters":{"p":{"type":"int"}},"resources":[]}`, `{"p":{"value":"1"}}`, "Expected 'Int'"},
		"a value that is not allowed": {`{"parameters":{"p":{"type":"int","allowedValues":[1,2]}},"resources":[]}`,
			`{"p":{"value":3}}`, "'1,2'"},
		"an unknown type of parameters": {`{"parameters":{"p":{"type":"float"}},"resources":[]}`, `{"p":{"value":3}}`, "float"},
		"a variable of itself": {`{"variables":{"v":"[variables('v')]"},"resources":[{"type":"A.B/c","name":"[variables('v')]",
			"apiVersion": "2024-01-01"}]}`, "", "refers to itself"},
		"variables that double": {doubling(), "", "computes too much"},
		"a reference as a name": {`{"resources":[{"type":"A.B/c","name":"[reference('A.B/c/x').name]","apiVersion": "2024-01-01"}]}`, "",
			"not expected at this location"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := start(t)
			for _, do := range []string{"PUT " + deployment, "POST " + deployment + "/validate"} {
				got := a.Run(exchange{Do: do, Body: of(c.template, c.parameters), Status: 400, Code: "InvalidTemplate"})
				if message := behaviour.Text(got, "error.message"); !strings.Contains(message, c.says) {
					t.Errorf("%s: %s\nwant it to say %q", do, message, c.says)
				}
			}
			a.Run(exchange{Do: "GET " + deployment, Status: 404, Code: "DeploymentNotFound"})
		})
	}
}

func TestAFailedDeploymentKeepsWhatItMade(t *testing.T) {
	a := start(t)
	failed := ended(a, of(`{"resources":[
		{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion": "2024-01-01","name":"first","location":"eastus"},
		{"type":"Microsoft.Storage/storageAccounts","apiVersion": "2024-01-01","name":"notgood1","location":"eastus","sku":{"name":"None_LRS"}},
		{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion": "2024-01-01","name":"dependent","location":"eastus",
			"dependsOn":["notgood1"]},
		{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion": "2024-01-01","name":"other","location":"eastus"}
	]}`, ""), "Failed")
	for path, want := range (has{
		"properties.provisioningState": "Failed", "properties.error.code": "DeploymentFailed",
		"properties.error.details.0.code": "InvalidRequestPropertyValue",
	}) {
		if got := behaviourtest.At(failed, path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	a.Run(
		exchange{Do: "GET " + identities + "/first"},
		exchange{Do: "GET " + identities + "/dependent", Status: 404, Code: "ResourceNotFound"},
		exchange{Do: "GET " + identities + "/other"},
		exchange{Do: "GET ~/providers/Microsoft.Storage/storageAccounts", Has: has{"value.#": 0}},
		exchange{Do: "GET " + deployment + "/operations", Has: has{"value.#": 3, "value.1.properties.provisioningState": "Failed"}},
	)
	if got := ended(a, of(`{"resources":[]}`, ""), "Succeeded"); behaviourtest.At(got, "properties.error") != nil {
		t.Errorf("the deployment that was repeated has still an error: %v", got)
	}
}

func TestDeploymentsOfAnotherKind(t *testing.T) {
	a := start(t)
	a.Run(
		exchange{Do: "PUT " + deployment, Body: `{"properties":{"mode":"Sometimes","template":{}}}`, Status: 400,
			Code: "InvalidRequestContent"},
		exchange{Do: "PUT " + deployment, Body: `{"properties":{"mode":"Incremental","templateLink":{"uri":"file:///x"}}}`, Status: 400,
			Code: "InvalidContentLink"},
		exchange{Do: "PUT " + deployment, Body: `{"properties":{"mode":"Incremental"}}`, Status: 400, Code: "InvalidRequestContent"},
		exchange{Do: "PUT ~~/providers/Microsoft.Resources/deployments/sub", Status: 400, Code: "InvalidDeploymentMode",
			Body: `{"location":"eastus","properties":{"mode":"Complete","template":{` + header + `"resources":[]}}}`},
		exchange{Do: "POST " + deployment + "/validate", Body: of(`{"resources":[]}`, ""),
			Has: has{"properties.provisioningState": "Succeeded", "properties.validatedResources.#": 0}},
		exchange{Do: "PUT ~~/providers/Microsoft.Resources/deployments/sub", Body: of(`{"resources":[]}`, ""), Status: 400,
			Code: "LocationRequired"},
	)
	body := strings.Replace(of(`{"resources":[{"type":"Microsoft.Resources/resourceGroups","apiVersion": "2024-01-01",
			"name":"[concat('g', subscription().subscriptionId)]","location":"westus"}]}`, ""), "{", `{"location":"eastus",`, 1)
	a.Run(
		exchange{Do: "PUT ~~/providers/Microsoft.Resources/deployments/sub", Body: body, Status: 201, Has: has{"location": "eastus"}},
		exchange{Do: "GET ~~/providers/Microsoft.Resources/deployments/sub", Has: has{"properties.provisioningState": "Succeeded"}},
		exchange{Do: "GET ~~/resourceGroups?$filter=location eq 'westus'", Has: has{"value.#": 1}},
	)
}

func TestADeploymentThatRunsIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := behaviourtest.StartWith(t,
			core.Options{Providers: []behaviour.Provider{resources.Provider(), identity.Provider()}, Latency: 1})
		body := of(`{"resources":[{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion": "2024-01-01","name":"n",
			"location":"eastus"}]}`, "")
		a.Run(
			exchange{Do: "PUT " + deployment, Body: body, Status: 201},
			exchange{Do: "PUT " + deployment, Body: body, Status: 409, Code: "DeploymentActive"},
			exchange{Do: "POST " + deployment + "/cancel", Status: 204},
			exchange{Do: "GET " + deployment, Has: has{"properties.provisioningState": "Canceled"}},
			exchange{Do: "POST " + deployment + "/cancel", Status: 409, Code: "DeploymentCannotBeCancelled"},
			exchange{Do: "GET " + identities, Has: has{"value.#": 0}},
			exchange{Do: "PUT " + deployment, Body: body},
		)
		<-time.After(time.Hour)
		a.Run(
			exchange{Do: "GET " + deployment, Has: has{"properties.provisioningState": "Succeeded"}},
			exchange{Do: "GET " + identities, Has: has{"value.#": 1}},
		)
	})
}

// people are the principals of a test by their tokens.
type people map[string]*behaviour.Principal

func (p people) Authenticate(token string) (*behaviour.Principal, error) { return p[token], nil }

func TestADeploymentNeedsTheRightsToWhatItDeploys(t *testing.T) {
	const deployer, contributor = "99999999-0000-0000-0000-000000000001", "99999999-0000-0000-0000-000000000002"
	a := behaviourtest.StartWith(t, core.Options{
		Providers: []behaviour.Provider{resources.Provider(), identity.Provider(), authorization.Provider()}, AccessControl: true,
		Authenticator: people{"owner": {Owner: true}, "deployer": {ObjectID: deployer}, "contributor": {ObjectID: contributor}},
	})
	const roles = behaviourtest.Subscription + "/providers/Microsoft.Authorization/roleDefinitions/"
	grant := func(name, role, principal string) {
		a.Run(exchange{Do: "PUT ~/providers/Microsoft.Authorization/roleAssignments/" + name, Status: 201,
			Body: `{"properties":{"roleDefinitionId":"` + roles + role + `","principalId":"` + principal + `"}}`})
	}
	const deploys = "11111111-2222-3333-4444-555555555555"
	a.Run(exchange{Do: "PUT " + roles + deploys, Status: 201,
		Body: `{"properties":{"roleName":"deploys","assignableScopes":["/"],
			"permissions":[{"actions":["Microsoft.Resources/deployments/*"]}]}}`})
	grant("aaaaaaaa-0000-0000-0000-000000000001", deploys, deployer)
	grant("aaaaaaaa-0000-0000-0000-000000000002", "b24988ac-6180-42a0-ab88-20f7382dd24c", contributor)
	body := of(`{"resources":[{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion": "2024-01-01","name":"n",
			"location":"eastus"}]}`, "")
	a.Token = "deployer"
	a.Run(
		exchange{Do: "PUT " + deployment, Body: body, Status: 403, Code: "InvalidTemplateDeployment"},
		exchange{Do: "PUT " + deployment, Body: of(`{"resources":[]}`, ""), Status: 201},
	)
	a.Token = "contributor"
	a.Run(
		exchange{Do: "PUT " + deployment + "2", Body: body, Status: 201},
		exchange{Do: "GET " + identities + "/n"},
	)
}

// FuzzTemplate: whatever is in a template, the answer is a success or a refusal.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		twoIdentities, `{"resources":[{"name":"[concat('a''b', 1, -2)]","type":"A.B/c","apiVersion": "2024-01-01"}]}`,
		`{"resources":[{"name":"[a(b(c(','].x[1]","type":"A.B/c"}]}`,
		`{"resources":[1,{"name":{}}],"outputs":{"o":1},"parameters":{"p":3}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, template string) {
		a := behaviourtest.Start(t, resources.Provider(), identity.Provider())
		status, _, body := a.Send("PUT", deployment, of(template, ""))
		if status != 201 && (status < 400 || status >= 500) {
			t.Errorf("%s: %d %v", template, status, body)
		}
		if status == 201 {
			a.Run(exchange{Do: "GET " + deployment})
		}
		if status == 500 {
			t.Error(fmt.Sprint(body))
		}
	})
}
