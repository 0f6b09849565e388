package service_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// A failed resource can refer to another failed resource: here a frontend's subnet, and the subnet's security group.
// Nothing that a Service still asks for writes either of them. Azure takes the subnet only when the security group is
// not failed any more.
func TestWhatFailedBehindWhatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		subnet := testkit.VNet.Child("subnets", "nodes")
		w.fail(subnet, network.Subnets)
		w.fail(testkit.SecurityGroup, network.SecurityGroups)
		w.start(config())
		inside := w.newService("inside", 80)
		annotated("load-balancer-internal", "true")(inside)
		w.create(inside)
		w.served("inside")
		for _, id := range []azure.ID{subnet, testkit.SecurityGroup} {
			type state struct {
				ProvisioningState string `json:"provisioningState"`
			}
			if got := testkit.Must[state](w.Azure, id).Properties.ProvisioningState; got != "Succeeded" {
				t.Errorf("%s is %s", id, got)
			}
		}
	})
}

// A subnet has to be prepared for a private link service. Azure refuses that while the subnet's security group is
// failed, before anything is asked of a load balancer.
func TestWhatFailedBehindASubnet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		w.fail(testkit.SecurityGroup, network.SecurityGroups)
		w.start(config())
		linked := w.newService("linked", 80)
		annotated("load-balancer-internal", "true", "pls-create", "true")(linked)
		w.create(linked)
		w.served("linked")
	})
}

// A failed load balancer blocks the private link service at it, though nothing else is to be written to the load
// balancer.
func TestALoadBalancerThatFailedBehindAPrivateLinkService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t,
			core.Options{Faults: []core.Fault{{Method: "PUT", Type: network.LoadBalancers, Times: 1,
				Fault: core.FaultOperation, Code: "InternalServerError"}}}, 1)
		w.start(config())
		linked := w.newService("linked", 80)
		annotated("load-balancer-internal", "true", "pls-create", "true")(linked)
		w.create(linked)
		w.served("linked")
	})
}

// A subnet that failed leaves its network failed, and pools of addresses are in the network.
// Nothing else that the Service asks for has to do with the subnet.
func TestASubnetThatFailedInTheNetworkOfAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		w.fail(testkit.VNet.Child("subnets", "nodes"), network.Subnets)
		c := config()
		c.LoadBalancer.PoolByIP = true
		w.start(c)
		w.create(w.newService("web", 80))
		w.served("web")
	})
}

// fail leaves a resource as a write that Azure began and did not finish.
func (w *serviceCluster) fail(id azure.ID, fullType string) {
	w.t.Helper()
	client := w.OtherClient()
	doc, err := client.Get(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.SetFaults([]core.Fault{{Method: "PUT", Type: fullType, Times: 1, Fault: core.FaultOperation,
		Code: "InternalServerError"}}); err != nil {
		w.t.Fatal(err)
	}
	if _, err := client.Put(w.t.Context(), azure.Write{ID: id, Body: doc}); err == nil {
		w.t.Fatalf("the write of %s did not fail", id)
	}
}

// A document that Azure left failed, and that was written again, is not read with each later commit.
func TestARetriedWriteIsNotReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		look := func() int {
			w.touched("web")
			return len(w.Reads())
		}
		before := look()
		if err := w.SetFaults([]core.Fault{{Method: "PUT", Type: network.LoadBalancers, Times: 1, Fault: core.FaultOperation,
			Code: "InternalServerError"}}); err != nil {
			t.Fatal(err)
		}
		w.change("web", func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
		w.settle()
		if text := fmt.Sprint(w.Snapshot()); strings.Contains(text, `"provisioningState": "Failed"`) {
			t.Errorf("something is left half done:\n%s", text)
		}
		if after := look(); after > before {
			t.Errorf("a look takes %d reads, and took %d before", after, before)
		}
	})
}
