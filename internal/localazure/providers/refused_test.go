package providers_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

// networkIn is a resource of templates, with further members.
func networkIn(more string) string {
	return `{"type":"Microsoft.Network/virtualNetworks","apiVersion":"2024-05-01","name":"v","location":"eastus"` + more + `}`
}

// TestTemplatesThatFail: what a provider refuses of a resource fails the deployment, as the same request alone would.
func TestTemplatesThatFail(t *testing.T) {
	var tags []string
	for i := range 51 {
		tags = append(tags, fmt.Sprintf(`"t%d":"x"`, i))
	}
	const space = `"addressSpace":{"addressPrefixes":["10.0.0.0/16"]}`
	for name, c := range map[string]struct{ resource, says string }{
		"51 tags":                {networkIn(`,"properties":{` + space + `},"tags":{` + strings.Join(tags, ",") + `}`), "has 51 tags"},
		"a tag of Azure":         {networkIn(`,"properties":{` + space + `},"tags":{"azureX":"x"}`), "InvalidTagName"},
		"an unknown property":    {networkIn(`,"properties":{` + space + `,"nonsense":1}`), "Could not find member 'nonsense'"},
		"no required property":   {networkIn(`,"properties":{}`), "addressSpace"},
		"a subnet that is aside": {networkIn(`,"properties":{` + space + `,"subnets":[{"name":"s","properties":{"addressPrefix":"11.0.0.0/24"}}]}`), "NetcfgInvalidSubnet"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := core.New(core.Options{Providers: providers.All()})
			if err != nil {
				t.Fatal(err)
			}
			send(e, "PUT", group, `{"location":"eastus"}`)
			const path = group + "/providers/Microsoft.Resources/deployments/d"
			status, reply := send(e, "PUT", path, `{"properties":{"mode":"Incremental","template":{"$schema":
				"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#","contentVersion":"1.0.0.0",
				"resources":[`+c.resource+`]}}}`)
			if fault := failureOf(e, path); status != 201 || !strings.Contains(fault, c.says) {
				t.Errorf("%d %v, and then %q\nwant it to fail, and to say %q", status, reply, fault, c.says)
			}
		})
	}
}

// TestTemplatesRefusedEarly: what a template can be refused for is refused by validate and by the deployment, before anything is made.
func TestTemplatesRefusedEarly(t *testing.T) {
	numbered := func(n int, one string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(one, i))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	for name, c := range map[string]struct{ sections, code, says string }{
		"an unknown function":              {`"resources":[` + networkIn(`,"properties":{"x":"[nothing()]"}`) + `]`, "InvalidTemplate", "nothing"},
		"an unknown parameter":             {`"resources":[` + networkIn(`,"tags":{"a":"[parameters('p')]"}`) + `]`, "InvalidTemplate", "'p' is not found"},
		"an unknown variable":              {`"resources":[` + networkIn(`,"tags":{"a":"[variables('w')]"}`) + `]`, "InvalidTemplate", "'w' is not found"},
		"an unknown function in an output": {`"resources":[],"outputs":{"o":{"type":"string","value":"[nothing()]"}}`, "InvalidTemplate", "nothing"},
		"an unknown type": {`"resources":[{"type":"Microsoft.Network/nets","apiVersion":"2024-05-01","name":"n","location":"eastus"}]`,
			"InvalidResourceType", "nets"},
		"an unknown provider": {`"resources":[{"type":"Microsoft.Nothing/nets","apiVersion":"2024-05-01","name":"n","location":"eastus"}]`,
			"InvalidResourceNamespace", "Microsoft.Nothing"},
		"no location": {`"resources":[{"type":"Microsoft.Network/virtualNetworks","apiVersion":"2024-05-01","name":"v"}]`,
			"InvalidTemplateDeployment", "ocation"},
		"an unknown location": {`"resources":[{"type":"Microsoft.Network/virtualNetworks","apiVersion":"2024-05-01","name":"v",
			"location":"nowhere"}]`, "InvalidTemplateDeployment", "nowhere"},
		"the name of an account": {`"resources":[{"type":"Microsoft.Storage/storageAccounts","apiVersion":"2023-01-01","name":"Not_Valid",
			"location":"eastus","sku":{"name":"Standard_LRS"},"kind":"StorageV2"}]`, "InvalidTemplateDeployment", "AccountNameInvalid"},
		"the name of a network": {`"resources":[{"type":"Microsoft.Network/virtualNetworks","apiVersion":"2024-05-01","name":"-v-",
			"location":"eastus"}]`, "InvalidTemplateDeployment", "InvalidResourceName"},
		"the name of a vault": {`"resources":[{"type":"Microsoft.KeyVault/vaults","apiVersion":"2023-07-01","name":"1v",
			"location":"eastus","properties":{"tenantId":"[subscription().tenantId]","sku":{"family":"A","name":"standard"},"accessPolicies":[]}}]`,
			"InvalidTemplateDeployment", "VaultNameNotValid"},
		"a nested deployment without mode": {`"resources":[{"type":"Microsoft.Resources/deployments","apiVersion":"2022-09-01","name":"n",
			"properties":{"template":{"$schema":"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
			"contentVersion":"1.0.0.0","resources":[]}}}]`, "InvalidTemplate", "mode"},
		"an api-version that is none": {`"resources":[{"type":"Microsoft.Network/virtualNetworks","apiVersion":"latest","name":"v",
			"location":"eastus"}]`, "NoRegisteredProviderFound", "'latest'"},
		"an api-version that the type never had": {`"resources":[{"type":"Microsoft.Network/virtualNetworks","apiVersion":"2019-01-02",
			"name":"v","location":"eastus"}]`, "NoRegisteredProviderFound", "The supported api-versions are '2025-05-01, "},
		"257 parameters": {`"resources":[],"parameters":` + numbered(257, `"p%d":{"type":"string","defaultValue":""}`),
			"InvalidTemplate", "Limit: '256' and actual: '257'"},
		"65 outputs": {`"resources":[],"outputs":` + numbered(65, `"o%d":{"type":"string","value":""}`), "InvalidTemplate",
			"Limit: '64' and actual: '65'"},
		"a property of a parameter": {`"languageVersion":"2.0","resources":{},"parameters":{"p":{"type":"object","properties":{"n":
			{"type":"int","minValue":3}},"defaultValue":{"n":2}}}`, "InvalidTemplate", "p.n"},
		"an element of a parameter": {`"languageVersion":"2.0","resources":{},"parameters":{"p":{"type":"array","items":{"type":"string",
			"maxLength":1},"defaultValue":["a","bc"]}}`, "InvalidTemplate", "p[1]"},
		"an output without a type":  {`"resources":[],"outputs":{"o":{"value":"x"}}`, "InvalidRequestContent", "Required property 'type'"},
		"an output of no type":      {`"resources":[],"outputs":{"o":{"type":"strin","value":"x"}}`, "InvalidTemplate", "strin"},
		"an output without a value": {`"resources":[],"outputs":{"o":{"type":"string"}}`, "InvalidRequestContent", "Required property 'value'"},
		"resources that are a text": {`"resources":"x"`, "InvalidRequestContent", "Path 'properties.template.resources'"},
		"dependsOn that is a text":  {`"resources":[` + networkIn(`,"dependsOn":"x"`) + `]`, "InvalidRequestContent", "resources[0].dependsOn"},
		"tags that are a text":      {`"resources":[` + networkIn(`,"tags":"x"`) + `]`, "InvalidRequestContent", "resources[0].tags"},
		"a language of the future":  {`"languageVersion":"3.0","resources":[]`, "InvalidTemplate", "'3.0'"},
		"a function that reads a variable": {`"functions":[{"namespace":"n","members":{"f":{"output":{"type":"string",
			"value":"[variables('v')]"}}}}],"variables":{"v":"1"},"resources":[]`, "InvalidTemplate", "'v' is not found"},
		"a function that asks for a resource": {`"functions":[{"namespace":"n","members":{"f":{"output":{"type":"string",
			"value":"[reference('x').y]"}}}}],"resources":[]`, "InvalidTemplate", "'reference' is not expected at this location"},
		"a function with an unknown parameter": {`"functions":[{"namespace":"n","members":{"f":{"parameters":[{"name":"p","type":"string"}],
			"output":{"type":"string","value":"[parameters('q')]"}}}}],"resources":[]`, "InvalidTemplate", "'q' is not found"},
		"a reference to no resource of the template": {`"resources":[` + networkIn(`,"tags":{"a":"[reference('none').x]"}`) + `]`,
			"InvalidTemplate", "The template reference 'none' is not valid"},
		"one in an output": {`"resources":[],"outputs":{"o":{"type":"string","value":"[reference('none').x]"}}`,
			"InvalidTemplate", "The template reference 'none' is not valid"},
		"a nested deployment with a long name": {`"resources":[{"type":"Microsoft.Resources/deployments","apiVersion":"2022-09-01","name":"` +
			strings.Repeat("n", 65) + `","properties":{"mode":"Incremental","template":{"$schema":
			"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#","contentVersion":"1.0.0.0","resources":[]}}}]`,
			"InvalidDeploymentName", "nnn"},
		"a nested deployment with an unknown mode": {`"resources":[{"type":"Microsoft.Resources/deployments","apiVersion":"2022-09-01","name":"n",
			"properties":{"mode":"Sometimes","template":{"$schema":
			"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#","contentVersion":"1.0.0.0","resources":[]}}}]`,
			"InvalidRequestContent", "'Sometimes'"},
		"a resource twice":   {`"resources":[` + networkIn("") + "," + networkIn("") + `]`, "InvalidTemplate", "defined multiple times"},
		"a circle":           {`"resources":[` + networkIn(`,"dependsOn":["w"]`) + "," + strings.Replace(networkIn(`,"dependsOn":["v"]`), `"v",`, `"w",`, 1) + `]`, "InvalidTemplate", "Circular"},
		"a missing resource": {`"resources":[` + networkIn(`,"dependsOn":["w"]`) + `]`, "InvalidTemplate", "not defined in the template"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := core.New(core.Options{Providers: providers.All()})
			if err != nil {
				t.Fatal(err)
			}
			send(e, "PUT", group, `{"location":"eastus"}`)
			body := `{"properties":{"mode":"Incremental","template":{"$schema":
				"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#","contentVersion":"1.0.0.0",` + c.sections + `}}}`
			for _, request := range [][2]string{{"POST", "/validate"}, {"PUT", ""}} {
				status, reply := send(e, request[0], group+"/providers/Microsoft.Resources/deployments/d"+request[1], body)
				text, _ := json.Marshal(reply)
				var fault struct{ Error struct{ Code string } }
				_ = json.Unmarshal(text, &fault)
				if status < 400 || fault.Error.Code != c.code || !strings.Contains(string(text), c.says) {
					t.Errorf("%s: %d %s\nwant the code %s, and %q", request[0], status, text, c.code, c.says)
				}
			}
			w := httptest.NewRecorder()
			e.ServeHTTP(w, httptest.NewRequest("GET", group+"/resources?api-version=2024-03-01", nil))
			if !strings.Contains(w.Body.String(), `"value":[]`) {
				t.Errorf("something is made: %s", w.Body)
			}
		})
	}
}
