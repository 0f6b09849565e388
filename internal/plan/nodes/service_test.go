package nodes_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/plan/nodes"
)

// TestServes (41) checks that a node with a stopped machine is out of service until it is ready
// again.
func TestServes(t *testing.T) {
	const shutdown = "node.cloudprovider.kubernetes.io/shutdown"
	for _, test := range []struct {
		what           string
		ready          v1.ConditionStatus
		taints         []string
		taint, untaint bool
	}{
		{"at work", v1.ConditionTrue, nil, false, false},
		{"silent", v1.ConditionUnknown, nil, false, false},
		{"off", v1.ConditionUnknown, []string{shutdown}, true, false},
		{"off, and known to be", v1.ConditionFalse, []string{shutdown, v1.TaintNodeOutOfService}, false, false},
		{"silent again", v1.ConditionUnknown, []string{v1.TaintNodeOutOfService}, false, false},
		{"back", v1.ConditionTrue, []string{v1.TaintNodeOutOfService}, false, true},
		{"back, which not all know yet", v1.ConditionTrue, []string{shutdown, v1.TaintNodeOutOfService}, false, true},
		{"never said anything", "", []string{shutdown}, true, false},
	} {
		n := &v1.Node{}
		if test.ready != "" {
			n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: test.ready}}
		}
		for _, key := range test.taints {
			n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key, Effect: v1.TaintEffectNoExecute})
		}
		if taint, untaint := nodes.Serves(n); taint != test.taint || untaint != test.untaint {
			t.Errorf("%s: taint %v, untaint %v", test.what, taint, untaint)
		}
	}
}
