package compute_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/emulator"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/compute"
	"kaz/internal/emulator/behaviour/network"
	"kaz/internal/emulator/behaviour/resources"
)

const (
	group   = "/subscriptions/" + emulator.DefaultSubscription + "/resourceGroups/rg"
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

// world is a local Azure with a group and a network in it.
type world struct {
	testing.TB
	*emulator.Emulator
	client http.Client
}

type answer struct {
	status int
	header http.Header
	body   behaviour.Object
}

func (a answer) code() string { return behaviour.Text(a.body, "error.code") }

func newWorld(t testing.TB, o emulator.Options) world {
	t.Helper()
	o.Providers = []behaviour.Provider{resources.Provider(), network.Provider(), compute.Provider()}
	e, err := emulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w := world{TB: t, Emulator: e, client: http.Client{Transport: e.Transport()}}
	w.must("PUT", group, `{"location":"eastus"}`)
	w.must("PUT", vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16","fd00::/48"]},"subnets":[
		{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/20"}},
		{"name":"tiny","properties":{"addressPrefix":"10.0.240.0/29"}},
		{"name":"dual","properties":{"addressPrefixes":["10.0.241.0/24","fd00:0:0:1::/64"]}}]}}`)
	return w
}

func (w world) do(method, path, body string, header ...string) answer {
	w.Helper()
	mark := "?"
	if strings.Contains(path, "?") {
		mark = "&"
	}
	r, err := http.NewRequest(method, "http://azure.test"+strings.ReplaceAll(path, " ", "%20")+mark+"api-version=2025-04-01", strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	reply, err := w.client.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		w.Fatal(err)
	}
	got := answer{status: reply.StatusCode, header: reply.Header}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &got.body); err != nil {
			w.Fatalf("%s %s: reply %d is not a JSON object: %v\n%s", method, path, reply.StatusCode, err, text)
		}
	}
	return got
}

// must sends a request that has to succeed, and so has its operation.
func (w world) must(method, path, body string, header ...string) answer {
	w.Helper()
	got := w.do(method, path, body, header...)
	if got.status >= http.StatusMultipleChoices {
		w.Fatalf("%s %s: %d %v", method, path, got.status, got.body)
	}
	if poll := got.header.Get("Azure-AsyncOperation"); poll != "" {
		status := w.do("GET", strings.TrimPrefix(poll, "http://azure.test"), "")
		if s := behaviour.Text(status.body, "status"); s == "Failed" || s == "Canceled" {
			w.Fatalf("%s %s: operation ended %v", method, path, status.body)
		}
	}
	return got
}

func (w world) get(path string) behaviour.Object {
	w.Helper()
	return w.must("GET", path, "").body
}

func (w world) list(path string) []behaviour.Object {
	w.Helper()
	return behaviour.Objects(w.get(path), "value")
}

// refused sends a request that has to fail.
func (w world) refused(method, path, body string, status int, code string) {
	w.Helper()
	got := w.do(method, path, body)
	if got.status != status || got.code() != code {
		w.Errorf("%s %s %s\n got %d %v\nwant %d %s", method, path, body, got.status, got.body, status, code)
	}
}

// want compares a value at a path of a document.
func (w world) want(doc behaviour.Object, path string, value any) {
	w.Helper()
	if got := behaviour.At(doc, path); !behaviour.Equal(got, value) {
		w.Errorf("%s of %v is %v, want %v", path, doc["id"], got, value)
	}
}

// model is the body of a scale set.
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
				"osProfile":      behaviour.Object{"computerNamePrefix": "aks-np-vmss", "adminUsername": "azureuser", "adminPassword": "not to be seen", "customData": "bm90IHRvIGJlIHNlZW4="},
				"storageProfile": behaviour.Object{"imageReference": behaviour.Object{"publisher": "Canonical", "offer": "0001-com-ubuntu-server-jammy", "sku": image, "version": "latest"}},
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

func (w world) scaleSet(m model) { w.Helper(); w.must("PUT", set, m.json()) }

func (w world) balancer() {
	w.Helper()
	w.must("PUT", balance, `{"location":"eastus","sku":{"name":"Standard"},"properties":{"backendAddressPools":[{"name":"nodes"}],
		"frontendIPConfigurations":[{"name":"f","properties":{"subnet":{"id":"`+subnet+`"}}}]}}`)
}

// instanceIDs are the names of the instances, in the order of the list.
func (w world) instanceIDs() []string {
	w.Helper()
	var ids []string
	for _, i := range w.list(set + "/virtualMachines") {
		ids = append(ids, behaviour.Text(i, "instanceId"))
	}
	return ids
}

// members are the addresses that are in the load balancer's pool.
func (w world) members() []string {
	w.Helper()
	var ids []string
	for _, ref := range behaviour.Objects(w.get(pool), "properties.backendIPConfigurations") {
		ids = append(ids, strings.TrimPrefix(behaviour.Text(ref, "id"), set+"/virtualMachines/"))
	}
	return ids
}
