package cluster_test

import (
	"fmt"
	"maps"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure/network"
)

// routed waits until the route table has exactly the routes to the pod CIDRs of every node. Each route leads to the node's
// address of the same family. It also waits until the nodes report their routes.
func (c *cluster) routed() {
	c.t.Helper()
	took := wait(c.t, machineGone, "routes to the pods of all nodes", func() string {
		want := map[string]string{}
		for _, n := range c.nodes() {
			if n.Spec.PodCIDR == "" || condition(n, corev1.NodeNetworkUnavailable) != corev1.ConditionFalse {
				return fmt.Sprintf("%s: pod CIDR %q, conditions %v", n.Name, n.Spec.PodCIDR, n.Status.Conditions)
			}
			for _, cidr := range n.Spec.PodCIDRs {
				want[cidr] = internalIP(n, netip.MustParsePrefix(cidr).Addr().Is6())
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

// internalIP is the address of a node in the virtual network, "" where it has none of
// the family.
func internalIP(n corev1.Node, six bool) string {
	for _, a := range n.Status.Addresses {
		ip, err := netip.ParseAddr(a.Address)
		if a.Type == corev1.NodeInternalIP && err == nil && ip.Is6() == six {
			return a.Address
		}
	}
	return ""
}
