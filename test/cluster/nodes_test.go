package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/testkit"
)

// machineGone covers the lease of 20 s after which a node is NotReady, and the
// cloud-controller-manager's period of 5 s.
const machineGone = 90 * time.Second

// routeBack is the longest time until a route is back. The cloud-controller-manager trusts what it read of the route table
// for 120 s (routeTableCacheTTLInSeconds). Its period of 10 s and its write are added.
const routeBack = (120 + 10 + 20) * time.Second

// machines grows the scale set, deletes a machine, and stops and starts another one, all through
// Azure. It checks nodes, routes and members of the backend pool.
func machines(c *cluster) {
	_, err := c.apply(testkit.NewService("web", corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}))
	if err != nil {
		c.t.Fatal(err)
	}
	c.grow(4)
	c.routed()

	vms := c.instances()
	gone, off := vms[1], vms[2]
	c.act("delete", gone)
	c.act("deallocate", off)
	removed := wait(c.t, machineGone, "the end of node "+nodeOf(gone), func() string {
		if _, found := c.node(nodeOf(gone)); found {
			return "it is there"
		}
		return ""
	})
	shut := wait(c.t, machineGone, "the shutdown taint of node "+nodeOf(off), func() string {
		n, _ := c.node(nodeOf(off))
		if taint(n, "node.cloudprovider.kubernetes.io/shutdown") {
			return ""
		}
		return fmt.Sprintf("taints %v, conditions %v", n.Spec.Taints, n.Status.Conditions)
	})
	c.t.Logf("delete: node gone after %s; deallocate: shutdown taint after %s more", short(removed), short(shut))
	c.members(3)
	c.routed()

	c.act("start", off)
	back := wait(c.t, machineGone, "the return of node "+nodeOf(off), func() string {
		n, _ := c.node(nodeOf(off))
		if condition(n, corev1.NodeReady) == corev1.ConditionTrue && len(n.Spec.Taints) == 0 {
			return ""
		}
		return fmt.Sprintf("taints %v, conditions %v", n.Spec.Taints, n.Status.Conditions)
	})
	c.t.Logf("start: node ready and without taints after %s", short(back))
	c.removeAll("web")
}

func nodeOf(vm azure.Resource[compute.Instance]) string {
	return strings.ToLower(vm.Properties.OSProfile.ComputerName)
}

func (c *cluster) node(name string) (corev1.Node, bool) {
	c.t.Helper()
	nodes := c.nodes()
	i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == name })
	if i < 0 {
		return corev1.Node{}, false
	}
	return nodes[i], true
}

// grow makes the scale set larger and waits until its new machine is a node that
// gets traffic.
func (c *cluster) grow(to int) {
	began := time.Now()
	body := azure.Document(fmt.Sprintf(`{"sku":{"capacity":%d}}`, to))
	if _, err := c.azure.Patch(c.t.Context(), azure.Write{ID: c.scaleSet(), Body: body}); err != nil {
		c.t.Fatal(err)
	}
	wait(c.t, time.Minute, "a node for the new machine", func() string {
		nodes := c.nodes()
		for _, n := range nodes {
			if n.Spec.ProviderID == "" || len(n.Spec.Taints) > 0 || condition(n, corev1.NodeReady) != corev1.ConditionTrue {
				return fmt.Sprintf("%s: provider id %q, taints %v", n.Name, n.Spec.ProviderID, n.Spec.Taints)
			}
		}
		if len(nodes) != to {
			return fmt.Sprintf("%d nodes", len(nodes))
		}
		return ""
	})
	ready := time.Since(began)
	c.members(to)
	c.t.Logf("scale to %d: node ready after %s, in the backend pool after %s", to, short(ready), short(time.Since(began)))
}

// members waits until the backend pool has so many members.
func (c *cluster) members(want int) {
	c.t.Helper()
	wait(c.t, time.Minute, "members of the backend pool", func() string {
		lb := read[network.LoadBalancer](c, c.group().Resource(network.LoadBalancers, "kaz"))
		for _, pool := range lb.Properties.BackendAddressPools {
			if got := len(pool.Properties.BackendIPConfigurations); got != want {
				return fmt.Sprintf("%d, want %d", got, want)
			}
		}
		return ""
	})
}

// act does something to a machine of the scale set.
func (c *cluster) act(action string, vm azure.Resource[compute.Instance]) {
	c.t.Helper()
	body := azure.Document(fmt.Sprintf(`{"instanceIds":[%q]}`, vm.ID.Name()))
	if _, err := c.azure.Post(c.t.Context(), c.scaleSet(), action, body); err != nil {
		c.t.Fatalf("%s %s: %v", action, vm.ID, err)
	}
}
