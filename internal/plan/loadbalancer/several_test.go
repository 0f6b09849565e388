package loadbalancer_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	azurecompute "kaz/internal/azure/compute"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// TestMachinesAreReadWhereTheirSetCounts checks that virtual machines are read only if nodes are placed by their sets.
// Only the machine's document names the set of a machine that is no scale set's instance.
func TestMachinesAreReadWhereTheirSetCounts(t *testing.T) {
	alone := &v1.Node{Spec: v1.NodeSpec{ProviderID: "azure:///subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/f0"}}
	several := config()
	several.PoolByIP = true
	several.Balancers = []loadbalancer.Balancer{{Name: "kubernetes", PrimaryVMSet: "fx"}}
	single := config()
	single.PoolByIP = true
	for name, c := range map[string]struct {
		config loadbalancer.Config
		nodes  []*v1.Node
		want   bool
	}{
		"several, machines of their own": {several, []*v1.Node{alone}, true},
		"several, instances":             {several, machines(1), false},
		"one":                            {single, []*v1.Node{alone}, false},
	} {
		_, lists := loadbalancer.Needs(loadbalancer.Input{Config: c.config, Nodes: c.nodes, Have: plan.NewSnapshot()})
		if got := slices.ContainsFunc(lists, func(q azure.Query) bool { return q.Type == azurecompute.VirtualMachines }); got != c.want {
			t.Errorf("%s: machines are read: %v", name, got)
		}
	}
}
