package nodes_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/plan/nodes"
)

// cloud answers queries from documents and records the queries.
type cloud struct {
	docs  []azure.Document
	views map[azure.ID]string // instance views
	asked []string
	read  map[azure.Query]*nodes.Listing
}

func (c *cloud) answer(q azure.Query) []azure.Document {
	if nodes.IsView(q) {
		if view, ok := c.views[q.Scope]; ok {
			return []azure.Document{azure.Document(view)}
		}
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.docs), func(d azure.Document) bool {
		id := d.ID()
		switch {
		case !id.Under(q.Scope):
			return true
		case strings.Contains(q.Type, "ScaleSets/"): // lists for all instances
			return !strings.HasSuffix(strings.ToLower(id.Type()), strings.ToLower(q.Type[strings.LastIndexByte(q.Type, '/'):]))
		case q.Filter != "" && !strings.Contains(strings.ToLower(string(d)), strings.ToLower(strings.Split(q.Filter, "'")[3])):
			return true
		}
		return !id.Is(q.Type)
	})
}

// find calls Locate and Complete, and reads what they need.
func (c *cloud) find(t testing.TB, ref nodes.Ref) (m nodes.Machine, found bool, err error) {
	t.Helper()
	known := func(q azure.Query) *nodes.Listing { return c.read[q] }
	for range 6 {
		vm, unread, err := nodes.Locate(known, group, ref)
		if err != nil {
			return m, false, err
		}
		if vm != nil {
			found = true
			if m, unread = nodes.Complete(known, *vm); len(unread) == 0 {
				return m, true, nil
			}
		} else if len(unread) == 0 {
			return m, false, nil
		}
		for _, q := range nodes.WithInterfaces(unread) {
			if c.read == nil {
				c.read = map[azure.Query]*nodes.Listing{}
			}
			c.asked = append(c.asked, strings.TrimPrefix(string(q.Scope), string(group))+" "+q.Type[strings.IndexByte(q.Type, '/')+1:])
			if c.read[q], err = nodes.Read(q, c.answer(q)); err != nil {
				return m, false, err
			}
		}
	}
	t.Fatal("there is no end to what has to be read")
	return m, found, err
}

// instance returns an instance of the Uniform scale set with one interface.
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

// machine returns a virtual machine with one interface.
func machine(name, computer, edit, configurations string) []azure.Document {
	id, nic := vmID(name), group.Resource(network.Interfaces, name+"-nic")
	return []azure.Document{
		azure.Document(fmt.Sprintf(`{"id":%q,"name":%q,"location":"westeurope","properties":{"provisioningState":"Succeeded",%s
			"hardwareProfile":{"vmSize":"Standard_D4s_v5"},"osProfile":{"computerName":%q},"networkProfile":{"networkInterfaces":[{"id":%q}]}}}`, id, name, edit, computer, nic)),
		azure.Document(fmt.Sprintf(`{"id":%q,"properties":{"primary":true,"ipConfigurations":[%s]}}`, nic, configurations)),
	}
}

func vmID(name string) azure.ID { return group.Resource(compute.VirtualMachines, name) }

const (
	v4 = `{"name":"a","properties":{"primary":true,"privateIPAddress":"10.0.0.4","privateIPAddressVersion":"IPv4"}}`
	v6 = `{"name":"b","properties":{"privateIPAddress":"fd00::4","privateIPAddressVersion":"IPv6"}}`

	flexSet = group + "/providers/Microsoft.Compute/virtualMachineScaleSets/flex"
	inFlex  = `"virtualMachineScaleSet":{"id":"` + string(flexSet) + `"},`
)

var (
	model = azure.Document(`{"id":"` + string(set) +
		`","name":"NP","properties":{"virtualMachineProfile":{"osProfile":{"computerNamePrefix":"np"}}}}`)
	flex = azure.Document(`{"id":"` + string(flexSet) +
		`","name":"flex","properties":{"orchestrationMode":"Flexible","virtualMachineProfile":{"osProfile":{"computerNamePrefix":"flex"}}}}`)
)

func address(kind v1.NodeAddressType, a string) v1.NodeAddress {
	return v1.NodeAddress{Type: kind, Address: a}
}

func TestDescribe(t *testing.T) {
	const publicID = string(group) +
		`/providers/Microsoft.Compute/virtualMachineScaleSets/NP/virtualMachines/10/networkInterfaces/nic/ipConfigurations/a/publicIPAddresses/p`
	public := azure.Document(`{"id":"` + publicID + `","properties":{"ipAddress":"20.0.0.1"}}`)
	young := azure.Document(`{"id":"` + publicID + `","properties":{}}`)
	withPublic := strings.Replace(v4, `"primary"`, `"publicIPAddress":{"id":"`+publicID+`"},"primary"`, 1)
	inside, name := address(v1.NodeInternalIP, "10.0.0.4"), address(v1.NodeHostName, "np00000a")
	second := azure.Document(strings.Replace(string(instance(10, "", v6)[1]), "/nic", "/other", 1))
	twoCards := func(primary string) []azure.Document {
		docs := instance(10, "", v4)
		docs[0] = azure.Document(strings.Replace(string(docs[0]), `"networkInterfaces":[`, `"networkInterfaces":[{"id":"`+
			string(second.ID())+`"},`, 1))
		docs[1] = azure.Document(strings.Replace(string(docs[1]), `"primary":true,"ipConf`, primary+`"ipConf`, 1))
		return append(docs, azure.Document(strings.Replace(string(second), `"primary":true,"ipConf`, `"ipConf`, 1)))
	}
	for _, test := range []struct {
		what      string
		docs      []azure.Document
		zone      string
		addresses []v1.NodeAddress
		wrong     string
	}{
		{what: "34: a zone beats the fault domain", docs: instance(10, `"zones":["2"],`, v4), zone: "westeurope-2",
			addresses: []v1.NodeAddress{inside, name}},
		{what: "34: fault domain without zones", docs: instance(10, ``, v4), zone: "3", addresses: []v1.NodeAddress{inside, name}},
		{what: "38: both families, the primary first", docs: instance(10, ``, v6+","+v4), zone: "3",
			addresses: []v1.NodeAddress{inside, address(v1.NodeInternalIP, "fd00::4"), name}},
		{what: "36: a public address last", docs: append(instance(10, ``, withPublic), public), zone: "3",
			addresses: []v1.NodeAddress{inside, name, address(v1.NodeExternalIP, "20.0.0.1")}},
		{what: "36: a public address that is not there", docs: instance(10, ``, withPublic), zone: "3",
			addresses: []v1.NodeAddress{inside, name}},
		{what: "D13: a public address without one yet", docs: append(instance(10, ``, withPublic), young), zone: "3",
			addresses: []v1.NodeAddress{inside, name}},
		{what: "D13: one configuration, primary or not said", docs: instance(10, ``, strings.Replace(v4, `"primary":true,`, "", 1)),
			zone: "3", addresses: []v1.NodeAddress{inside, name}},
		{what: "37: two interfaces, one is primary", docs: twoCards(`"primary":true,`), zone: "3",
			addresses: []v1.NodeAddress{inside, name}},
		{what: "37: two interfaces, none is primary", docs: twoCards(``), wrong: "no primary interface with an address"},
		{what: "34: a zone that is no number", docs: instance(10, `"zones":["b"],`, v4), wrong: `zone "b"`},
		{what: "116: neither zone nor view",
			docs: []azure.Document{azure.Document(strings.Replace(string(instance(10, ``, v4)[0]), `"instanceView"`, `"x"`, 1)),
				instance(10, ``, v4)[1]}, wrong: "neither a zone nor a fault domain"},
		{what: "no address", docs: instance(10, ``, `{"name":"a","properties":{"primary":true}}`),
			wrong: "no primary interface with an address"},
		{what: "115: no interface", docs: instance(10, ``, v4)[:1], wrong: "no primary interface with an address"},
	} {
		t.Run(test.what, func(t *testing.T) {
			m, ok, err := (&cloud{docs: append(test.docs, model)}).find(t, nodes.Ref{Name: "np00000a"})
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

// TestDescribeVirtualMachines describes virtual machines: standalone, in an availability set, and in
// a Flexible scale set.
func TestDescribeVirtualMachines(t *testing.T) {
	// D11: the public IP is in another resource group.
	public := azure.Document(`{"id":"/subscriptions/rg-of-s/resourceGroups/elsewhere/providers/Microsoft.Network/publicIPAddresses/p","properties":{"ipAddress":"20.0.0.1"}}`)
	withPublic := strings.Replace(v4, `"primary"`, `"publicIPAddress":{"id":"`+string(public.ID())+`"},"primary"`, 1)
	inSet := `"availabilitySet":{"id":"` + string(group) + `/providers/Microsoft.Compute/availabilitySets/as"},`
	zoned := func(docs []azure.Document) []azure.Document {
		docs[0] = azure.Document(strings.Replace(string(docs[0]), `"properties"`, `"zones":["2"],"properties"`, 1))
		return docs
	}
	inside, name := address(v1.NodeInternalIP, "10.0.0.4"), address(v1.NodeHostName, "node-a")
	viewed := `"instanceView":{"platformFaultDomain":2},`
	for _, test := range []struct {
		what      string
		docs      []azure.Document
		view      string // of the machine
		labels    map[string]string
		zone      string
		addresses []v1.NodeAddress
	}{
		{what: "alone", docs: machine("node-a", "node-a", "", v4), view: `{"statuses":[]}`, zone: "0",
			addresses: []v1.NodeAddress{inside, name}},
		{what: "alone in a zone", docs: zoned(machine("node-a", "node-a", "", v4)), zone: "westeurope-2",
			addresses: []v1.NodeAddress{inside, name}},
		{what: "D3: fault domain of an availability set", docs: machine("node-a", "node-a", inSet, v4), view: `{"platformFaultDomain":1}`,
			zone: "1", addresses: []v1.NodeAddress{inside, name}},
		{what: "116: no view", docs: machine("node-a", "node-a", inSet, v4), zone: "0", addresses: []v1.NodeAddress{inside, name}},
		{what: "27: flexible, by computer name", docs: append(zoned(machine("flexprofile-x", "NODE-A", inFlex, v6+","+v4)), flex),
			zone: "westeurope-2", addresses: []v1.NodeAddress{inside, address(v1.NodeInternalIP, "fd00::4"), name}},
		{what: "flexible without zones", docs: append(machine("flexprofile-x", "node-a", inFlex+viewed, v4), flex), zone: "2",
			addresses: []v1.NodeAddress{inside, name}},
		{what: "D11: a public address of another group", docs: append(zoned(machine("node-a", "node-a", "", withPublic)), public),
			zone: "westeurope-2", addresses: []v1.NodeAddress{inside, name, address(v1.NodeExternalIP, "20.0.0.1")}},
		{what: "extra labels",
			docs: zoned(machine("node-a", "node-a", `"x":0},"tags":{"Platform_Interconnect_Group":"g1"},"properties":{`, v4)), zone: "",
			labels: map[string]string{nodes.LabelInterconnectGroup: "g1"}},
	} {
		t.Run(test.what, func(t *testing.T) {
			c := &cloud{docs: append(test.docs, model), views: map[azure.ID]string{}}
			if test.view != "" {
				c.views[test.docs[0].ID()] = test.view
			}
			m, ok, err := c.find(t, nodes.Ref{Name: "node-a"})
			if !ok || err != nil {
				t.Fatal(ok, err, c.asked)
			}
			if diff := cmp.Diff(test.labels, m.Labels()); diff != "" {
				t.Error(diff)
			}
			if test.labels != nil {
				return
			}
			d, err := nodes.Describe(m, "node-a", "elsewhere")
			id, _ := nodes.ProviderID(test.docs[0].ID())
			want := nodes.Description{ProviderID: id, InstanceType: "Standard_D4s_v5", Region: "westeurope", Zone: test.zone,
				Addresses: test.addresses}
			if diff := cmp.Diff(want, d); diff != "" || err != nil {
				t.Error(err, "(-want +got):\n"+diff)
			}
			// The provider id leads back to the same machine.
			if back, ok, err := c.find(t, nodes.Ref{Name: "other", ProviderID: d.ProviderID}); !ok || err != nil ||
				!back.Instance.ID.Equal(m.Instance.ID) {
				t.Errorf("back by %s: %v %v %v", d.ProviderID, back.Instance.ID, ok, err)
			}
		})
	}
}

func TestLocate(t *testing.T) {
	docs := append(instance(10, "", v4), model, flex)
	docs = append(docs, instance(11, "", v4)...)
	odd := strings.Replace(string(instance(12, "", v4)[0]), `"np00000c"`, `"NP00000D"`, 1) // another number than the instance's
	nameless := strings.Replace(string(instance(13, "", v4)[0]), `"osProfile"`, `"x"`, 1)
	leaving := strings.Replace(string(instance(14, "", v4)[0]), "Succeeded", "Deleting", 1)
	docs = append(docs, azure.Document(odd), azure.Document(nameless), azure.Document(leaving))
	docs = append(docs, machine("alone", "alone", "", v4)...)
	docs = append(docs, machine("flex_1", "flex00000a", inFlex, v4)...)
	docs = append(docs, machine("Upper", "upper", "", v4)...)
	docs = append(docs, machine("named", "other", "", v4)...)
	docs = append(docs, machine("x", "named", "", v4)...)
	docs = append(docs, machine("y1", "twice", "", v4)...)
	docs = append(docs, machine("y2", "twice", "", v4)...)
	provider := func(id azure.ID) string {
		text, _ := nodes.ProviderID(id)
		return text
	}
	instanceID := func(n int) azure.ID { return azure.ID(fmt.Sprintf("%s/virtualMachines/%d", set, n)) }
	for _, test := range []struct {
		what string
		ref  nodes.Ref
		want string // "" for none
	}{
		{"23: by the number in the name", nodes.Ref{Name: "np00000a"}, "10"},
		{"24: by the prefix, which is not the set's name", nodes.Ref{Name: "np00000b"}, "11"},
		{"25: the computer name is upper case", nodes.Ref{Name: "np00000d"}, "12"},
		{"no such number", nodes.Ref{Name: "np00000e"}, ""},
		{"no such prefix", nodes.Ref{Name: "other00000a"}, ""},
		{"26: too short", nodes.Ref{Name: "a"}, ""}, {"26: no number", nodes.Ref{Name: "node!"}, ""},
		{"26: no digits", nodes.Ref{Name: "np-----a"}, ""},
		{"115: no computer name", nodes.Ref{Name: "np00000d", ProviderID: provider(instanceID(13))}, "13"},
		{"49: being deleted, by name", nodes.Ref{Name: "np00000e"}, ""},
		{"49: being deleted, by id", nodes.Ref{Name: "np00000e", ProviderID: provider(instanceID(14))}, ""},
		{"the id decides", nodes.Ref{Name: "np00000a", ProviderID: provider(instanceID(11))}, "11"},
		{"no such id", nodes.Ref{Name: "np00000a", ProviderID: provider(instanceID(99))}, ""},
		{"alone", nodes.Ref{Name: "alone"}, "alone"},
		{"alone, by id", nodes.Ref{Name: "z", ProviderID: provider(vmID("alone"))}, "alone"},
		{"27: flexible", nodes.Ref{Name: "flex00000a"}, "flex_1"},
		{"the resource's name is in another case", nodes.Ref{Name: "upper"}, "Upper"},
		{"the resource's name counts before the computer's", nodes.Ref{Name: "named"}, "named"},
		{"no such machine", nodes.Ref{Name: "z", ProviderID: provider(vmID("gone"))}, ""},
	} {
		t.Run(test.what, func(t *testing.T) {
			m, ok, err := (&cloud{docs: docs}).find(t, test.ref)
			if err != nil || ok != (test.want != "") || ok && m.Instance.ID.Name() != test.want {
				t.Errorf("%s %v %v", m.Instance.ID, ok, err)
			}
		})
	}
	var several *nodes.SeveralError
	if _, _, err := (&cloud{docs: docs}).find(t, nodes.Ref{Name: "twice"}); !errors.As(err, &several) || len(several.Machines) != 2 {
		t.Errorf("two machines for one node: %v", err)
	}
	for _, id := range []string{"azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d",
		"azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/x"} {
		if _, _, err := (&cloud{docs: docs}).find(t, nodes.Ref{Name: "a", ProviderID: id}); err == nil ||
			!strings.Contains(err.Error(), "error splitting providerID") {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestWhatIsRead checks that only the lists that the node's kind needs are read.
func TestWhatIsRead(t *testing.T) {
	docs := slices.Concat(instance(10, `"zones":["1"],`, v4), machine("flex_1", "flex00000a", inFlex, v4),
		machine("alone", "alone", "", v4), []azure.Document{model, flex})
	const np, flexMachines = "/providers/Microsoft.Compute/virtualMachineScaleSets/NP ", " virtualMachines"
	inSet := []string{np + "virtualMachineScaleSets/virtualMachines", np + "virtualMachineScaleSets/networkInterfaces"}
	for _, test := range []struct {
		ref  nodes.Ref
		want []string
	}{
		{nodes.Ref{Name: "np00000a"}, append([]string{" virtualMachineScaleSets"}, inSet...)},
		{nodes.Ref{Name: "x", ProviderID: "azure://" + string(set) + "/virtualMachines/10"}, inSet},
		{nodes.Ref{Name: "flex00000a"}, []string{" virtualMachineScaleSets", flexMachines, " networkInterfaces", flexMachines}},
		{nodes.Ref{Name: "alone"},
			[]string{" virtualMachineScaleSets", flexMachines, " networkInterfaces",
				"/providers/Microsoft.Compute/virtualMachines/alone virtualMachines/instanceView"}},
		{nodes.Ref{Name: "unknown"}, []string{" virtualMachineScaleSets", flexMachines}},
	} {
		c := &cloud{docs: docs}
		if _, _, err := c.find(t, test.ref); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, c.asked); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.ref, diff)
		}
	}
}

// TestRuns checks the state in an instance view.
func TestRuns(t *testing.T) {
	view := func(codes ...string) []azure.Document {
		var list []string
		for _, c := range codes {
			list = append(list, fmt.Sprintf(`{"code":%q}`, c))
		}
		return []azure.Document{azure.Document(`{"statuses":[` + strings.Join(list, ",") + `]}`)}
	}
	for _, test := range []struct {
		docs       []azure.Document
		there, off bool
	}{
		{nil, false, false},
		{view(), true, false},
		{view("ProvisioningState/succeeded", "PowerState/running"), true, false},
		{view("ProvisioningState/succeeded", "PowerState/deallocated"), true, true},
		{view("ProvisioningState/succeeded", "PowerState/stopping"), true, false},
		{view("ProvisioningState/creating", "PowerState/stopped"), true, false},
		{view("ProvisioningState/failed/AllocationFailed", "PowerState/stopped"), true, false},
		{view("ProvisioningState/deleting", "PowerState/running"), false, false},
	} {
		l, err := nodes.Read(nodes.ViewOf(vmID("a")), test.docs)
		if err != nil {
			t.Fatal(err)
		}
		if there, off := l.Runs(); there != test.there || off != test.off {
			t.Errorf("%s: there %v, off %v", test.docs, there, off)
		}
	}
}

// FuzzRead checks that invalid documents cause errors, not panics.
func FuzzRead(f *testing.F) {
	f.Add(string(instance(10, "", v4)[0]))
	f.Add(string(machine("a", "a", inFlex, v6)[1]))
	f.Add(`{"properties":{"networkProfile":{"networkInterfaces":[{"id":"x"}]}}}`)
	f.Add(`{"id":"","properties":null,"statuses":[{}]}`)
	f.Fuzz(func(_ *testing.T, text string) {
		for _, q := range []azure.Query{
			{Scope: group, Type: compute.ScaleSets}, {Scope: group, Type: compute.VirtualMachines},
			{Scope: group, Type: network.Interfaces},
			{Scope: group, Type: network.PublicIPAddresses}, nodes.ViewOf(vmID("a")),
		} {
			l, err := nodes.Read(q, []azure.Document{azure.Document(text)})
			if err != nil {
				continue
			}
			l.Has(vmID("a"))
			l.Runs()
			vm, err := azure.Decode[compute.Instance](azure.Document(text))
			if err != nil {
				continue
			}
			if m, unread := nodes.Complete(func(azure.Query) *nodes.Listing { return l }, vm); len(unread) == 0 {
				_, _ = nodes.Describe(m, "a", "r") // errors about invalid documents are expected
			}
		}
	})
}

// BenchmarkFind describes one node from the lists of 1,000 machines.
func BenchmarkFind(b *testing.B) {
	docs := []azure.Document{model}
	for n := range 1000 {
		docs = append(docs, instance(n, "", v4)...)
	}
	for name, ref := range map[string]nodes.Ref{"by name": {Name: "np00000a"},
		"by id": {ProviderID: "azure://" + string(set) + "/virtualMachines/10"}} {
		b.Run(name, func(b *testing.B) {
			c := &cloud{docs: docs}
			for b.Loop() {
				if _, ok, err := c.find(b, ref); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
	b.Run("read", func(b *testing.B) {
		q, _ := nodes.ListWith(set + "/virtualMachines/1")
		list := (&cloud{docs: docs}).answer(q)
		for b.Loop() {
			if _, err := nodes.Read(q, list); err != nil {
				b.Fatal(err)
			}
		}
	})
}
