package resources_test

import (
	"fmt"
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
)

// TestWhatIsNoTemplate sends templates that Azure cannot read as templates. Azure's texts are quoted in
// https://github.com/microsoft/azure-pipelines-tasks/issues/14051 and https://github.com/Azure/data-management-zone/issues/130.
func TestWhatIsNoTemplate(t *testing.T) {
	const inRequest = "The request content was invalid and could not be deserialized: '"
	identity := func(more string) string { return `{"resources":[` + identityIn("n", more) + `]}` }
	for name, c := range map[string]struct{ template, code, says string }{
		"an unknown section": {`{"parameter":{},"resources":[]}`, "InvalidRequestContent",
			inRequest + "Could not find member 'parameter' on object of type 'Template'. Path 'properties.template.parameter', line 1, position 1.'."},
		"an unknown property of a resource": {identity(`,"apiVersion1":"x"`), "InvalidRequestContent",
			"'Could not find member 'apiVersion1' on object of type 'TemplateResource'. Path 'properties.template.resources[0].apiVersion1',"},
		"one of a resource in a resource": {identity(`,"resources":[{"type":"federatedIdentityCredentials","apiVersion":"2024-11-30","name":"c",
			"dependOn":[]}]`), "InvalidRequestContent", "Path 'properties.template.resources[0].resources[0].dependOn'"},
		"one of a resource with a symbolic name": {`{"languageVersion":"2.0","resources":{"a":` + identityIn("n", `,"x":1`) + `}}`,
			"InvalidRequestContent", "Path 'properties.template.resources.a.x'"},
		"one of a parameter": {`{"parameters":{"p":{"type":"string","default":"a"}},"resources":[]}`, "InvalidRequestContent",
			"'Could not find member 'default' on object of type 'TemplateInputParameter'. Path 'properties.template.parameters.p.default',"},
		"one of an output": {`{"resources":[],"outputs":{"o":{"type":"string","values":"a"}}}`, "InvalidRequestContent", "'values'"},
		"one in a nested template": {`{"resources":[` + nested("n", "", `{"resource":[],"resources":[]}`) + `]}`, "InvalidRequestContent",
			"'Could not find member 'resource' on object of type 'Template'."},
		"no resources": {`{}`, "InvalidRequestContent",
			"'Required property 'resources' not found in JSON. Path 'properties.template', line 1, position 1.'."},
		"no contentVersion": {`{"$schema":"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#","resources":[]}`,
			"InvalidRequestContent", "'Required property 'contentVersion' not found in JSON."},
		"a schema that is no URI": {`{"$schema":"2019-04-01","contentVersion":"1.0.0.0","resources":[]}`, "InvalidTemplate",
			`$schema value "2019-04-01" is not a valid URI`},
		"the schema of parameters": {`{"$schema":"https://schema.management.azure.com/schemas/2019-04-01/deploymentParameters.json#",
			"contentVersion":"1.0.0.0","resources":[]}`, "InvalidTemplate", "is not supported. Supported versions are"},
		"a schema of another version": {`{"$schema":"https://schema.management.azure.com/schemas/2020-04-01/deploymentTemplate.json#",
			"contentVersion":"1.0.0.0","resources":[]}`, "InvalidTemplate", "is not supported. Supported versions are"},
		"a tag that is an object": {identity(`,"tags":{"a":{"b":"c"}}`), "InvalidTemplate",
			"Deployment template parse failed: 'Error reading string. Unexpected token: StartObject. Path 'a'.'."},
		"a variable that asks for a resource": {`{"variables":{"v":{"w":"[listKeys('x','2024-01-01')]"}},"resources":[]}`, "InvalidTemplate",
			"'The template variable 'v' is not valid: The template function 'listKeys' is not expected at this location. Please see"},
		"a reference in a variable": {`{"variables":{"v":"[reference('x').y]"},"resources":[]}`, "InvalidTemplate",
			"The template function 'reference' is not expected at this location."},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t)
			for _, do := range []string{"PUT " + deployment, "POST " + deployment + "/validate"} {
				got := a.Run(exchange{Do: do, Body: of(c.template, ""), Status: 400, Code: c.code})
				if message := behaviour.Text(got, "error.message"); !strings.Contains(message, c.says) {
					t.Errorf("%s: %s\nwant it to say %q", do, message, c.says)
				}
			}
		})
	}
}

// A template may have the first schema of parameters.
func TestATemplateWithTheSchemaOfParameters(t *testing.T) {
	a := start(t)
	a.Run(exchange{Do: "POST " + deployment + "/validate", Body: of(`{"$schema":
		"https://schema.management.azure.com/schemas/2015-01-01/deploymentParameters.json#","contentVersion":"1.0.0.0","resources":[]}`, "")})
}

// TestTemplatesWithAllSections: what Bicep and the portal write into templates is taken.
func TestTemplatesWithAllSections(t *testing.T) {
	a := start(t)
	for _, schema := range []string{"http://schema.management.azure.com/schemas/2015-01-01/deploymentTemplate.json#",
		"https://schema.management.azure.com/schemas/2018-05-01/subscriptionDeploymentTemplate.json#",
		"https://schema.management.azure.com/schemas/2019-08-01/tenantDeploymentTemplate.json"} {
		ended(a, of(`{"$schema":"`+schema+`","contentVersion":"1","apiProfile":"","metadata":{"_generator":{"name":"bicep"}},"functions":[],
			"languageVersion":"2.0","definitions":{},"parameters":{},"variables":{},"resources":{"a":`+
			identityIn("n", `,"comments":"c","metadata":{},"extendedLocation":null,"DependsOn":[]`)+`},"outputs":{}}`, ""), "Succeeded")
	}
}

// TestValuesInsideOfParameters gives parameters with declared members values that break a declaration inside of them.
func TestValuesInsideOfParameters(t *testing.T) {
	const template = `{"languageVersion":"2.0",
		"definitions":{
			"port":{"type":"int","minValue":1,"maxValue":65535},
			"rule":{"type":"object","properties":{"name":{"type":"string","minLength":2},"port":{"$ref":"#/definitions/port"},
				"protocol":{"type":"string","nullable":true,"allowedValues":["Tcp","Udp"]}},"additionalProperties":false},
			"shape":{"type":"object","discriminator":{"propertyName":"kind","mapping":{
				"disk":{"$ref":"#/definitions/disk"}}}},
			"disk":{"type":"object","properties":{"kind":{"type":"string","allowedValues":["disk"]},"size":{"$ref":"#/definitions/rule/properties/port"}}}},
		"parameters":{
			"rules":{"type":"array","items":{"$ref":"#/definitions/rule"},"maxLength":2,"defaultValue":[]},
			"labels":{"type":"object","additionalProperties":{"type":"string","maxLength":3},"defaultValue":{}},
			"pair":{"type":"array","prefixItems":[{"type":"int"},{"type":"string"}],"items":false,"defaultValue":[1,"a"]},
			"shape":{"$ref":"#/definitions/shape","defaultValue":{"kind":"disk","size":1}}},
		"resources":{}}`
	for parameters, says := range map[string]string{
		`{"rules":{"value":[{"name":"ab","port":1,"protocol":"Tcp"},{"name":"cd","port":65535}]},"labels":{"value":{"a":"abc"}}}`: "",
		`{"rules":{"value":[{"name":"a","port":1}]}}`:                    "'rules[0].name' is not valid. The length '1'",
		`{"rules":{"value":[{"name":"ab","port":0}]}}`:                   "'rules[0].port' is not valid. The value '0'",
		`{"rules":{"value":[{"name":"ab","port":"1"}]}}`:                 "Expected a value of type 'Int', but received a value of type 'String'",
		`{"rules":{"value":[{"name":"ab"}]}}`:                            "'rules[0].port' is not valid.",
		`{"rules":{"value":[{"name":"ab","port":1,"protocol":"Icmp"}]}}`: "'Tcp,Udp'",
		`{"rules":{"value":[{"name":"ab","port":1,"x":1}]}}`:             "The property 'x' is not permitted",
		`{"rules":{"value":["a"]}}`:                                      "Expected a value of type 'Object'",
		`{"labels":{"value":{"a":"abcd"}}}`:                              "'labels.a' is not valid.",
		`{"labels":{"value":{"a":1}}}`:                                   "'labels.a' is not valid.",
		`{"pair":{"value":[1]}}`:                                         "'pair' is not valid. The length '1'",
		`{"pair":{"value":[1,"a",2]}}`:                                   "'pair' is not valid. The length '3'",
		`{"pair":{"value":["a","a"]}}`:                                   "'pair[0]' is not valid.",
		`{"shape":{"value":{"kind":"share","size":1}}}`:                  "'shape.kind' is not valid. The value 'share'",
		`{"shape":{"value":{"kind":"disk","size":0}}}`:                   "'shape.size' is not valid.",
	} {
		a := start(t)
		status, _, got := a.Send("POST", deployment+"/validate", of(template, parameters))
		text := fmt.Sprint(got)
		if want := map[bool]int{true: 200, false: 400}[says == ""]; status != want || !strings.Contains(text, says) {
			t.Errorf("%s: %d %.400s\nwant %d, and it to say %q", parameters, status, text, want, says)
		}
	}
	a := start(t)
	got := a.Run(exchange{Do: "PUT " + deployment, Status: 400, Code: "InvalidTemplate", Body: of(`{"parameters":{"p":{"type":"array",
		"items":{"type":"string"},"defaultValue":[]}},"resources":[]}`, "")})
	if says := "'Template language version must be specified in order to use feature 'AggregateTypeValidation''."; !strings.Contains(
		behaviour.Text(got, "error.message"), says) {
		t.Errorf("%v\nwant it to say %s", got, says)
	}
}

// TestProvidersAreAskedByValidate: what a provider refuses in a deployment is refused by validate. Nothing is made.
func TestProvidersAreAskedByValidate(t *testing.T) {
	for name, c := range map[string]struct{ resource, code string }{
		"a bad name": {`{"type":"Microsoft.Storage/storageAccounts","apiVersion":"2024-01-01","name":"Not-A-Name","location":"eastus",
			"kind":"StorageV2","sku":{"name":"Standard_LRS"}}`, "AccountNameInvalid"},
		"no location": {`{"type":"Microsoft.Storage/storageAccounts","apiVersion":"2024-01-01","name":"account1",
			"kind":"StorageV2","sku":{"name":"Standard_LRS"}}`, "LocationRequired"},
		"in a nested deployment": {nested("n", "", `{"resources":[{"type":"Microsoft.ManagedIdentity/userAssignedIdentities",
			"apiVersion":"2024-11-30","name":"i"}]}`), "LocationRequired"},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t)
			a.Run(
				exchange{Do: "POST " + deployment + "/validate", Body: of(`{"resources":[`+identityIn("one", "")+`,`+c.resource+`]}`, ""),
					Status: 400, Code: "InvalidTemplateDeployment", Has: has{"error.details.#": 1, "error.details.0.code": c.code}},
				exchange{Do: "GET " + identities + "/one", Status: 404, Code: "ResourceNotFound"},
			)
		})
	}
}

// TestHashOfATemplate: expressions see the hash of the template as the deployment and the service for hashes have it.
func TestHashOfATemplate(t *testing.T) {
	a := start(t)
	template := whole(`{"resources":[],"outputs":{"o":{"type":"string","value":"[deployment().properties.templateHash]"},
		"z":{"type":"array","value":"[pickZones('Microsoft.ManagedIdentity', 'userAssignedIdentities', 'eastus')]"}}}`)
	hash := a.Run(exchange{Do: "POST /providers/Microsoft.Resources/calculateTemplateHash", Body: template})["templateHash"]
	ended(a, of(template, ""), "Succeeded")
	a.Run(exchange{Do: "GET " + deployment, Has: has{"properties.templateHash": hash, "properties.outputs.o.value": hash,
		"properties.outputs.z.value.#": 0}})
}
