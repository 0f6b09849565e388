package service_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// exclusions are the labels that keep a node out of the pools, and the values with which they let it in. Kubernetes
// documents that the first label excludes unless it is false (kubernetes pull request 131085). The Azure provider
// documents that a node that is not managed is no backend.
var exclusions = []struct{ label, out, in string }{
	{corev1.LabelNodeExcludeBalancers, "true", "false"},
	{corev1.LabelNodeExcludeBalancers, "", "false"},
	{"kubernetes.azure.com/managed", "false", "true"},
}

// B5. The members follow from the labels alone. A node is excluded when it is added, or let in, excluded and let in
// again later. It is a member exactly while it is let in, whether kaz sees each change or only the result.
func TestMembersFollowFromLabels(t *testing.T) {
	inBothPools(t, func(t *testing.T, n *neighbourhood) {
		added := n.picked[0]
		n.serve()
		n.backendsAre(n.nodes)
		label := func(name, value string) {
			n.editNode(added, func(node *corev1.Node) { node.Labels = map[string]string{name: value} })
		}
		restart := func() {
			n.stop()
			n.stop = n.start(n.config)
		}
		for _, e := range exclusions {
			for _, seen := range []func(){func() {}, restart} {
				for _, turn := range []struct {
					value string
					want  []string
				}{{e.out, but(n.nodes, []string{added})}, {e.in, n.nodes}, {e.out, but(n.nodes, []string{added})}} {
					label(e.label, turn.value)
					seen()
					n.settle()
					n.backendsAre(turn.want)
				}
				// As a node that is added with the label.
				node := n.nodesByName()[added].DeepCopy()
				resource := corev1.SchemeGroupVersion.WithResource("nodes")
				if err := n.client.Tracker().Delete(resource, "", added); err != nil {
					t.Fatal(err)
				}
				if err := n.client.Tracker().Add(node); err != nil {
					t.Fatal(err)
				}
				seen()
				n.settle()
				n.backendsAre(but(n.nodes, []string{added}))
				n.editNode(added, func(node *corev1.Node) { node.Labels = nil })
				seen()
				n.settle()
				n.backendsAre(n.nodes)
			}
		}
		n.calm()
		n.checkNoFailureEvents()
	})
}
