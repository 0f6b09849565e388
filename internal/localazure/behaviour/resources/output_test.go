package resources_test

import (
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/network"
	"kaz/internal/localazure/behaviour/resources"
)

// A deployment that shows a network interface in its outputs holds neither the interface's address nor its subnet.
func TestOutputsReserveNothing(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), network.Provider())
	const networks = "~/providers/Microsoft.Network/"
	const nic = "resourceId('Microsoft.Network/networkInterfaces', 'n')"
	body := `{"location":"eastus","properties":{"ipConfigurations":[{"name":"c","properties":{"privateIPAddress":"10.0.0.9",
		"privateIPAllocationMethod":"Static","subnet":{"id":"` + behaviourtest.Group +
		`/providers/Microsoft.Network/virtualNetworks/v/subnets/s"}}}]}}`
	a.Run(
		exchange{Do: "PUT " + networks + "virtualNetworks/v", Status: 201, Body: `{"location":"eastus","properties":{
			"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"s","properties":{"addressPrefix":"10.0.0.0/24"}}]}}`},
		exchange{Do: "PUT " + networks + "networkInterfaces/n", Body: body, Status: 201},
	)
	ended(a, of(`{"resources":[],"outputs":{"nic":{"type":"object","value":"[reference(`+nic+`, '2024-05-01', 'Full')]"},
		"subnet":{"type":"string","value":"[reference(`+nic+`, '2024-05-01').ipConfigurations[0].properties.subnet.id]"}}}`, ""),
		"Succeeded")
	a.Run(
		exchange{Do: "PUT " + networks + "networkInterfaces/n", Body: body},
		exchange{Do: "DELETE " + networks + "networkInterfaces/n", Status: 202},
		exchange{Do: "PUT " + networks + "networkInterfaces/m", Body: strings.Replace(body, `"c"`, `"other"`, 1), Status: 201},
		exchange{Do: "DELETE " + networks + "networkInterfaces/m", Status: 202},
		exchange{Do: "DELETE " + networks + "virtualNetworks/v/subnets/s", Status: 202},
	)
}

// A deployment shows outputs if its template has a section for them, though it is empty.
func TestEmptyOutputs(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider())
	if got := behaviour.At(ended(a, of(`{"resources":[],"outputs":{}}`, ""), "Succeeded"), "properties.outputs"); got == nil {
		t.Error("a template with an empty section: no outputs are shown")
	}
	if got := behaviour.At(ended(a, of(`{"resources":[]}`, ""), "Succeeded"), "properties.outputs"); got != nil {
		t.Errorf("a template without a section: outputs are %v", got)
	}
}

// A deployment shows which details it is to keep.
func TestDetailsOfADeployment(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider())
	asked := strings.Replace(of(`{"resources":[]}`, ""), `{"properties":{`,
		`{"properties":{"debugSetting":{"detailLevel":"requestContent,responseContent"},`, 1)
	if got := behaviour.At(ended(a, asked, "Succeeded"), "properties.debugSetting.detailLevel"); got != "RequestContent, ResponseContent" {
		t.Errorf("details: %v", got)
	}
	if got := behaviour.At(ended(a, of(`{"resources":[]}`, ""), "Succeeded"), "properties.debugSetting"); got != nil {
		t.Errorf("details that no request asks for: %v", got)
	}
}
