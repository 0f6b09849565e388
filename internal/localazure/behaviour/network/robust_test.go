package network_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
)

// FuzzBodies sends any JSON as any resource. The reply is a resource or an error of the client, never a failure of the
// server.
func FuzzBodies(f *testing.F) {
	paths := []string{publicIP, net + "/publicIPPrefixes/p", vnet, subnet, vnet + "/virtualNetworkPeerings/p", nsg, nsg +
		"/securityRules/r", table,
		table + "/routes/r", nic, balancer, pool, balancer + "/inboundNatRules/n", net + "/natGateways/g", service, endpoint,
		endpoint + "/privateDnsZoneGroups/g", net + "/ipGroups/g", inside, link, inside + "/A/www", inside + "/CNAME/c", public,
		public + "/TXT/t"}
	for i := range paths {
		for _, body := range []string{
			`{}`, `{"location":"eastus","properties":{}}`, `{"location":1,"sku":"Standard","properties":"x"}`,
			`{"location":"eastus","sku":{"name":3},"zones":"1","tags":[],"properties":{"ipConfigurations":"x","subnets":[1],
				"securityRules":{},"routes":[null],
				"frontendIPConfigurations":[{"name":"f","properties":{"subnet":"x","publicIPAddress":[]}}],
				"backendAddressPools":[{"name":"p","properties":[]}]}}`,
			balancerBody(`,"loadBalancingRules":[` + rule("r", `"protocol":"Tcp","frontendPort":1.5,"backendPort":"80"`) + `]`),
			nicBody(`,"primary":"yes","privateIPAddress":7`), serviceBody(subnet), endpointBody(service, `,"groupIds":{}`),
			`{"properties":{"ttl":"60","aRecords":{"ipv4Address":"x"},"cnameRecord":[],"txtRecords":[[]]}}`,
			`{"properties":{"addressPrefixes":[1,"10.0.0.0/24"],"addressSpace":{"addressPrefixes":"10.0.0.0/8"},
				"remoteVirtualNetwork":{"id":7}}}`,
		} {
			f.Add(i, body)
		}
	}
	f.Fuzz(func(t *testing.T, i int, body string) {
		if i < 0 || i >= len(paths) || !json.Valid([]byte(body)) {
			return
		}
		c := start(t)
		c.linkable()
		c.put(publicIP, staticIP)
		c.put(nsg, `{"location":"eastus"}`)
		c.put(table, `{"location":"eastus"}`)
		c.put(inside, `{"location":"global"}`)
		c.put(public, `{"location":"global"}`)
		got := c.do("PUT", paths[i], body)
		if got.Status >= http.StatusInternalServerError {
			t.Fatalf("PUT %s %s: %d %v", paths[i], body, got.Status, got.Body)
		}
		if read := c.do("GET", paths[i], ""); read.Status >= http.StatusInternalServerError {
			t.Fatalf("GET %s after %s: %d %v", paths[i], body, read.Status, read.Body)
		}
	})
}

// BenchmarkLoadBalancerOf250Services writes and reads the load balancer of a busy
// cluster.
func BenchmarkLoadBalancerOf250Services(b *testing.B) {
	c := start(b)
	c.network()
	c.put(subnet, `{"properties":{"addressPrefix":"10.0.0.0/20"}}`)
	frontends, rules := "", ""
	for i := range 250 {
		comma := ","
		if i == 0 {
			comma = ""
		}
		frontends += fmt.Sprintf(`%s{"name":"f%d","properties":{"subnet":%s}}`, comma, i, ref(subnet))
		for _, protocol := range []string{"Tcp", "Udp"} {
			rules += fmt.Sprintf(`%s{"name":"r%d%s","properties":{"frontendIPConfiguration":%s,"backendAddressPool":%s,"protocol":"%s",
				"frontendPort":80,"backendPort":80,"enableFloatingIP":true}}`,
				comma, i, protocol, ref(fmt.Sprintf("%s/frontendIPConfigurations/f%d", balancer, i)), ref(pool), protocol)
			comma = ","
		}
	}
	body := `{` + standard + `,"properties":{"frontendIPConfigurations":[` + frontends +
		`],"backendAddressPools":[{"name":"pool"}],"loadBalancingRules":[` + rules + `]}}`
	c.put(balancer, body)
	b.Run("put", func(b *testing.B) {
		for b.Loop() {
			c.do("PUT", balancer, body)
		}
	})
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			c.do("GET", balancer, "")
		}
	})
}
