package cluster

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Role is what a node is to load balancers.
type Role string

// The roles.
const (
	Receiver  Role = "receiver"  // belongs into the backend pool
	Excluded  Role = "excluded"  // a label keeps it out of the pool
	Bystander Role = "bystander" // does not join, and stays if it is a member
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
	text, labeled := n.Labels[labelExclude]
	excluded, err := strconv.ParseBool(text)
	switch {
	case labeled && (excluded || err != nil), // one that is no truth value excludes, as in the rest of Kubernetes
		strings.EqualFold(n.Labels[labelManaged], "false"):
		return Excluded
	case n.DeletionTimestamp != nil,
		foreign && !strings.EqualFold(group, c.ResourceGroup),
		c.ExcludeControlPlane && (controlPlane || master || n.Labels["kubernetes.io/role"] == "master"),
		slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == taintToBeDeleted }):
		return Bystander
	}
	return Receiver
}

// InternalIPs are the addresses of a node in the virtual network.
func InternalIPs(n *v1.Node) []netip.Addr {
	var ips []netip.Addr
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == v1.NodeInternalIP {
			ips = append(ips, ip.Unmap())
		}
	}
	return ips
}

// Selection is what a selector says of labels.
type Selection int

// What a selector says.
const (
	Any Selection = iota // it says nothing
	Yes
	No
)

// Selects is what a selector says of labels. A selector that cannot be read selects nothing; the
// cloud configuration is checked for those.
func Selects(s *metav1.LabelSelector, of map[string]string) Selection {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return Any
	}
	if selector, err := metav1.LabelSelectorAsSelector(s); err == nil && selector.Matches(labels.Set(of)) {
		return Yes
	}
	return No
}
