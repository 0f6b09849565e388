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

// RoleOf is what a node is to load balancers, by its labels and taints. Readiness
// does not count: the probes see to that.
func RoleOf(c Config, n *v1.Node) Role {
	_, controlPlane := n.Labels["node-role.kubernetes.io/control-plane"]
	_, master := n.Labels["node-role.kubernetes.io/master"]
	group, foreign := n.Labels["kubernetes.azure.com/resource-group"]
	text, labeled := n.Labels[v1.LabelNodeExcludeBalancers]
	excluded, err := strconv.ParseBool(text)
	switch {
	case labeled && (excluded || err != nil), // one that is no truth value excludes, as in the rest of Kubernetes
		strings.EqualFold(n.Labels["kubernetes.azure.com/managed"], "false"):
		return Excluded
	case n.DeletionTimestamp != nil,
		foreign && !strings.EqualFold(group, c.ResourceGroup),
		c.ExcludeControlPlane && (controlPlane || master || n.Labels["kubernetes.io/role"] == "master"),
		slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == "ToBeDeletedByClusterAutoscaler" }):
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

// Selects reports whether a selector matches labels, and whether it is set at all. One that cannot be read matches
// nothing; the cloud configuration is checked for those.
func Selects(s *metav1.LabelSelector, of map[string]string) (matches, isSet bool) {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return false, false
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(of)), true
}
