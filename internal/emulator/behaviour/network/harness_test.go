package network_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/emulator"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/network"
	"kaz/internal/emulator/behaviour/resources"
)

const (
	subscription = "/subscriptions/" + emulator.DefaultSubscription
	group        = subscription + "/resourceGroups/rg"
	net          = group + "/providers/Microsoft.Network"
)

// cloud is a local Azure with the network types, and just enough of compute to
// have machines and scale sets that use them.
type cloud struct {
	testing.TB
	azure  *emulator.Emulator
	client *http.Client
}

func start(t testing.TB) cloud {
	t.Helper()
	return startWith(t, emulator.Options{})
}

func startWith(t testing.TB, o emulator.Options) cloud {
	t.Helper()
	o.Providers = []behaviour.Provider{resources.Provider(), network.Provider(), machines()}
	e, err := emulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	c := cloud{t, e, &http.Client{Transport: e.Transport()}}
	c.put(group, `{"location":"eastus"}`)
	return c
}

// machines are types that only store what they are given; scale sets and their instances
// take their time, as Azure's do.
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
	}}
}

// answer is a reply as the tests look at it.
type answer struct {
	status int
	header http.Header
	body   behaviour.Object
}

// code is the error code of a refusal, and its only detail's.
func (a answer) code() string {
	for _, path := range []string{"error.", ""} {
		if code := behaviour.Text(a.body, path+"code"); code != "" {
			if details := behaviour.Objects(a.body, path+"details"); len(details) == 1 {
				code += "/" + behaviour.Text(details[0], "code")
			}
			return code
		}
	}
	return ""
}

func (c cloud) do(method, path, body string, header ...string) answer {
	c.Helper()
	if !strings.Contains(path, "api-version=") {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		path += separator + "api-version=2025-05-01"
	}
	request, err := http.NewRequestWithContext(c.Context(), method, "http://azure"+path, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	reply, err := c.client.Do(request)
	if err != nil {
		c.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		c.Fatal(err)
	}
	got := answer{status: reply.StatusCode, header: reply.Header}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &got.body); err != nil {
			c.Fatalf("%s %s: %d is not JSON: %v\n%s", method, path, reply.StatusCode, err, text)
		}
	}
	return got
}

// put writes a resource and sees its operation end well.
func (c cloud) put(path, body string) behaviour.Object {
	c.Helper()
	got := c.do("PUT", path, body)
	if got.status >= http.StatusMultipleChoices {
		c.Fatalf("PUT %s: %d %v", path, got.status, got.body)
	}
	c.ended(path, got)
	return c.get(path)
}

// ended sees that the operation a reply started has ended well.
func (c cloud) ended(path string, started answer) {
	c.Helper()
	poll := started.header.Get("Azure-AsyncOperation")
	if poll == "" {
		return
	}
	_, at, _ := strings.Cut(poll, "//")
	if got := c.do("GET", at[strings.IndexByte(at, '/'):], ""); behaviour.Text(got.body, "status") != "Succeeded" {
		c.Fatalf("operation on %s: %d %v", path, got.status, got.body)
	}
}

func (c cloud) get(path string) behaviour.Object {
	c.Helper()
	got := c.do("GET", path, "")
	if got.status != http.StatusOK {
		c.Fatalf("GET %s: %d %v", path, got.status, got.body)
	}
	return got.body
}

// delete deletes a resource and sees that it is gone.
func (c cloud) delete(path string) {
	c.Helper()
	got := c.do("DELETE", path, "")
	if got.status >= http.StatusMultipleChoices {
		c.Fatalf("DELETE %s: %d %v", path, got.status, got.body)
	}
	c.ended(path, got)
	if left := c.do("GET", path, ""); left.status != http.StatusNotFound {
		c.Fatalf("GET %s after its delete: %d %v", path, left.status, left.body)
	}
}

// refused sends a request that has to be refused.
func (c cloud) refused(method, path, body string, status int, code string) answer {
	c.Helper()
	got := c.do(method, path, body)
	if got.status != status || got.code() != code {
		c.Errorf("%s %s %s\n got %d %s\nwant %d %s\n%v", method, path, body, got.status, got.code(), status, code, got.body)
	}
	return got
}

// has checks that a document has what want has, and only the elements of its
// arrays.
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

// absent checks that a document has nothing at the paths.
func (c cloud) absent(doc behaviour.Object, paths ...string) {
	c.Helper()
	for _, path := range paths {
		if v := behaviour.At(doc, path); v != nil {
			c.Errorf("%s has %s: %v", doc["id"], path, v)
		}
	}
}

// refs are the last names in a list of references.
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

// network makes a virtual network with one subnet of both families.
func (c cloud) network() {
	c.Helper()
	c.put(vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16","fd00:1::/48"]},
		"subnets":[{"name":"nodes","properties":{"addressPrefixes":["10.0.0.0/24","fd00:1::/64"]}}]}}`)
}

// nicBody is a network interface with one IP configuration in the subnet.
func nicBody(properties string) string {
	return `{"location":"eastus","properties":{"ipConfigurations":[{"name":"c","properties":{"subnet":` + ref(subnet) + properties + `}}]}}`
}

// balancerBody is a public load balancer with a frontend, a pool and the parts.
func balancerBody(parts string) string {
	return `{` + standard + `,"properties":{"frontendIPConfigurations":[{"name":"f","properties":{"publicIPAddress":` + ref(publicIP) + `}}],
		"backendAddressPools":[{"name":"pool"}]` + parts + `}}`
}

// rule is a load balancing rule of balancerBody.
func rule(name, more string) string {
	return `{"name":"` + name + `","properties":{"frontendIPConfiguration":` + ref(frontend) + `,"backendAddressPool":` + ref(pool) + `,` + more + `}}`
}

// marshal is a value as JSON.
func marshal(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withoutEtags is a value with the etags taken out.
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
