package hollow

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/localazure/inventory"
	"kaz/internal/localcluster/controlplane"
)

// The Node of a machine in another resource group has a label with that group.
func TestGroupLabel(t *testing.T) {
	cluster := azure.GroupID("s", "kaz")
	for group, want := range map[string]string{"kaz": "", "KAZ": "", "Elsewhere": "elsewhere"} {
		m := inventory.Machine{ID: azure.GroupID("s", group).Resource("Microsoft.Compute/virtualMachines", "vm"), Name: "vm"}
		if got := newNode(m, cluster).Labels["kubernetes.azure.com/resource-group"]; got != want {
			t.Errorf("a machine in %s: the label is %q, want %q", group, got, want)
		}
	}
}

func TestCompare(t *testing.T) {
	node := func(name string, ours, simulated bool) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}, Labels: map[string]string{}}}
		if ours {
			n.Annotations[registeredBy] = "kaz local"
		}
		if simulated {
			n.Labels[controlplane.SimulatedLabel] = "true"
		}
		return n
	}
	machines := []inventory.Machine{
		{Name: "new", Running: true}, {Name: "off"}, {Name: "same", Running: true}, {Name: "started", Running: true}, {Name: "stopped"},
		{Name: "foreign", Running: true},
	}
	nodes := []corev1.Node{
		node("same", true, true), node("started", true, false), node("stopped", true, true), node("deleted", true, true),
		node("foreign", false, false),
	}
	register, simulate := compare(machines, nodes)
	if diff := cmp.Diff(machines[:1], register, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("machines to register: %s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"started": true, "stopped": false, "deleted": false}, simulate); diff != "" {
		t.Errorf("simulations to change: %s", diff)
	}
}
