package compute_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/compute"
	"kaz/internal/localazure/behaviour/network"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/core"
)

const (
	group   = behaviourtest.Group
	vnet    = group + "/providers/Microsoft.Network/virtualNetworks/vnet"
	subnet  = vnet + "/subnets/nodes"
	balance = group + "/providers/Microsoft.Network/loadBalancers/lb"
	pool    = balance + "/backendAddressPools/nodes"
	set     = group + "/providers/Microsoft.Compute/virtualMachineScaleSets/np"
	first   = set + "/virtualMachines/0"
	disk    = group + "/providers/Microsoft.Compute/disks/data"
	nic     = group + "/providers/Microsoft.Network/networkInterfaces/nic"
	machine = group + "/providers/Microsoft.Compute/virtualMachines/vm"
)

// subscription is a local Azure with a group and a network in it.
type subscription struct {
	testing.TB
	*behaviourtest.Azure
}

func newSubscription(t testing.TB, o core.Options) subscription {
	t.Helper()
	o.Providers = []behaviour.Provider{resources.Provider(), network.Provider(), compute.Provider()}
	w := subscription{TB: t, Azure: behaviourtest.StartWith(t, o)}
	w.must("PUT", vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16","fd00::/48"]},"subnets":[
		{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/20"}},
		{"name":"tiny","properties":{"addressPrefix":"10.0.240.0/29"}},
		{"name":"dual","properties":{"addressPrefixes":["10.0.241.0/24","fd00:0:0:1::/64"]}}]}}`)
	return w
}

func (w subscription) do(method, path, body string, header ...string) behaviourtest.Answer {
	w.Helper()
	return w.Request(method, path, body, header...)
}

// must sends a request that must succeed, with its operation.
func (w subscription) must(method, path, body string, header ...string) behaviourtest.Answer {
	w.Helper()
	got := w.do(method, path, body, header...)
	if got.Status >= http.StatusMultipleChoices {
		w.Fatalf("%s %s: %d %v", method, path, got.Status, got.Body)
	}
	if poll := got.Header.Get("Azure-AsyncOperation"); poll != "" {
		status := w.do("GET", poll, "")
		if s := behaviour.Text(status.Body, "status"); s == "Failed" || s == "Canceled" {
			w.Fatalf("%s %s: operation ended %v", method, path, status.Body)
		}
	}
	return got
}

func (w subscription) get(path string) behaviour.Object {
	w.Helper()
	return w.must("GET", path, "").Body
}

func (w subscription) list(path string) []behaviour.Object {
	w.Helper()
	return behaviour.Objects(w.get(path), "value")
}

// refused sends a request that must fail.
func (w subscription) refused(method, path, body string, status int, code string) {
	w.Helper()
	got := w.do(method, path, body)
	if got.Status != status || got.Code() != code {
		w.Errorf("%s %s %s\n got %d %v\nwant %d %s", method, path, body, got.Status, got.Body, status, code)
	}
}

// want compares a value at a path of a document.
func (w subscription) want(doc behaviour.Object, path string, value any) {
	w.Helper()
	if got := behaviour.At(doc, path); !behaviour.Equal(got, value) {
		w.Errorf("%s of %v is %v, want %v", path, doc["id"], got, value)
	}
}

// model has the parts of a scale set's body that tests vary.
type model struct {
	capacity int
	zones    []string
	subnet   string
	pools    []string
	image    string
	policy   string
	extra    behaviour.Object // properties
	tags     behaviour.Object
	size     string
	address  behaviour.Object // properties of the IP configuration
}

func (m model) object() behaviour.Object {
	refs := []any{}
	for _, p := range m.pools {
		refs = append(refs, behaviour.Ref(azure.ID(p)))
	}
	in := m.subnet
	if in == "" {
		in = subnet
	}
	props := behaviour.Object{"subnet": behaviour.Ref(azure.ID(in))}
	if len(refs) > 0 {
		props["loadBalancerBackendAddressPools"] = refs
	}
	maps.Copy(props, m.address)
	policy, image, size := m.policy, m.image, m.size
	if policy == "" {
		policy = "Manual"
	}
	if image == "" {
		image = "22_04-lts-gen2"
	}
	if size == "" {
		size = "Standard_D2s_v3"
	}
	doc := behaviour.Object{
		"location": "eastus", "sku": behaviour.Object{"name": size, "capacity": m.capacity},
		"properties": behaviour.Object{
			"singlePlacementGroup": false,
			"upgradePolicy":        behaviour.Object{"mode": policy},
			"virtualMachineProfile": behaviour.Object{
				"osProfile": behaviour.Object{"computerNamePrefix": "aks-np-vmss", "adminUsername": "azureuser",
					"adminPassword": "not to be seen", "customData": "bm90IHRvIGJlIHNlZW4="},
				"storageProfile": behaviour.Object{"imageReference": behaviour.Object{"publisher": "Canonical",
					"offer": "0001-com-ubuntu-server-jammy", "sku": image, "version": "latest"}},
				"networkProfile": behaviour.Object{"networkInterfaceConfigurations": []any{behaviour.Object{
					"name": "nic", "properties": behaviour.Object{"primary": true, "enableIPForwarding": true,
						"ipConfigurations": []any{behaviour.Object{"name": "ip", "properties": props}}},
				}}},
			},
		},
	}
	for k, v := range m.extra {
		behaviour.Set(doc, "properties."+k, v)
	}
	if m.zones != nil {
		zones := []any{}
		for _, z := range m.zones {
			zones = append(zones, z)
		}
		doc["zones"] = zones
	}
	if m.tags != nil {
		doc["tags"] = m.tags
	}
	return doc
}

func (m model) json() string { return text(m.object()) }

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (w subscription) scaleSet(m model) { w.Helper(); w.must("PUT", set, m.json()) }

func (w subscription) balancer() {
	w.Helper()
	w.must("PUT", balance, `{"location":"eastus","sku":{"name":"Standard"},"properties":{"backendAddressPools":[{"name":"nodes"}],
		"frontendIPConfigurations":[{"name":"f","properties":{"subnet":{"id":"`+subnet+`"}}}]}}`)
}

// instanceIDs returns the ids of the instances in the order of the list.
func (w subscription) instanceIDs() []string {
	w.Helper()
	var ids []string
	for _, i := range w.list(set + "/virtualMachines") {
		ids = append(ids, behaviour.Text(i, "instanceId"))
	}
	return ids
}

// members returns the IP configurations in the load balancer's pool.
func (w subscription) members() []string {
	w.Helper()
	var ids []string
	for _, ref := range behaviour.Objects(w.get(pool), "properties.backendIPConfigurations") {
		ids = append(ids, strings.TrimPrefix(behaviour.Text(ref, "id"), set+"/virtualMachines/"))
	}
	return ids
}
