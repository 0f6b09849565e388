package nodes_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan"
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
		// The group's name inside the subscription's must not be taken for the group.
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
		"aws:///eu/i-1": false, "azure://": false, "": false, "kind://docker/a/b": false,
	} {
		if got := nodes.Managed(text); got != managed {
			t.Errorf("%q: managed is %v", text, got)
		}
		if id, ok := nodes.MachineID(text); ok != managed || ok && "azure://"+string(id) != text {
			t.Errorf("%q: %s, %v", text, id, ok)
		}
	}
}

// A provider id leads back to the machine, and is its own spelling.
func TestProviderIDsGoBothWays(t *testing.T) {
	segment := rapid.StringMatching(`[A-Za-z0-9._-]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		id := azure.GroupID(segment.Draw(t, "subscription"), segment.Draw(t, "group")).
			Resource(compute.ScaleSets, segment.Draw(t, "set")).Child("virtualMachines", strconv.Itoa(rapid.IntRange(0, 99999).Draw(t, "number")))
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

func TestPowerAndShutdown(t *testing.T) {
	gone := map[nodes.Power]bool{nodes.Stopped: true, nodes.Deallocated: true, nodes.Deallocating: true}
	for _, power := range []nodes.Power{nodes.Running, nodes.Starting, nodes.Stopping, nodes.Stopped, nodes.Deallocating, nodes.Deallocated, nodes.Unknown} {
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
		{nil, nodes.Unknown}, {view(), nodes.Unknown}, {view("ProvisioningState/succeeded"), nodes.Unknown}, {view("PowerState/"), nodes.Unknown},
		{view("ProvisioningState/succeeded", "PowerState/running"), nodes.Running}, {view("powerstate/Deallocated"), nodes.Deallocated},
	} {
		if got := nodes.PowerState(test.view); got != test.want {
			t.Errorf("%+v: %s", test.view, got)
		}
	}
}

// instance is a machine of the scale set with one interface.
func instance(n int, edit string, configurations string) []azure.Document {
	id := fmt.Sprintf("%s/virtualMachines/%d", set, n)
	computer := fmt.Sprintf("np%s", pad(strconv.FormatInt(int64(n), 36)))
	nic := id + "/networkInterfaces/nic"
	return []azure.Document{
		azure.Document(fmt.Sprintf(`{"id":%q,"name":"NP_%d","location":"West Europe","sku":{"name":"Standard_D2s_v3"},%s
			"properties":{"provisioningState":"Succeeded","osProfile":{"computerName":%q},"networkProfile":{"networkInterfaces":[{"id":%q}]},
			"instanceView":{"platformFaultDomain":3,"statuses":[{"code":"PowerState/running"}]}}}`, id, n, edit, computer, nic)),
		azure.Document(fmt.Sprintf(`{"id":%q,"properties":{"primary":true,"ipConfigurations":[%s]}}`, nic, configurations)),
	}
}

func pad(s string) string { return strings.Repeat("0", 6-len(s)) + s }

const (
	v4 = `{"name":"a","properties":{"primary":true,"privateIPAddress":"10.0.0.4","privateIPAddressVersion":"IPv4"}}`
	v6 = `{"name":"b","properties":{"privateIPAddress":"fd00::4","privateIPAddressVersion":"IPv6"}}`
)

var model = azure.Document(`{"id":"` + string(set) + `","name":"NP","properties":{"virtualMachineProfile":{"osProfile":{"computerNamePrefix":"np"}}}}`)

func TestDescribe(t *testing.T) {
	public := azure.Document(`{"id":"/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/publicIPAddresses/p","properties":{"ipAddress":"20.0.0.1"}}`)
	withPublic := strings.Replace(v4, `"primary"`, `"publicIPAddress":{"id":"/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/publicIPAddresses/P"},"primary"`, 1)
	address := func(kind v1.NodeAddressType, a string) v1.NodeAddress { return v1.NodeAddress{Type: kind, Address: a} }
	inside, name := address(v1.NodeInternalIP, "10.0.0.4"), address(v1.NodeHostName, "np00000a")
	for _, test := range []struct {
		what      string
		docs      []azure.Document
		zone      string
		addresses []v1.NodeAddress
		wrong     string
	}{
		{what: "a zone beats the fault domain", docs: instance(10, `"zones":["2"],`, v4), zone: "westeurope-2", addresses: []v1.NodeAddress{inside, name}},
		{what: "fault domain without zones", docs: instance(10, ``, v4), zone: "3", addresses: []v1.NodeAddress{inside, name}},
		{what: "both families, the primary first", docs: instance(10, ``, v6+","+v4), zone: "3", addresses: []v1.NodeAddress{inside, address(v1.NodeInternalIP, "fd00::4"), name}},
		{what: "a public address last", docs: append(instance(10, ``, withPublic), public), zone: "3", addresses: []v1.NodeAddress{inside, name, address(v1.NodeExternalIP, "20.0.0.1")}},
		{what: "a public address that is not there", docs: instance(10, ``, withPublic), zone: "3", addresses: []v1.NodeAddress{inside, name}},
		{what: "a zone that is no number", docs: instance(10, `"zones":["b"],`, v4), wrong: `zone "b"`},
		{what: "no address", docs: instance(10, ``, `{"name":"a","properties":{"primary":true}}`), wrong: "no primary interface with an address"},
		{what: "no interface", docs: instance(10, ``, v4)[:1], wrong: "no primary interface with an address"},
	} {
		t.Run(test.what, func(t *testing.T) {
			m, ok, err := nodes.Find(plan.NewSnapshot(append(test.docs, model)...), group, nodes.Ref{Name: "np00000a"})
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			d, err := nodes.Describe(m, "np00000a", "elsewhere")
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Fatal("the error is", err)
				}
				return
			}
			want := nodes.Description{
				ProviderID:   "azure:///subscriptions/rg-of-s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/NP/virtualMachines/10",
				InstanceType: "Standard_D2s_v3", Region: "westeurope", Zone: test.zone, Addresses: test.addresses,
			}
			if diff := cmp.Diff(want, d); diff != "" || err != nil {
				t.Error(err, "(-want +got):\n"+diff)
			}
		})
	}
}

func TestFind(t *testing.T) {
	docs := append(instance(10, "", v4), model)
	docs = append(docs, instance(11, "", v4)...)
	odd := strings.Replace(string(instance(12, "", v4)[0]), `"np00000c"`, `"NP00000D"`, 1) // a number that is not the instance's
	docs = append(docs, azure.Document(odd))
	have := plan.NewSnapshot(docs...)
	provider := func(n int) string {
		id, _ := nodes.ProviderID(azure.ID(fmt.Sprintf("%s/virtualMachines/%d", set, n)))
		return id
	}
	for _, test := range []struct {
		ref  nodes.Ref
		want string // instance, "" for none
	}{
		{nodes.Ref{Name: "np00000a"}, "10"}, {nodes.Ref{Name: "np00000b"}, "11"}, {nodes.Ref{Name: "np00000d"}, "12"},
		{nodes.Ref{Name: "np00000e"}, ""}, {nodes.Ref{Name: "other00000a"}, ""}, {nodes.Ref{Name: "a"}, ""}, {nodes.Ref{Name: "np-----a"}, ""},
		{nodes.Ref{Name: "np00000a", ProviderID: provider(11)}, "11"}, // the id decides
		{nodes.Ref{Name: "np00000a", ProviderID: provider(99)}, ""},
		{nodes.Ref{Name: "a", ProviderID: "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/a"}, ""},
	} {
		m, ok, err := nodes.Find(have, group, test.ref)
		if err != nil || ok != (test.want != "") || ok && m.Instance.ID.Name() != test.want {
			t.Errorf("%+v: %s %v %v", test.ref, m.Instance.ID, ok, err)
		}
	}
}

func TestNeedsLeadsToTheMachine(t *testing.T) {
	public := `{"id":"` + string(set) + `/virtualMachines/10/networkInterfaces/nic/ipConfigurations/a/publicIPAddresses/p","properties":{"ipAddress":"20.0.0.1"}}`
	with := strings.Replace(v4, `"primary"`, `"publicIPAddress":{"id":"`+string(set)+`/virtualMachines/10/networkInterfaces/nic/ipConfigurations/a/publicIPAddresses/p"},"primary"`, 1)
	all := plan.NewSnapshot(append(instance(10, "", with), model, azure.Document(public))...)
	for _, ref := range []nodes.Ref{{Name: "np00000a"}, {Name: "x", ProviderID: "azure://" + string(set) + "/virtualMachines/10"}} {
		have := plan.NewSnapshot()
		for range 4 {
			ids, lists := nodes.Needs(have, group, ref)
			for _, id := range ids {
				if d, ok := all.Get(id); ok {
					have = have.With(d)
				}
			}
			for _, q := range lists {
				have = have.With(all.List(q.Scope, strings.Replace(q.Type, "Sets/networkInterfaces", "Sets/virtualMachines/networkInterfaces", 1))...)
			}
		}
		m, ok, err := nodes.Find(have, group, ref)
		if !ok || err != nil || len(m.PublicIPs) != 1 {
			t.Errorf("%+v: %v %v %v", ref, m, ok, err)
		}
	}
}

func TestZones(t *testing.T) {
	provider := azure.Document(`{"resourceTypes":[
		{"resourceType":"disks","zoneMappings":[{"location":"West Europe","zones":["9"]}]},
		{"resourceType":"virtualMachines","zoneMappings":[{"location":"West Europe","zones":["3","1","2"]},{"location":"North Europe","zones":[]}]}]}`)
	for region, want := range map[string][]string{"westeurope": {"1", "2", "3"}, "WestEurope": {"1", "2", "3"}, "West Europe": {"1", "2", "3"}, "northeurope": nil, "nowhere": nil} {
		got, err := nodes.Zones(provider, region)
		if err != nil || len(got) != len(want) || strings.Join(got, ",") != strings.Join(want, ",") {
			t.Errorf("%s: %v %v", region, got, err)
		}
	}
	if _, err := nodes.Zones(azure.Document(`{"resourceTypes":`), "x"); err == nil {
		t.Error("half a document was accepted")
	}
}

// One node's description out of a snapshot of 1,000 machines.
func BenchmarkFind(b *testing.B) {
	docs := []azure.Document{model}
	for n := range 1000 {
		docs = append(docs, instance(n, "", v4)...)
	}
	have := plan.NewSnapshot(docs...)
	for name, ref := range map[string]nodes.Ref{"by name": {Name: "np00000a"}, "by id": {ProviderID: "azure://" + string(set) + "/virtualMachines/10"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, ok, err := nodes.Find(have, group, ref); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			plan.NewSnapshot(docs...)
		}
	})
}
