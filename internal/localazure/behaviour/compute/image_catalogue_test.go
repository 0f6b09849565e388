package compute_test

import (
	"testing"

	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/compute"
	"kaz/internal/localazure/behaviour/resources"
)

// The catalogue answers the requests that `az vm create` makes to find an image.
func TestImageCatalogue(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), compute.Provider())
	const base = "/providers/Microsoft.Compute/locations/"
	names := func(path string) []string {
		t.Helper()
		all := []string{}
		for _, x := range a.List(behaviourtest.Subscription + base + path) {
			all = append(all, behaviourtest.At(x, "name").(string))
		}
		return all
	}
	const jammy = "Canonical/artifacttypes/vmimage/offers/0001-com-ubuntu-server-jammy/skus"
	for _, c := range []struct {
		path, first string
		more        bool
	}{
		{"westus/publishers", "almalinux", true},
		{"West%20Europe/publishers/canonical/artifacttypes/vmimage/offers", "0001-com-ubuntu-server-focal", true},
		{"eastus/publishers/" + jammy, "22_04-lts", true},
		{"eastus/publishers/" + jammy + "/22_04-lts-gen2/versions", "22.04.202512120", true},
		{"eastus/publishers/" + jammy + "/22_04-lts-gen2/versions?$top=1&$orderby=name%20desc", "22.04.202601090", false},
		{"eastus/publishers/Microsoft.Azure.Extensions/artifacttypes/vmextension/types", "CustomScript", true},
		{"eastus/publishers/Microsoft.Azure.Extensions/artifacttypes/vmextension/types/customscript/versions", "2.0.7", true},
	} {
		if got := names(c.path); len(got) == 0 || got[0] != c.first || len(got) > 1 != c.more {
			t.Errorf("%s: %v, want %s first", c.path, got, c.first)
		}
	}
	a.Run(
		behaviourtest.Exchange{Do: "GET ~~" + base + "eastus/publishers/" + jammy + "/22_04-lts-gen2/versions/22.04.202304200", Has: map[string]any{
			"name": "22.04.202304200", "location": "eastus", "properties.hyperVGeneration": "V2", "properties.architecture": "x64",
			"properties.osDiskImage.operatingSystem": "Linux",
			"id": "/Subscriptions/" + behaviourtest.Subscription[len("/subscriptions/"):] + "/Providers/Microsoft.Compute/Locations/eastus" +
				"/Publishers/Canonical/ArtifactTypes/VMImage/Offers/0001-com-ubuntu-server-jammy/Skus/22_04-lts-gen2/Versions/22.04.202304200",
		}},
		behaviourtest.Exchange{Do: "GET ~~" + base + "eastus/publishers/" + jammy + "/none/versions/1.0.0", Status: 404, Code: "PlatformImageNotFound"},
		behaviourtest.Exchange{Do: "GET ~~" + base + "eastus/publishers/nobody/artifacttypes/vmimage/offers", Status: 404, Code: "NotFound"},
		behaviourtest.Exchange{Do: "GET ~~" + base + "nowhere/publishers", Status: 400, Code: "NoRegisteredProviderFound"},
		behaviourtest.Exchange{Do: "GET ~~" + base + "eastus/publishers/Microsoft.Compute/artifacttypes/vmextension/types/CustomScriptExtension/versions/1.10.12",
			Has: map[string]any{"properties.operatingSystem": "Windows", "properties.computeRole": "IaaS"}},
	)
}
