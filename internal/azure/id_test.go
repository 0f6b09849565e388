package azure_test

import (
	"strings"
	"testing"

	"kaz/internal/azure"
)

func TestIDParts(t *testing.T) {
	const nic = azure.ID(
		"/subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/virtualMachineScaleSets/v/virtualMachines/0/networkInterfaces/n")
	for _, test := range []struct {
		id                                  azure.ID
		typ, name, group, subscription, top string
		parent                              azure.ID
	}{
		{"/subscriptions/S", "Microsoft.Resources/subscriptions", "S", "", "S", "/subscriptions/S", ""},
		{"/subscriptions/S/resourcegroups/G", "Microsoft.Resources/resourceGroups", "G", "G", "S", "/subscriptions/S/resourcegroups/G",
			"/subscriptions/S"},
		{"/subscriptions/S/resourceGroups/G/providers/Microsoft.Network/loadBalancers/L", "Microsoft.Network/loadBalancers", "L", "G", "S",
			"/subscriptions/S/resourceGroups/G/providers/Microsoft.Network/loadBalancers/L", "/subscriptions/S/resourceGroups/G"},
		{nic, "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces", "n", "G", "S",
			"/subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/virtualMachineScaleSets/v",
			"/subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/virtualMachineScaleSets/v/virtualMachines/0"},
		{"/subscriptions/S/providers/Microsoft.Compute/locations/eastus", "Microsoft.Compute/locations", "eastus", "", "S",
			"/subscriptions/S/providers/Microsoft.Compute/locations/eastus", "/subscriptions/S"},
		{"/subscriptions/S/resourceGroups/G/providers/Microsoft.Network/virtualNetworks/v/providers/Microsoft.Authorization/roleAssignments/r",
			"Microsoft.Authorization/roleAssignments", "r", "G", "S",
			"/subscriptions/S/resourceGroups/G/providers/Microsoft.Network/virtualNetworks/v/providers/Microsoft.Authorization/roleAssignments/r",
			"/subscriptions/S/resourceGroups/G/providers/Microsoft.Network/virtualNetworks/v"},
	} {
		id, err := azure.ParseID(string(test.id))
		if err != nil {
			t.Error(err)
			continue
		}
		if id.Type() != test.typ || id.Name() != test.name || id.Group() != test.group || id.Subscription() != test.subscription {
			t.Errorf("%s: type %q name %q group %q subscription %q", id, id.Type(), id.Name(), id.Group(), id.Subscription())
		}
		if string(id.TopLevel()) != test.top || id.Parent() != test.parent {
			t.Errorf("%s: top level %q parent %q", id, id.TopLevel(), id.Parent())
		}
	}
	if got := nic.NameOf("virtualmachinescalesets"); got != "v" {
		t.Errorf("scale set of the NIC: %q", got)
	}
}

func TestParseIDNamesWhatIsWrong(t *testing.T) {
	for in, want := range map[string]string{
		"":                "does not start with /",
		"subscriptions/S": "does not start with /",
		"/":               "empty segment",
		"/subscriptions":  "without a name",
		"/subscriptions/S/resourceGroups//providers/x":                         "empty segment",
		"/subscriptions/S/resourceGroups":                                      "without a name",
		"/subscriptions/S/nonsense/x":                                          `"nonsense"`,
		"/subscriptions/S/providers/Microsoft.Network":                         "without a name",
		"/subscriptions/S/providers/Microsoft.Network/loadBalancers":           "without a name",
		"/subscriptions/S/providers/A/t/n/providers/B/t":                       "without a name",
		"/subscriptions/S/providers/A/t/providers/B/t/n":                       "without a name",
		"/subscriptions/S/resourceGroups/a?b":                                  `'?'`,
		"/subscriptions/S/resourceGroups/a\nb":                                 `'\n'`,
		"/subscriptions/" + strings.Repeat("x", 5000) + "/providers/nonsense/": "...",
	} {
		if _, err := azure.ParseID(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseID(%.60q): %v, want an error with %q", in, err, want)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("/subscriptions/S/resourceGroups/G/providers/Microsoft.Network/loadBalancers/L/probes/P")
	f.Add("/providers/Microsoft.Authorization/roleDefinitions/r")
	f.Add("/subscriptions/S/providers/A/providers/B/t/n")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := azure.ParseID(s)
		if err != nil {
			return
		}
		upper := azure.ID(strings.ToUpper(s))
		if upper.Equal(id) && upper.Key() != id.Key() && strings.ToLower(string(upper)) == id.Key() {
			t.Errorf("%q and %q have different keys", id, upper)
		}
		if again, err := azure.ParseID(string(id)); err != nil || again != id {
			t.Errorf("parsed again: %q, %v", again, err)
		}
		for up := id; up != ""; up = up.Parent() {
			if !id.Under(up) {
				t.Errorf("%q is not under its ancestor %q", id, up)
			}
			if len(up.Parent()) >= len(up) {
				t.Fatalf("%q has the parent %q", up, up.Parent())
			}
		}
		if child := id.Child("k", "n"); id.Namespace() != "Microsoft.Resources" && child.Parent() != id {
			t.Errorf("parent of %q is %q", child, child.Parent())
		}
	})
}
