package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/key"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/testkit"
)

var outboundBalancer = testkit.Group.Resource(network.LoadBalancers, "out")

// outboundCluster is a cluster with two machines that have their outbound traffic from a load balancer with an outbound rule.
func outboundCluster(t *testing.T) *serviceCluster {
	t.Helper()
	w := newServiceCluster(t, core.Options{Latency: 1}, 0)
	address := testkit.Group.Resource(network.PublicIPAddresses, "out-pip")
	w.put(address, `{"location":"`+testkit.Location+`","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}}`)
	frontend, pool := outboundBalancer.Child("frontendIPConfigurations", "out-0"), outboundBalancer.Child(network.BackendAddressPools, "nodes")
	w.put(outboundBalancer, fmt.Sprintf(`{"location":%q,"sku":{"name":"Standard"},"properties":{
		"frontendIPConfigurations":[{"name":"out-0","properties":{"publicIPAddress":{"id":%q}}}],
		"backendAddressPools":[{"name":"nodes"}],
		"outboundRules":[{"name":"outbound","properties":{"frontendIPConfigurations":[{"id":%q}],"backendAddressPool":{"id":%q},
			"protocol":"All","enableTcpReset":true,"idleTimeoutInMinutes":4}}]}}`, testkit.Location, address, frontend, pool))
	for _, name := range []string{"m0", "m1"} {
		w.AddMachine(testkit.VirtualMachine{Name: name})
		nic := testkit.Group.Resource(network.Interfaces, name+"-nic")
		body, err := w.Client.Get(t.Context(), nic)
		if err != nil {
			t.Fatal(err)
		}
		joined := fmt.Sprintf(`"primary":true,"loadBalancerBackendAddressPools":[{"id":%q}]`, pool)
		w.put(nic, strings.Replace(string(body), `"primary":true`, joined, 1))
	}
	for _, vm := range testkit.List[compute.Instance](w.Azure, testkit.Group, compute.VirtualMachines) {
		w.addMachineNode(vm)
	}
	w.Forget()
	return w
}

// atOutbound is a controller whose load balancer is the one with the outbound rule.
func atOutbound() service.Config {
	c := config()
	c.LoadBalancer.LoadBalancerName, c.LoadBalancer.DisableOutboundSNAT = outboundBalancer.Name(), true
	return c
}

// TestMachinesInAnotherLoadBalancer checks that a Service without members says why, as its nodes and an explanation do, and
// that it gets members when the controller uses the load balancer of the machines. Its address stays.
func TestMachinesInAnotherLoadBalancer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := outboundCluster(t)
		stop := w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		const cause = "it is in pool nodes of load balancer out already"
		w.warnedOnce("web", problem.NoNodes, "no node is in backend pool", "node m0", cause)
		w.warnedOnce("m0", problem.NotJoined, cause)
		w.warnedOnce("m1", problem.NotJoined, cause)
		if text := w.explain("web").String(); !strings.Contains(text, cause) {
			t.Errorf("the explanation is %s", text)
		}
		before := w.address("web")
		stop()

		w.start(atOutbound())
		w.settle()
		if got := w.backendsOf(outboundBalancer); !slices.Equal(got, []string{"m0", "m0", "m1", "m1"}) {
			t.Errorf("in the pools are %v", got)
		}
		if _, there := testkit.Read[network.LoadBalancer](w.Azure, testkit.LoadBalancer); there || w.address("web") != before {
			t.Errorf("the former load balancer is there: %v, and the address %s was %s", there, w.address("web"), before)
		}
	})
}

// TestOutboundRuleStays checks that the load balancer with an outbound rule is as it was after its last Service, also after one
// with the address of the outbound traffic.
func TestOutboundRuleStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := outboundCluster(t)
		facts := func() string {
			p := testkit.Must[network.LoadBalancer](w.Azure, outboundBalancer).Properties
			var all []string
			for _, fe := range p.FrontendIPConfigurations {
				all = append(all, "frontend "+fe.Name+" "+fe.Properties.PublicIPAddress.To().Name())
			}
			for _, r := range p.OutboundRules {
				all = append(all, "rule "+r.Name, "of "+fmt.Sprint(azure.References(r.Properties)))
			}
			for _, c := range p.BackendAddressPools[0].Properties.BackendIPConfigurations {
				all = append(all, p.BackendAddressPools[0].Name+" "+c.ID.Parent().Name())
			}
			return strings.Join(append(all, fmt.Sprint(len(p.LoadBalancingRules), " rules")), "\n")
		}
		before := facts()
		w.start(atOutbound())
		w.create(w.newService("web", 80))
		shared := w.newService("shared", 81)
		metav1.SetMetaDataAnnotation(&shared.ObjectMeta, key.PublicIPName.Name, "out-pip")
		w.create(shared)
		w.served("web")
		w.served("shared")
		w.settle()
		if got := w.backendsOf(outboundBalancer); !slices.Equal(got, []string{"m0", "m0", "m1", "m1"}) {
			t.Errorf("in the pools are %v", got)
		}
		w.remove("web")
		w.remove("shared")
		w.settle()
		if after := facts(); !w.gone("web") || !w.gone("shared") || after != before {
			t.Errorf("it was\n%s\nand is\n%s", before, after)
		}
	})
}
