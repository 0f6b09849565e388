package resources_test

import (
	"testing"

	"kaz/internal/localazure/behaviour/behaviourtest"
)

// A deployment may have its template from a template spec, which has the templates that this one links to.
func TestDeploymentOfATemplateSpec(t *testing.T) {
	a := startStacks(t)
	const spec = behaviourtest.Group + "/providers/Microsoft.Resources/templateSpecs/s"
	link := func(id string) string {
		return `{"properties":{"mode":"Incremental","templateLink":{"id":"` + id + `"},"parameters":{"name":{"value":"made"}}}}`
	}
	inner := whole(`{"resources":[` + identityIn("inner", "") + `]}`)
	main := whole(`{"parameters":{"name":{"type":"string"}},"resources":[` + identityIn("[parameters('name')]", "") + `,
		{"type":"Microsoft.Resources/deployments","apiVersion":"2022-09-01","name":"n","properties":{"mode":"Incremental",
			"templateLink":{"relativePath":"parts/inner.json"}}}]}`)
	a.Run(
		exchange{Do: "PUT " + deployment, Body: link(spec + "/versions/v1"), Status: 404, Code: "ResourceNotFound"},
		exchange{Do: "PUT " + deployment, Body: link(spec), Status: 400, Code: "InvalidTemplate"},
		exchange{Do: "PUT " + spec, Body: `{"location":"eastus"}`, Status: 201},
		exchange{Do: "PUT " + spec + "/versions/v1", Status: 201, Body: `{"location":"eastus","properties":{"mainTemplate":` + main +
			`,"linkedTemplates":[{"path":"parts/inner.json","template":` + inner + `}]}}`},
		exchange{Do: "PUT " + spec + "/versions/v2", Status: 201, Body: `{"location":"eastus","properties":{"template":` + main + `}}`},
		exchange{Do: "PUT " + deployment, Body: link(spec + "/versions/v2"), Status: 400, Code: "InvalidTemplate"},
		exchange{Do: "POST " + deployment + "/validate", Body: link(spec + "/versions/v1"), Has: has{"properties.validatedResources.#": 3,
			"properties.templateLink.id": spec + "/versions/v1", "properties.templateLink.contentVersion": "1.0.0.0"}},
	)
	ended(a, link(spec+"/versions/v1"), "Succeeded")
	a.Run(exchange{Do: "GET " + identities + "/made"}, exchange{Do: "GET " + identities + "/inner"})
}
