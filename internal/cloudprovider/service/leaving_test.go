package service_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// A node leaves the pool of a Service without floating IP. Load balancers send it packets until it has left, which
// may be minutes later if Azure is busy. The security group lets these packets through until then, and no longer.
func TestNodesAreOpenUntilTheyHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1}, 3)
		w.start(config())
		web := w.newService("web", 80)
		annotated("disable-load-balancer-floating-ip", "true")(web)
		w.create(web)
		w.served("web")
		w.settle()
		name := slices.Sorted(maps.Keys(w.nodesByName()))[0]
		address := w.nodesByName()[name].Status.Addresses[0].Address
		id := w.nodesByName()[name].Spec.ProviderID
		isIn := func() bool {
			lb := testkit.Must[network.LoadBalancer](w.Azure, testkit.LoadBalancer)
			return slices.ContainsFunc(lb.Properties.BackendAddressPools[0].Properties.BackendIPConfigurations,
				func(r azure.Reference) bool {
					return strings.Contains("azure://"+string(r.ID), id+"/")
				})
		}
		isOpen := func() bool {
			return strings.Contains(fmt.Sprint(w.Surroundings()[string(testkit.SecurityGroup)]), `"`+address+`"`)
		}
		if !isIn() || !isOpen() {
			t.Fatalf("%s is in the pool: %v, and open: %v", address, isIn(), isOpen())
		}
		busy := core.Fault{Method: "PUT", Type: "Microsoft.Compute/virtualMachineScaleSets/virtualMachines", Times: 3,
			Fault: core.FaultError, Status: 409, Code: "AnotherOperationInProgress"}
		if err := w.SetFaults([]core.Fault{busy}); err != nil {
			t.Fatal(err)
		}
		w.exclude(name, "true")
		left := 0
		for range 120 {
			<-time.After(5 * time.Second)
			if in, open := isIn(), isOpen(); in && !open {
				t.Fatal("it is in the pool and gets packets that no rule lets through")
			} else if !in {
				left++
			}
		}
		w.settle()
		if left == 0 || isIn() || isOpen() {
			t.Errorf("when all is done it is in the pool: %v, and open: %v", isIn(), isOpen())
		}
	})
}
