package service_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// If Azure drops the members that come with a new load balancer, they are there before the Service shows its address.
// If Azure keeps them, the check costs no request.
func TestACreationThatDropsPoolAddresses(t *testing.T) {
	drops := core.Fault{Method: "PUT", Type: network.LoadBalancers, Fault: core.FaultDrop,
		Path: "properties.backendAddressPools.properties.loadBalancerBackendAddresses"}
	for name, test := range map[string]struct {
		faults []core.Fault
		writes []string
	}{
		"kept": {nil, []string{"PUT kubernetes-a3d2c1b0a11112222333300000000001", "PUT kubernetes", "PUT nsg"}},
		"dropped": {[]core.Fault{drops},
			[]string{"PUT kubernetes-a3d2c1b0a11112222333300000000001", "PUT kubernetes", "PUT nsg", "PUT kubernetes"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{}, 2)
				c := config()
				c.LoadBalancer.PoolByIP = true
				if err := w.SetFaults(test.faults); err != nil {
					t.Fatal(err)
				}
				w.start(c)
				w.create(w.newService("web", 80))
				w.served("web")
				lb := testkit.Must[network.LoadBalancer](w.Azure, testkit.LoadBalancer)
				for _, p := range lb.Properties.BackendAddressPools {
					if got := len(p.Properties.LoadBalancerBackendAddresses); got != 2 {
						t.Errorf("pool %s has %d members when the Service has its address, want 2", p.Name, got)
					}
				}
				w.settle()
				if d := cmp.Diff(count(test.writes), count(w.Writes())); d != "" {
					t.Errorf("writes (-want +got):\n%s", d)
				}
				const all = 11 // as many as without a second look
				if reads := w.Reads(); len(reads) != all {
					t.Errorf("%d reads, want %d: %v", len(reads), all, reads)
				}
			})
		})
	}
}
