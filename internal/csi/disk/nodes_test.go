package disk_test

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"kaz/internal/azure"
	"kaz/internal/csi/disk"
	"kaz/internal/testkit/kubeclient"
)

// TestKubernetesNodes checks that machines are found by the provider ids of Node objects, in both directions.
func TestKubernetesNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const machine = azure.ID("/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/set/virtualMachines/1")
		node := func(name, providerID string) *corev1.Node {
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: providerID}}
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		client := fake.NewClientset(node("a", "azure://"+string(machine)), node("b", "aws:///b"))
		nodes, err := disk.NewKubernetesNodes(ctx, kubeclient.Of(client))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, err := nodes.Machine(ctx, "A"); err != nil || !got.Equal(machine) {
			t.Errorf("machine of a: %s, %v", got, err)
		}
		if got := nodes.Node(ctx, machine); got != "a" {
			t.Errorf("node of the machine: %q", got)
		}
		if got, err := nodes.Machine(ctx, "b"); err == nil {
			t.Errorf("machine of a node outside Azure: %s", got)
		}
		if _, err := nodes.Machine(ctx, "c"); !azure.IsNotFound(err) {
			t.Errorf("machine of an unknown node: %v", err)
		}
		if got := nodes.Node(ctx, machine+"0"); got != "" {
			t.Errorf("node of a foreign machine: %q", got)
		}
		stop()
		synctest.Wait()
	})
}
