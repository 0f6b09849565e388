package network_test

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/emulator"
	"kaz/internal/emulator/behaviour"
)

// TestWhatIsNotReadyCannotBeUsed: while an address is being made, a load balancer
// that names it is told to come back, in words in which controllers look for it.
func TestWhatIsNotReadyCannotBeUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startWith(t, emulator.Options{Latency: 1})
		if got := c.do("PUT", publicIP, staticIP); behaviour.Text(got.body, "properties.provisioningState") != "Updating" {
			t.Fatalf("new address: %v", got.body)
		}
		got := c.refused("PUT", balancer, balancerBody(""), 429, "RetryableError/ReferencedResourceNotProvisioned")
		message := behaviour.Text(behaviour.Objects(got.body, "error.details")[0], "message")
		found := regexp.MustCompile(`/subscriptions/(?:.*)/resourceGroups/(.*)/providers/Microsoft.Network/publicIPAddresses/([^\s]+)(?:.*)`).FindStringSubmatch(message)
		if len(found) != 3 || found[2] != "ip" {
			t.Errorf("the address in %q: %q", message, found)
		}
		<-time.After(time.Minute)
		if behaviour.Text(c.get(publicIP), "properties.ipAddress") == "" {
			t.Errorf("an address that is ready: %v", c.get(publicIP))
		}
		if got := c.do("PUT", balancer, balancerBody("")); got.status != 201 {
			t.Errorf("load balancer with a ready address: %d %v", got.status, got.body)
		}
	})
}

// TestANewerWriteSupersedes: a table that is written again while it is being written
// cancels the first operation.
func TestANewerWriteSupersedes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startWith(t, emulator.Options{Latency: 1})
		first := c.do("PUT", table, `{"location":"eastus"}`)
		c.do("PUT", table, `{"location":"eastus","properties":{"routes":[{"name":"r","properties":{"addressPrefix":"10.0.0.0/24","nextHopType":"None"}}]}}`)
		c.has(c.get(first.header.Get("Azure-AsyncOperation")[len("http://azure"):]), `{"status":"Canceled","error":{"details":[{"code":"CanceledAndSupersededDueToAnotherOperation"}]}}`)
		<-time.After(time.Minute)
		c.has(c.get(table), `{"properties":{"provisioningState":"Succeeded","routes":[{"name":"r","properties":{"provisioningState":"Succeeded"}}]}}`)
	})
}

// TestALoadBalancerThatGoesGetsNoPrivateLinkService: who deletes a load balancer while
// somebody else gives it a private link service does not leave one without a frontend.
func TestALoadBalancerThatGoesGetsNoPrivateLinkService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startWith(t, emulator.Options{Latency: 1})
		c.do("PUT", vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},
			"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/24","privateLinkServiceNetworkPolicies":"Disabled"}}]}}`)
		<-time.After(time.Minute)
		c.do("PUT", balancer, `{`+standard+`,"properties":{"frontendIPConfigurations":[{"name":"f","properties":{"subnet":`+ref(subnet)+`}}]}}`)
		if got := c.do("DELETE", balancer, ""); got.status != 202 {
			t.Fatalf("deletion: %d %v", got.status, got.body)
		}
		c.refused("PUT", service, serviceBody(subnet), 429, "RetryableError/ReferencedResourceNotProvisioned")
		<-time.After(time.Minute)
		c.refused("PUT", service, serviceBody(subnet), 400, "InvalidResourceReference")
	})
}

// TestNoWriteBesideThatOfAScaleSet: while a scale set is written that has, or will have,
// machines in a load balancer's pools, neither the load balancer nor a part of it can be
// written. One that has nothing to do with the scale set can, and so can all while a single
// instance is written.
func TestNoWriteBesideThatOfAScaleSet(t *testing.T) {
	const other, busy = net + "/loadBalancers/other", "AnotherOperationInProgress"
	model := func(pools string) string {
		return `{"location":"eastus","properties":{"virtualMachineProfile":{"networkProfile":{"networkInterfaceConfigurations":[{"name":"n","properties":{"ipConfigurations":[
			{"name":"c","properties":{"loadBalancerBackendAddressPools":[` + pools + `]}}]}}]}}}}`
	}
	synctest.Test(t, func(t *testing.T) {
		c := startWith(t, emulator.Options{Latency: 1})
		rest := func() { <-time.After(10 * time.Minute) }
		write := func(path, body string, status int) answer {
			t.Helper()
			got := c.do("PUT", path, body)
			if got.status != status {
				t.Errorf("PUT %s: %d %v, want %d", path, got.status, got.body, status)
			}
			return got
		}
		write(publicIP, staticIP, 201)
		rest()
		write(balancer, balancerBody(""), 201)
		write(other, `{`+standard+`}`, 201)
		write(scaleSet, model(ref(pool)), 201)
		got := c.refused("PUT", balancer, balancerBody(""), 409, busy)
		if _, told := got.header["Retry-After"]; told {
			t.Error("it tells when to come back")
		}
		_, poll, _ := strings.Cut(behaviour.Text(got.body, "error.message"), "use uri: http://azure")
		c.has(c.get(strings.TrimSuffix(poll, ".")), `{"status":"InProgress"}`)
		c.refused("PUT", pool, `{"properties":{}}`, 409, busy)
		write(other, `{`+standard+`}`, 200)
		rest()
		write(balancer, balancerBody(""), 200)
		instance := scaleSet + "/virtualMachines/0"
		write(instance, `{"location":"eastus"}`, 201)
		write(balancer, balancerBody(""), 200)
		rest()
		write(instanceNIC, `{"properties":{"ipConfigurations":[{"name":"c","properties":{"loadBalancerBackendAddressPools":[`+ref(pool)+`]}}]}}`, 201)
		write(scaleSet, model(""), 200)
		c.refused("PUT", balancer, balancerBody(""), 409, busy)
	})
}
