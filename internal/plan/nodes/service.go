package nodes

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// taintShutdown is what Kubernetes puts on nodes whose machine is off for good.
const taintShutdown = "node.cloudprovider.kubernetes.io/shutdown"

// OutOfService is the taint of a node that does not come back soon: its pods go, and
// its volumes are let go of at once.
func OutOfService() *v1.Taint {
	return &v1.Taint{Key: v1.TaintNodeOutOfService, Effect: v1.TaintEffectNoExecute}
}

// Serves decides whether a node is to bear [OutOfService]: it is when its machine is
// off for good, and not any more when it is ready. In between it stays as it is.
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
