package decision

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// Machines are remembered after their Node was deleted, until they have a Node again or are gone. Their number is
// limited.
func TestDeletedNodesAreForgotten(t *testing.T) {
	group := azure.GroupID("s", "rg")
	set := group.Resource(compute.ScaleSets, "np")
	instance := func(i int) azure.ID { return set.Child("virtualMachines", fmt.Sprint(i)) }
	alone := func(name string) azure.ID { return group.Resource(compute.VirtualMachines, name) }
	node := func(id azure.ID) *corev1.Node {
		return &corev1.Node{Spec: corev1.NodeSpec{ProviderID: "azure://" + string(id)}}
	}
	var l DeletedNodes
	for _, id := range []azure.ID{instance(0), instance(1), instance(2), alone("a"), alone("b")} {
		l.Add(node(id))
	}
	l.Add(node(alone("c")))
	l.Add(&corev1.Node{Spec: corev1.NodeSpec{ProviderID: "kind://c"}})
	l.Add(&corev1.Node{})
	want := []azure.ID{instance(0), instance(1), instance(2), alone("a"), alone("b"), alone("c")}
	remembers := func(when string, want ...azure.ID) {
		t.Helper()
		if slices.Sort(want); !slices.Equal(l.among(nil), want) {
			t.Errorf("%s remembered are %v, want %v", when, l.among(nil), want)
		}
	}
	remembers("at first", want...)
	l.among([]*corev1.Node{{}, node(instance(2))})
	remembers("with a Node again", slices.Delete(want, 2, 3)...)

	document := func(id azure.ID, more string) azure.Document {
		return azure.Document(fmt.Sprintf(`{"id":%q,"properties":{%s}}`, id, more))
	}
	in := loadbalancer.Input{Config: loadbalancer.Config{Subscription: "s", ResourceGroup: "rg"}, DeletedNodes: l.among(nil),
		Have: plan.NewSnapshot(
			document(set, ""), document(instance(1), ""),
			document(group.Resource(network.Interfaces, "nic"), fmt.Sprintf(`"primary":true,"virtualMachine":{"id":%q}`, alone("b"))),
		)}
	l.Add(node(alone("late"))) // the decision does not know of it
	if err := l.ForgetGone(in); err != nil {
		t.Fatal(err)
	}
	remembers("after a decision", instance(1), alone("b"), alone("late"))
	for i := range 2 * deletedAtMost {
		l.Add(node(instance(i)))
	}
	if n := len(l.among(nil)); n != deletedAtMost {
		t.Errorf("remembered are %d, want %d", n, deletedAtMost)
	}
}
