package cluster_test

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure/network"
)

// routed waits until the route table leads to the pods of every node, and nowhere
// else, and the nodes say so.
func (c *cluster) routed() {
	c.t.Helper()
	took := wait(c.t, machineGone, "routes to the pods of all nodes", func() string {
		want := map[string]string{}
		for _, n := range c.nodes() {
			if n.Spec.PodCIDR == "" || condition(n, corev1.NodeNetworkUnavailable) != corev1.ConditionFalse {
				return fmt.Sprintf("%s: pod CIDR %q, conditions %v", n.Name, n.Spec.PodCIDR, n.Status.Conditions)
			}
			for _, a := range n.Status.Addresses {
				if a.Type == corev1.NodeInternalIP {
					want[n.Spec.PodCIDR] = a.Address
				}
			}
		}
		got := map[string]string{}
		table := read[network.RouteTable](c, c.group().Resource(network.RouteTables, "kaz-routes"))
		for _, r := range table.Properties.Routes {
			got[r.Properties.AddressPrefix] = r.Properties.NextHopIPAddress
		}
		if !maps.Equal(got, want) {
			return fmt.Sprintf("%v, want %v", got, want)
		}
		return ""
	})
	c.t.Logf("routes in step with the nodes after %s", took.Round(10*time.Millisecond))
}
