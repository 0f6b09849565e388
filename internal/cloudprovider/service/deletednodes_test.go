package service_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A user deletes Nodes, and their machines keep running. The machines leave the pool, and no later change lets them
// in until there is a Node again.
func TestNodesThatAreDeleted(t *testing.T) {
	inBothPools(t, func(t *testing.T, n *neighbourhood) {
		n.serve()
		was := n.nodesByName()
		for _, name := range n.picked {
			n.removeNode(name)
		}
		n.settle()
		n.backendsAre(but(n.nodes, n.picked))
		if reported := n.events.reasons("web"); !slices.Contains(reported, "UpdatedLoadBalancer") {
			t.Errorf("got %v", reported)
		}
		n.calm()
		for _, name := range n.picked {
			if err := n.client.Tracker().Add(was[name]); err != nil {
				t.Fatal(err)
			}
			n.settle()
			n.wrote(name)
			n.calm()
		}
		n.backendsAre(n.nodes)

		// A Node that comes again tells later what its machine is.
		name := n.picked[0]
		n.removeNode(name)
		n.settle()
		n.Forget()
		nameless := was[name].DeepCopy()
		nameless.Spec.ProviderID, nameless.Status.Addresses = "", nil
		if err := n.client.Tracker().Add(nameless); err != nil {
			t.Fatal(err)
		}
		n.settle()
		n.wrote()
		n.editNode(name, func(node *corev1.Node) { node.Spec, node.Status = was[name].Spec, was[name].Status })
		n.settle()
		n.wrote(name)
		n.backendsAre(n.nodes)
		n.checkNoFailureEvents()
	})
}
