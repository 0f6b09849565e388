package nodes_test

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/nodes"
)

const (
	group = azure.ID("/subscriptions/rg-of-s/resourceGroups/RG")
	set   = group + "/providers/Microsoft.Compute/virtualMachineScaleSets/NP"
)

func TestProviderID(t *testing.T) {
	for id, want := range map[azure.ID]string{
		set + "/virtualMachines/7": "azure:///subscriptions/rg-of-s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/NP/virtualMachines/7",
		"/subscriptions/S/resourceGroups/My-RG/providers/Microsoft.Compute/virtualMachines/My-RG": "azure:///subscriptions/S/resourceGroups/my-rg/providers/Microsoft.Compute/virtualMachines/My-RG",
		// The subscription has the same name as the resource group.
		"/subscriptions/RG/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/a": "azure:///subscriptions/RG/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/a",
		"/subscriptions/S/resourcegroups/RG/providers/Microsoft.Compute/virtualMachines/a":  "",
		"/subscriptions/S/resourceGroups/RG":                                                "",
		"":                                                                                  "",
		"aws:///i-1":                                                                        "",
	} {
		got, err := nodes.ProviderID(id)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v", id, got, err)
		}
	}
}

func TestMachineID(t *testing.T) {
	for text, managed := range map[string]bool{
		"azure:///subscriptions/S/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/np/virtualMachines/1": true,
		"azure:///subscriptions/S/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/a":                            true,
		"azure:///subscriptions/S/resourcegroups/rg/providers/Microsoft.Compute/virtualMachines/a":                            false,
		"azure:///subscriptions/S/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/a":                              false,
		"aws:///eu/i-1": false, "foo": false, "azure://": false, "": false, "kind://docker/a/b": false,
	} {
		if got := nodes.Managed(text); got != managed {
			t.Errorf("%q: managed is %v", text, got)
		}
		if id, ok := nodes.MachineID(text); ok != managed || ok && "azure://"+string(id) != text {
			t.Errorf("%q: %s, %v", text, id, ok)
		}
	}
}

// TestProviderIDsGoBothWays checks that a provider id leads back to the machine and that it is
// canonical.
func TestProviderIDsGoBothWays(t *testing.T) {
	segment := rapid.StringMatching(`[A-Za-z0-9._-]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		id := azure.GroupID(segment.Draw(t, "subscription"), segment.Draw(t, "group")).
			Resource(compute.ScaleSets, segment.Draw(t, "set")).Child("virtualMachines",
			strconv.Itoa(rapid.IntRange(0, 99999).Draw(t, "number")))
		text, err := nodes.ProviderID(id)
		if err != nil {
			t.Fatal(err)
		}
		back, ok := nodes.MachineID(text)
		if !ok || !back.Equal(id) {
			t.Fatalf("%s became %s", id, back)
		}
		if again, err := nodes.ProviderID(back); err != nil || again != text {
			t.Fatalf("%s, then %s: %v", text, again, err)
		}
	})
}

// TestTheLongFormOfAnInstancesID: disks refer to an instance by its scale set's name and its number.
func TestTheLongFormOfAnInstancesID(t *testing.T) {
	const prefix = "azure:///subscriptions/S/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/v/virtualMachines/"
	for text, want := range map[string]string{"v_7": "7", "V_7": "7", "7": "7", "v_": "v_", "w_7": "w_7"} {
		if id, ok := nodes.MachineID(prefix + text); !ok || id.Name() != want {
			t.Errorf("%s: %s %v", text, id, ok)
		}
	}
}

func FuzzMachineID(f *testing.F) {
	f.Add("azure:///subscriptions/S/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/v/virtualMachines/v_7")
	f.Add("azure:///subscriptions/S/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/a")
	f.Add("aws:///eu-west-1a/i-1")
	f.Fuzz(func(t *testing.T, text string) {
		id, ok := nodes.MachineID(text)
		if !ok {
			return
		}
		if !nodes.Managed(text) {
			t.Fatalf("%q belongs to no machine, but is %s", text, id)
		}
		if _, err := azure.ParseID(string(id)); err != nil {
			t.Fatal(err)
		}
		again, err := nodes.ProviderID(id)
		if err != nil {
			return // ids may have these words in another case
		}
		if back, ok := nodes.MachineID(again); !ok || !back.Equal(id) {
			t.Fatalf("%q became %s", text, back)
		}
	})
}

func TestPowerAndShutdown(t *testing.T) {
	gone := map[nodes.Power]bool{nodes.Stopped: true, nodes.Deallocated: true, nodes.Deallocating: true}
	for _, power := range []nodes.Power{nodes.Running, nodes.Starting, nodes.Stopping, nodes.Stopped, nodes.Deallocating,
		nodes.Deallocated, nodes.Unknown} {
		for _, state := range []string{"Succeeded", "succeeded", "Creating", "Updating", "Failed", "Deleting", ""} {
			want := gone[power] && strings.EqualFold(state, "Succeeded")
			if got := nodes.Shutdown(state, power); got != want {
				t.Errorf("%s and %q: shut down is %v", power, state, got)
			}
		}
	}
	view := func(codes ...string) *compute.InstanceView {
		v := &compute.InstanceView{}
		for _, c := range codes {
			v.Statuses = append(v.Statuses, compute.InstanceStatus{Code: c})
		}
		return v
	}
	for _, test := range []struct {
		view *compute.InstanceView
		want nodes.Power
	}{
		{nil, nodes.Unknown}, {view(), nodes.Unknown}, {view("ProvisioningState/succeeded"), nodes.Unknown},
		{view("PowerState/"), nodes.Unknown},
		{view("ProvisioningState/succeeded", "PowerState/running"), nodes.Running}, {view("powerstate/Deallocated"), nodes.Deallocated},
	} {
		if got := nodes.PowerState(test.view); got != test.want {
			t.Errorf("%+v: %s", test.view, got)
		}
	}
}

// TestZones (D33) checks that regions match in any spelling.
func TestZones(t *testing.T) {
	provider := azure.Document(`{"resourceTypes":[
		{"resourceType":"disks","zoneMappings":[{"location":"West Europe","zones":["9"]}]},
		{"resourceType":"virtualMachines","zoneMappings":[{"location":"West Europe","zones":["3","1","2"]},{"location":"North Europe","zones":[]}]}]}`)
	for region, want := range map[string][]string{"westeurope": {"1", "2", "3"}, "WestEurope": {"1", "2", "3"},
		"West Europe": {"1", "2", "3"}, "northeurope": nil, "nowhere": nil} {
		got, err := nodes.Zones(provider, region)
		if err != nil || len(got) != len(want) || strings.Join(got, ",") != strings.Join(want, ",") {
			t.Errorf("%s: %v %v", region, got, err)
		}
	}
	if _, err := nodes.Zones(azure.Document(`{"resourceTypes":`), "x"); err == nil {
		t.Error("half a document was accepted")
	}
}
