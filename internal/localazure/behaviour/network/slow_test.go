package network_test

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/core"
)

// TestReferenceToUnfinishedAddress writes a load balancer during the creation of its address. The error has the text in
// which controllers look for the address.
func TestReferenceToUnfinishedAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startWith(t, core.Options{Latency: 1})
		if got := c.do("PUT", publicIP, staticIP); behaviour.Text(got.Body, "properties.provisioningState") != "Updating" {
			t.Fatalf("new address: %v", got.Body)
		}
		got := c.refused("PUT", balancer, balancerBody(""), 429, "RetryableError/ReferencedResourceNotProvisioned")
		message := behaviour.Text(behaviour.Objects(got.Body, "error.details")[0], "message")
		address := regexp.MustCompile(
			`/subscriptions/(?:.*)/resourceGroups/(.*)/providers/Microsoft.Network/publicIPAddresses/([^\s]+)(?:.*)`)
		found := address.FindStringSubmatch(message)
		if len(found) != 3 || found[2] != "ip" {
			t.Errorf("the address in %q: %q", message, found)
		}
		<-time.After(time.Minute)
		if behaviour.Text(c.get(publicIP), "properties.ipAddress") == "" {
			t.Errorf("an address that is ready: %v", c.get(publicIP))
		}
		if got := c.do("PUT", balancer, balancerBody("")); got.Status != 201 {
			t.Errorf("load balancer with a ready address: %d %v", got.Status, got.Body)
		}
	})
}

// TestNewerWriteSupersedes writes a table during its write, which cancels the first operation.
func TestNewerWriteSupersedes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startWith(t, core.Options{Latency: 1})
		first := c.do("PUT", table, `{"location":"eastus"}`)
		c.do("PUT", table,
			`{"location":"eastus","properties":{"routes":[{"name":"r","properties":{"addressPrefix":"10.0.0.0/24",
				"nextHopType":"None"}}]}}`)
		c.has(c.get(first.Header.Get("Azure-AsyncOperation")[len("http://azure"):]),
			`{"status":"Canceled","error":{"details":[{"code":"CanceledAndSupersededDueToAnotherOperation"}]}}`)
		<-time.After(time.Minute)
		c.has(c.get(table),
			`{"properties":{"provisioningState":"Succeeded","routes":[{"name":"r","properties":{"provisioningState":"Succeeded"}}]}}`)
	})
}

// TestDeletedLoadBalancerGetsNoPrivateLinkService deletes a load balancer during the creation of its private link
// service. No service without a frontend is left.
func TestDeletedLoadBalancerGetsNoPrivateLinkService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startWith(t, core.Options{Latency: 1})
		c.do("PUT", vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},
			"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/24","privateLinkServiceNetworkPolicies":"Disabled"}}]}}`)
		<-time.After(time.Minute)
		c.do("PUT", balancer, `{`+standard+`,"properties":{"frontendIPConfigurations":[{"name":"f","properties":{"subnet":`+
			ref(subnet)+`}}]}}`)
		if got := c.do("DELETE", balancer, ""); got.Status != 202 {
			t.Fatalf("deletion: %d %v", got.Status, got.Body)
		}
		c.refused("PUT", service, serviceBody(subnet), 429, "RetryableError/ReferencedResourceNotProvisioned")
		<-time.After(time.Minute)
		c.refused("PUT", service, serviceBody(subnet), 400, "InvalidResourceReference")
	})
}

// TestWriteDuringScaleSetWrite writes load balancers during the write of a scale set. A write is refused for load balancers with
// machines of the scale set, now or later, in their pools. It is allowed for other load balancers, and during the write
// of a single instance.
func TestWriteDuringScaleSetWrite(t *testing.T) {
	const other, busy = net + "/loadBalancers/other", "AnotherOperationInProgress"
	model := func(pools string) string {
		return `{"location":"eastus","properties":{"virtualMachineProfile":{"networkProfile":{"networkInterfaceConfigurations":[{
			"name":"n","properties":{"ipConfigurations":[
			{"name":"c","properties":{"loadBalancerBackendAddressPools":[` + pools + `]}}]}}]}}}}`
	}
	synctest.Test(t, func(t *testing.T) {
		c := startWith(t, core.Options{Latency: 1})
		rest := func() { <-time.After(10 * time.Minute) }
		write := func(path, body string, status int) behaviourtest.Answer {
			t.Helper()
			got := c.do("PUT", path, body)
			if got.Status != status {
				t.Errorf("PUT %s: %d %v, want %d", path, got.Status, got.Body, status)
			}
			return got
		}
		write(publicIP, staticIP, 201)
		rest()
		write(balancer, balancerBody(""), 201)
		write(other, `{`+standard+`}`, 201)
		write(scaleSet, model(ref(pool)), 201)
		got := c.refused("PUT", balancer, balancerBody(""), 409, busy)
		if _, present := got.Header["Retry-After"]; present {
			t.Error("the error has a Retry-After")
		}
		_, poll, _ := strings.Cut(behaviour.Text(got.Body, "error.message"), "use uri: http://azure")
		c.has(c.get(strings.TrimSuffix(poll, ".")), `{"status":"InProgress"}`)
		c.refused("PUT", pool, `{"properties":{}}`, 409, busy)
		write(other, `{`+standard+`}`, 200)
		rest()
		write(balancer, balancerBody(""), 200)
		instance := scaleSet + "/virtualMachines/0"
		write(instance, `{"location":"eastus"}`, 201)
		write(balancer, balancerBody(""), 200)
		rest()
		write(instanceNIC, `{"properties":{"ipConfigurations":[{"name":"c","properties":{"loadBalancerBackendAddressPools":[`+ref(pool)+
			`]}}]}}`, 201)
		write(scaleSet, model(""), 200)
		c.refused("PUT", balancer, balancerBody(""), 409, busy)
	})
}
