package network_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/network"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/core"
)

const (
	subscription = behaviourtest.Subscription
	group        = behaviourtest.Group
	net          = group + "/providers/Microsoft.Network"
)

// cloud is a local Azure with the network types and simple types of machines and scale sets.
type cloud struct {
	testing.TB
	azure *behaviourtest.Azure
}

func start(t testing.TB) cloud {
	t.Helper()
	return startWith(t, core.Options{})
}

func startWith(t testing.TB, o core.Options) cloud {
	t.Helper()
	o.Providers = []behaviour.Provider{resources.Provider(), network.Provider(), machines()}
	return cloud{t, behaviourtest.StartWith(t, o)}
}

// machines returns types that store their request unchanged. Scale sets and their instances have operations, as Azure's
// do.
func machines() behaviour.Provider {
	plain, slow := behaviour.Plain("test"), behaviour.Compute()
	const scaleSets = "Microsoft.Compute/virtualMachineScaleSets"
	return behaviour.Provider{Types: []behaviour.Type{
		{Name: "Microsoft.Compute/virtualMachines", Style: plain, Where: behaviour.Located},
		{Name: scaleSets, Style: slow, Where: behaviour.Located},
		{Name: scaleSets + "/virtualMachines", Style: slow, Where: behaviour.Located},
		{Name: scaleSets + "/virtualMachines/networkInterfaces", Style: plain, Where: behaviour.Anywhere},
		{Name: scaleSets + "/virtualMachines/networkInterfaces/ipConfigurations", Style: plain, Inline: "properties.ipConfigurations"},
		{Name: "Microsoft.Storage/storageAccounts", Style: plain, Where: behaviour.Located},
		{Name: "Microsoft.ContainerRegistry/registries", Style: plain, Where: behaviour.Located},
	}}
}

func (c cloud) do(method, path, body string, header ...string) behaviourtest.Answer {
	c.Helper()
	return c.azure.Request(method, path, body, header...)
}

// put writes a resource, waits for its operation and returns the resource.
func (c cloud) put(path, body string) behaviour.Object {
	c.Helper()
	got := c.do("PUT", path, body)
	if got.Status >= http.StatusMultipleChoices {
		c.Fatalf("PUT %s: %d %v", path, got.Status, got.Body)
	}
	c.ended(path, got)
	return c.get(path)
}

// ended checks that the operation of a reply has succeeded.
func (c cloud) ended(path string, started behaviourtest.Answer) {
	c.Helper()
	poll := started.Header.Get("Azure-AsyncOperation")
	if poll == "" {
		return
	}
	if got := c.do("GET", poll, ""); behaviour.Text(got.Body, "status") != "Succeeded" {
		c.Fatalf("operation on %s: %d %v", path, got.Status, got.Body)
	}
}

func (c cloud) get(path string) behaviour.Object {
	c.Helper()
	got := c.do("GET", path, "")
	if got.Status != http.StatusOK {
		c.Fatalf("GET %s: %d %v", path, got.Status, got.Body)
	}
	return got.Body
}

// delete deletes a resource and checks that it is gone.
func (c cloud) delete(path string) {
	c.Helper()
	got := c.do("DELETE", path, "")
	if got.Status >= http.StatusMultipleChoices {
		c.Fatalf("DELETE %s: %d %v", path, got.Status, got.Body)
	}
	c.ended(path, got)
	if left := c.do("GET", path, ""); left.Status != http.StatusNotFound {
		c.Fatalf("GET %s after its delete: %d %v", path, left.Status, left.Body)
	}
}

// refused sends a request that must fail.
func (c cloud) refused(method, path, body string, status int, code string) behaviourtest.Answer {
	c.Helper()
	got := c.do(method, path, body)
	if got.Status != status || got.Code() != code {
		c.Errorf("%s %s %s\n got %d %s\nwant %d %s\n%v", method, path, body, got.Status, got.Code(), status, code, got.Body)
	}
	return got
}

// has checks that a document has all values of want, and no other elements in its arrays.
func (c cloud) has(got any, want string) {
	c.Helper()
	var wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		c.Fatalf("%v in %s", err, want)
	}
	if where := differs("", got, wanted); where != "" {
		text, _ := json.Marshal(got)
		c.Errorf("at %s: want %s\n got %s", where, want, text)
	}
}

func differs(at string, got, want any) string {
	switch w := want.(type) {
	case behaviour.Object:
		g, ok := got.(behaviour.Object)
		if !ok {
			return at + " (no object)"
		}
		for key, value := range w {
			if where := differs(at+"."+key, g[key], value); where != "" {
				return where
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return at + " (not as many elements)"
		}
		for i := range w {
			if where := differs(at, g[i], w[i]); where != "" {
				return where
			}
		}
		return ""
	}
	if !behaviour.Equal(got, want) {
		return at
	}
	return ""
}

// absent checks that a document has no values at the paths.
func (c cloud) absent(doc behaviour.Object, paths ...string) {
	c.Helper()
	for _, path := range paths {
		if v := behaviour.At(doc, path); v != nil {
			c.Errorf("%s has %s: %v", doc["id"], path, v)
		}
	}
}

// refs returns the last names in a list of references.
func refs(doc behaviour.Object, path string) string {
	var names []string
	for _, o := range behaviour.Objects(doc, path) {
		names = append(names, azure.ID(behaviour.Text(o, "id")).Name())
	}
	return strings.Join(names, " ")
}

func ref(path string) string { return `{"id":"` + path + `"}` }

// Resources that many tests need.
const (
	vnet      = net + "/virtualNetworks/vnet"
	subnet    = vnet + "/subnets/nodes"
	publicIP  = net + "/publicIPAddresses/ip"
	balancer  = net + "/loadBalancers/lb"
	frontend  = balancer + "/frontendIPConfigurations/f"
	pool      = balancer + "/backendAddressPools/pool"
	nic       = net + "/networkInterfaces/nic"
	nsg       = net + "/networkSecurityGroups/nsg"
	table     = net + "/routeTables/table"
	standard  = `"location":"eastus","sku":{"name":"Standard"}`
	staticIP  = `{` + standard + `,"properties":{"publicIPAllocationMethod":"Static"}}`
	staticIP6 = `{` + standard + `,"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv6"}}`
)

// network creates a virtual network with one subnet of both families.
func (c cloud) network() {
	c.Helper()
	c.put(vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16","fd00:1::/48"]},
		"subnets":[{"name":"nodes","properties":{"addressPrefixes":["10.0.0.0/24","fd00:1::/64"]}}]}}`)
}

// nicBody returns a network interface with one IP configuration in the subnet.
func nicBody(properties string) string {
	return `{"location":"eastus","properties":{"ipConfigurations":[{"name":"c","properties":{"subnet":` + ref(subnet) + properties + `}}]}}`
}

// balancerBody returns a public load balancer with a frontend, a pool and the parts.
func balancerBody(parts string) string {
	return `{` + standard + `,"properties":{"frontendIPConfigurations":[{"name":"f","properties":{"publicIPAddress":` +
		ref(publicIP) + `}}],
		"backendAddressPools":[{"name":"pool"}]` + parts + `}}`
}

// rule returns a load balancing rule of balancerBody.
func rule(name, more string) string {
	return `{"name":"` + name + `","properties":{"frontendIPConfiguration":` + ref(frontend) + `,"backendAddressPool":` + ref(pool) +
		`,` + more + `}}`
}

// marshal returns a value as JSON.
func marshal(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withoutEtags returns a value without etags.
func withoutEtags(value any) any {
	value = behaviour.Clone(value)
	var walk func(any)
	walk = func(v any) {
		switch x := v.(type) {
		case behaviour.Object:
			delete(x, "etag")
			for _, inner := range x {
				walk(inner)
			}
		case []any:
			for _, inner := range x {
				walk(inner)
			}
		}
	}
	walk(value)
	return value
}
