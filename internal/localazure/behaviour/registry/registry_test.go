package registry_test

import (
	"slices"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/registry"
	"kaz/internal/localazure/behaviour/resources"
)

type (
	exchange = behaviourtest.Exchange
	has      = map[string]any
)

const (
	registries = "~/providers/Microsoft.ContainerRegistry/registries"
	images     = registries + "/Images"
)

func start(t *testing.T) *behaviourtest.Azure {
	return behaviourtest.Start(t, resources.Provider(), registry.Provider())
}

func document(a *behaviourtest.Azure) (doc behaviour.Object) {
	a.Look(func(w behaviour.World) {
		doc, _ = w.Get(azure.ID(strings.Replace(images, "~", behaviourtest.Group, 1)))
	})
	return doc
}

func TestUpdatesOfBasicRegistriesEndInTheirReply(t *testing.T) {
	for _, sku := range []string{"basic", "Standard"} {
		a := start(t)
		a.Run(
			exchange{Do: "PUT " + images, Body: `{"location":"eastus","sku":{"name":"` + sku + `"}}`, Status: 201,
				Header: map[string]string{"Azure-AsyncOperation": "*", "api-supported-versions": "*"}, Has: has{
					"properties.provisioningState": "Creating", "properties.loginServer": "images.azurecr.io",
					"sku.tier":                             strings.ToUpper(sku[:1]) + sku[1:],
					"properties.policies.trustPolicy.type": "Notary", "properties.adminUserEnabled": false, "$passwords": nil,
				}},
			exchange{Do: "PATCH " + images, Body: `{"properties":{"adminUserEnabled":true}}`,
				Header: map[string]string{"Azure-AsyncOperation": ""},
				Has:    has{"properties.adminUserEnabled": true, "properties.provisioningState": "Succeeded"}},
			exchange{Do: "PATCH " + images, Body: `{"properties":{"dataEndpointEnabled":true}}`, Status: 400, Code: "FeatureNotSupported"},
			exchange{Do: "DELETE " + images},
		)
	}
}

func TestUpdatesOfPremiumRegistriesAreOperations(t *testing.T) {
	a := start(t)
	const body = `{"location":"eastus","sku":{"name":"Premium"},"properties":{"dataEndpointEnabled":true}}`
	ended := func(method, body string, status int, header, word string) {
		t.Helper()
		got, headers, _ := a.Send(method, images, body)
		if got != status || headers.Get(header) == "" {
			t.Fatalf("%s: %d, %s %q, want %d and the header", method, got, header, headers.Get(header), status)
		}
		a.Run(exchange{Do: "GET " + headers.Get(header), Has: has{"status": word}})
	}
	ended("PUT", body, 201, "Azure-AsyncOperation", "Succeeded")
	ended("PATCH", `{"tags":{"a":"b"}}`, 201, "Azure-AsyncOperation", "Succeeded")
	a.Run(exchange{Do: "GET " + images,
		Has: has{"tags.a": "b", "properties.dataEndpointHostNames.0": "images.eastus.data.azurecr.io",
			"properties.networkRuleSet.defaultAction": "Allow"}})
	ended("DELETE", "", 202, "Location", "Succeeded")
	a.Run(exchange{Do: "GET " + images, Status: 404, Code: "ResourceNotFound"})
}

func TestNamesOfRegistries(t *testing.T) {
	a := start(t)
	const body = `{"location":"eastus","sku":{"name":"Basic"}}`
	const check = "POST ~~/providers/Microsoft.ContainerRegistry/checkNameAvailability"
	a.Run(
		exchange{Do: "PUT " + images, Body: body, Status: 201},
		exchange{Do: "PUT ~~/resourceGroups/other", Body: `{"location":"eastus"}`, Status: 201},
		exchange{Do: "PUT ~~/resourceGroups/other/providers/Microsoft.ContainerRegistry/registries/images", Body: body, Status: 409,
			Code: "AlreadyInUse"},
		exchange{Do: "PUT " + registries + "/no-good", Body: body, Status: 400, Code: "InvalidResourceName"},
		exchange{Do: "PUT " + registries + "/Images2", Body: `{"location":"eastus","sku":{"name":"Free"}}`, Status: 400,
			Code: "SkuNotSupported"},
		exchange{Do: check, Body: `{"name":"images"}`, Has: has{"nameAvailable": false, "reason": "AlreadyExists"}},
		exchange{Do: check, Body: `{"name":"x"}`, Has: has{"nameAvailable": false, "reason": "Invalid"}},
		exchange{Do: check, Body: `{"name":"images2"}`, Has: has{"nameAvailable": true}},
	)
}

func TestTheAdminUserHasTwoPasswords(t *testing.T) {
	a := start(t)
	a.Run(
		exchange{Do: "PUT " + images, Body: `{"location":"eastus","sku":{"name":"Basic"}}`, Status: 201},
		exchange{Do: "POST " + images + "/listCredentials", Status: 400, Code: "UnAuthorizedForCredentialOperations"},
		exchange{Do: "PATCH " + images, Body: `{"properties":{"adminUserEnabled":true}}`},
	)
	before := a.Run(exchange{Do: "POST " + images + "/listCredentials", Has: has{"username": "Images", "passwords.#": 2}})
	after := a.Run(exchange{Do: "POST " + images + "/regenerateCredential", Body: `{"name":"password"}`})
	a.Run(exchange{Do: "POST " + images + "/regenerateCredential", Body: `{"name":"third"}`, Status: 400, Code: "InvalidParameter"})
	user, passwords, enabled := registry.Admin(document(a))
	if user != "Images" || !enabled || passwords[0] != behaviourtest.At(after, "passwords.0.value") {
		t.Errorf("admin user for the data plane: %s %v %v, want %v", user, passwords, enabled, after)
	}
	if behaviourtest.At(before, "passwords.0.value") == passwords[0] || behaviourtest.At(before, "passwords.1.value") != passwords[1] {
		t.Errorf("passwords %v after the first was regenerated, before %v", passwords, before)
	}
}

func TestImagesAreImported(t *testing.T) {
	a := start(t)
	const nginx = `{"source":{"registryUri":"docker.io","sourceImage":"library/nginx"},"targetTags":["nginx:1"]}`
	a.Run(
		exchange{Do: "PUT " + images, Body: `{"location":"eastus","sku":{"name":"Basic"}}`, Status: 201},
		exchange{Do: "POST " + images + "/importImage", Body: `{"source":{"registryUri":"docker.io"}}`, Status: 400,
			Code: "InvalidParameter"},
		exchange{Do: "POST " + images + "/importImage", Body: `{"source":{"sourceImage":"nginx"}}`, Status: 400, Code: "InvalidParameter"},
	)
	status, header, _ := a.Send("POST", images+"/importImage", nginx)
	if status != 202 || !strings.Contains(header.Get("Location"), "/locations/EASTUS/operationResults/registries-") {
		t.Fatalf("import: %d, Location %q", status, header.Get("Location"))
	}
	a.Run(
		exchange{Do: "GET " + header.Get("Location"), Has: has{"status": "Succeeded"}},
		exchange{Do: "GET " + images, Has: has{"properties.provisioningState": "Succeeded", "$imports": nil}},
		exchange{Do: "POST " + images + "/importImage", Body: nginx, Status: 409, Code: "Conflict"},
		exchange{Do: "GET " + images + "/listUsages", Has: has{"value.0.name": "Size"}},
	)
	got := registry.Imports(document(a))
	if len(got) != 1 || got[0].Registry != "docker.io" || got[0].Image != "library/nginx" ||
		!slices.Equal(got[0].Tags, []string{"nginx:1"}) {
		t.Errorf("imports for the data plane: %v", got)
	}
	a.Look(func(w behaviour.World) {
		if registry.Registries(w)["images.azurecr.io"] == nil {
			t.Error("the registry is not found by its login server")
		}
	})
}
