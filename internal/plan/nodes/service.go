package nodes

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// taintShutdown is the taint that Kubernetes sets on nodes with permanently stopped machines.
const taintShutdown = "node.cloudprovider.kubernetes.io/shutdown"

// OutOfService returns the taint of a node that will not return soon. Kubernetes then deletes its
// pods and detaches its volumes at once.
func OutOfService() *v1.Taint {
	return &v1.Taint{Key: v1.TaintNodeOutOfService, Effect: v1.TaintEffectNoExecute}
}

// Serves decides whether to add or remove [OutOfService]. A node gets it when its machine is off
// permanently, and loses it when the node is ready. In between it does not change.
func Serves(n *v1.Node) (taint, untaint bool) {
	bears := func(key string, effect v1.TaintEffect) bool {
		return slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == key && (effect == "" || t.Effect == effect) })
	}
	ready := slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
	out := bears(v1.TaintNodeOutOfService, v1.TaintEffectNoExecute)
	return !ready && !out && bears(taintShutdown, ""), ready && out
}
