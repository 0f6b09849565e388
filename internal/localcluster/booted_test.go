package localcluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A node without a route keeps pods away before it has the taint that says so.
func TestKeepsPodsAway(t *testing.T) {
	node := func(condition corev1.ConditionStatus, taints ...string) corev1.Node {
		var n corev1.Node
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
			{Type: corev1.NodeNetworkUnavailable, Status: condition}}
		for _, key := range taints {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key})
		}
		return n
	}
	for name, test := range map[string]struct {
		node corev1.Node
		want bool
	}{
		"takes pods":       {node(corev1.ConditionFalse), false},
		"of a member":      {node(corev1.ConditionFalse, "node-role.kubernetes.io/control-plane"), false},
		"no route":         {node(corev1.ConditionTrue), true},
		"taint of before":  {node(corev1.ConditionFalse, corev1.TaintNodeNetworkUnavailable), true},
		"kubelet is gone":  {node(corev1.ConditionFalse, corev1.TaintNodeNotReady), true},
		"route and others": {node(corev1.ConditionTrue, "team"), true},
	} {
		if got := keepsPodsAway(test.node); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
