package registry_test

import (
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/registry"
	"kaz/internal/localazure/behaviour/resources"
)

// The parts of a registry are stored with what Azure adds, and a token gets its passwords once.
func TestPartsOfARegistry(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), registry.Provider())
	const reg = "~/providers/Microsoft.ContainerRegistry/registries/images1"
	full := behaviourtest.Group + "/providers/Microsoft.ContainerRegistry/registries/images1"
	a.Run(
		exchange{Do: "PUT " + reg, Status: 201, Body: `{"location":"eastus","sku":{"name":"premium"},"identity":{"type":"SystemAssigned"},
			"properties":{"adminUserEnabled":"true"}}`},
		exchange{Do: "GET " + reg, Has: has{"properties.adminUserEnabled": true, "identity.type": "SystemAssigned"}},
		exchange{Do: "GET ~/resources", Has: has{"value.0.name": "images1", "value.0.systemData.createdByType": "User"}},
		exchange{Do: "GET " + reg + "/replications", Has: has{"value.#": 1, "value.0.name": "eastus"}},
		exchange{Do: "PUT " + reg + "/replications/westus", Body: `{"location":"westus"}`, Status: 201},
		exchange{Do: "GET " + reg + "/replications/westus", Has: has{"properties.regionEndpointEnabled": true,
			"properties.status.displayStatus": "Ready", "properties.provisioningState": "Succeeded"}},
		exchange{Do: "GET " + reg + "/scopeMaps/_repositories_pull", Has: has{"properties.type": "SystemDefined"}},
		exchange{Do: "PUT " + reg + "/scopeMaps/mine", Status: 201, Body: `{"properties":{"actions":["repositories/a/content/read"]}}`},
		exchange{Do: "PUT " + reg + "/tokens/t", Status: 201, Body: `{"properties":{"scopeMapId":"` + full + `/scopeMaps/mine"}}`},
		exchange{Do: "POST " + reg + "/generateCredentials", Body: `{"tokenId":"` + full + `/tokens/none"}`, Status: 404, Code: "TokenNotFound"},
		exchange{Do: "GET " + reg + "/privateLinkResources", Has: has{"value.0.name": "registry"}},
	)
	got := a.Request("POST", reg+"/generateCredentials", `{"tokenId":"`+full+`/tokens/t"}`)
	if got.Status != 202 {
		t.Fatalf("generateCredentials: %d %v", got.Status, got.Body)
	}
	a.Run(
		exchange{Do: "GET " + got.Header.Get("Location"), Has: has{"username": "t", "passwords.#": 2}},
		exchange{Do: "GET " + reg + "/tokens/t", Has: has{"properties.credentials.passwords.#": 2, "properties.credentials.passwords.0.value": nil}},
	)
	if shown := a.Run(exchange{Do: "GET " + reg}); behaviourtest.At(shown, "identity.principalId") == nil {
		t.Errorf("a registry has no principal: %v", shown)
	}
}

// Webhooks keep their address to themselves, runs are queued, and tasks tell their details.
func TestWebhooksAndRuns(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), registry.Provider())
	const reg = "~/providers/Microsoft.ContainerRegistry/registries/images1"
	a.Run(
		exchange{Do: "PUT " + reg, Status: 201, Body: `{"location":"eastus","sku":{"name":"Standard"}}`},
		exchange{Do: "PUT " + reg + "/webhooks/hook1", Status: 201, Body: `{"location":"eastus","properties":{"serviceUri":"http://a.b",
			"customHeaders":{"k":"v"},"actions":["push"]}}`},
		exchange{Do: "GET " + reg + "/webhooks/hook1", Has: has{"properties.serviceUri": nil, "properties.customHeaders": nil,
			"properties.status": "enabled", "$callback": nil}},
		exchange{Do: "POST " + reg + "/webhooks/hook1/getCallbackConfig", Has: has{"serviceUri": "http://a.b", "customHeaders.k": "v"}},
		exchange{Do: "POST " + reg + "/webhooks/hook1/listEvents", Has: has{"value.#": 0}},
		exchange{Do: "PUT " + reg + "/tasks/t1", Status: 201, Body: `{"location":"eastus","properties":{"platform":{"os":"linux"},
			"step":{"type":"Docker","dockerFilePath":"f"},"trigger":{"baseImageTrigger":{"name":"b"}}}}`,
			Has: has{"properties.trigger.baseImageTrigger.status": "Enabled"}},
		exchange{Do: "POST " + reg + "/tasks/t1/listDetails", Has: has{"properties.step.dockerFilePath": "f"}},
		exchange{Do: "POST " + reg + "/scheduleRun", Body: `{"type":"TaskRunRequest","taskId":"` + strings.Replace(reg, "~",
			behaviourtest.Group, 1) + `/tasks/none"}`, Status: 404, Code: "ResourceNotFound"},
		exchange{Do: "POST " + reg + "/scheduleRun", Body: `{"type":"DockerBuildRequest","platform":{"os":"Linux"}}`,
			Has: has{"name": "ca1", "properties.runType": "QuickBuild", "properties.status": "Queued"}},
		exchange{Do: "PUT " + reg + "/taskRuns/r1", Status: 201, Body: `{"properties":{"runRequest":{"type":"DockerBuildRequest"}}}`},
		exchange{Do: "GET " + reg + "/taskRuns/r1", Has: has{"properties.runResult.properties.runId": "ca2"}},
		exchange{Do: "POST " + reg + "/runs/ca1/cancel"},
		exchange{Do: "GET " + reg + "/runs", Has: has{"value.#": 2, "value.0.properties.status": "Canceled"}},
	)
}
