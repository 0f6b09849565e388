package cluster_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/plan/loadbalancer/cluster"
)

// TestRoles checks D5: the value of the label that excludes a node counts, as it does for the rest of Kubernetes.
func TestRoles(t *testing.T) {
	c := cluster.Config{ResourceGroup: "rg", ExcludeControlPlane: true}
	labeled := func(k, v string) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{k: v}}}
	}
	deleted := &v1.Node{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}
	tainted := &v1.Node{Spec: v1.NodeSpec{Taints: []v1.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}}}}
	notReady := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse}}}}
	const exclude = "node.kubernetes.io/exclude-from-external-load-balancers"
	for _, test := range []struct {
		what string
		node *v1.Node
		want cluster.Role
	}{
		{"plain", &v1.Node{}, cluster.Receiver}, {"not ready", notReady, cluster.Receiver},
		{"excluded", labeled(exclude, "true"), cluster.Excluded}, {"excluded without a value", labeled(exclude, ""), cluster.Excluded},
		{"excluded by no truth value", labeled(exclude, "yes"), cluster.Excluded}, {"not excluded", labeled(exclude, "false"), cluster.Receiver},
		{"unmanaged", labeled("kubernetes.azure.com/managed", "False"), cluster.Excluded},
		{"managed", labeled("kubernetes.azure.com/managed", "true"), cluster.Receiver},
		{"of another group", labeled("kubernetes.azure.com/resource-group", "other"), cluster.Bystander},
		{"of the group", labeled("kubernetes.azure.com/resource-group", "RG"), cluster.Receiver},
		{"control plane", labeled("node-role.kubernetes.io/control-plane", ""), cluster.Bystander},
		{"master", labeled("node-role.kubernetes.io/master", ""), cluster.Bystander},
		{"master of old", labeled("kubernetes.io/role", "master"), cluster.Bystander},
		{"worker of old", labeled("kubernetes.io/role", "node"), cluster.Receiver},
		{"being deleted", deleted, cluster.Bystander}, {"about to be deleted", tainted, cluster.Bystander},
	} {
		if got := cluster.RoleOf(c, test.node); got != test.want {
			t.Errorf("%s: %s, want %s", test.what, got, test.want)
		}
	}
	c.ExcludeControlPlane = false
	if got := cluster.RoleOf(c, labeled("node-role.kubernetes.io/control-plane", "")); got != cluster.Receiver {
		t.Errorf("control plane that is let in: %s", got)
	}
}
