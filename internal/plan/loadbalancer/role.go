package loadbalancer

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// Role is what a node is to load balancers.
type Role string

// The roles.
const (
	Receiver  Role = "receiver"  // belongs into the backend pool
	Excluded  Role = "excluded"  // somebody wants it out of it
	Bystander Role = "bystander" // is not let in, and left there if it is in
)

const (
	labelExclude       = v1.LabelNodeExcludeBalancers
	labelManaged       = "kubernetes.azure.com/managed"
	labelResourceGroup = "kubernetes.azure.com/resource-group"
	taintToBeDeleted   = "ToBeDeletedByClusterAutoscaler"
)

// RoleOf is what a node is to load balancers, by its labels and taints. Readiness
// does not count: the probes see to that.
func RoleOf(c Config, n *v1.Node) Role {
	_, controlPlane := n.Labels["node-role.kubernetes.io/control-plane"]
	_, master := n.Labels["node-role.kubernetes.io/master"]
	group, foreign := n.Labels[labelResourceGroup]
	switch {
	case excludedByLabel(n) || sameText(n.Labels[labelManaged], "false"):
		return Excluded
	case n.DeletionTimestamp != nil,
		foreign && !sameText(group, c.ResourceGroup),
		c.ExcludeControlPlane && (controlPlane || master || n.Labels["kubernetes.io/role"] == "master"),
		slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == taintToBeDeleted }):
		return Bystander
	}
	return Receiver
}

// excludedByLabel reads the label's value, as the rest of Kubernetes does: one that
// is no truth value excludes.
func excludedByLabel(n *v1.Node) bool {
	text, ok := n.Labels[labelExclude]
	if !ok {
		return false
	}
	excluded, err := strconv.ParseBool(text)
	return err != nil || excluded
}
