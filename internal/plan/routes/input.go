package routes

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
)

// Config describes the cluster's route table.
type Config struct {
	Subscription, ResourceGroup, Table string
	// Location is the region of a new table.
	Location string
	// Tags of the table if it is in ClusterGroup, the resource group of the cluster. The tags of
	// other tables belong to their owners.
	Tags         azure.Tags
	ClusterGroup string
	// SystemTags are prefixes of tags to keep. If there are none, all tags are kept.
	SystemTags []string
}

// ID returns the id of the route table.
func (c Config) ID() azure.ID {
	return azure.GroupID(c.Subscription, c.ResourceGroup).Resource(network.RouteTables, c.Table)
}

// Node has the properties of a node that its routes depend on.
type Node struct {
	Name  string
	CIDRs []string // ranges of the node's pods
	// Hops are the internal addresses. The first one of each family is the next hop.
	Hops []netip.Addr
	// Unmanaged nodes have routes that others manage.
	Unmanaged bool
}

// NodeOf returns the properties of a node.
func NodeOf(n *corev1.Node, unmanaged bool) Node {
	return Node{Name: n.Name, CIDRs: n.Spec.PodCIDRs, Hops: Hops(n.Status.Addresses), Unmanaged: unmanaged}
}

// Hops returns the internal addresses of a node, in their order.
func Hops(addresses []corev1.NodeAddress) []netip.Addr {
	var hops []netip.Addr
	for _, a := range addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
			hops = append(hops, ip.Unmap())
		}
	}
	return hops
}

// HopFor returns the first address of the same family as a range, and false if there is none.
func HopFor(cidr string, addresses []netip.Addr) (netip.Addr, bool) {
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return netip.Addr{}, false
	}
	i := slices.IndexFunc(addresses, func(a netip.Addr) bool { return a.Is4() == p.Addr().Is4() })
	if i < 0 {
		return netip.Addr{}, false
	}
	return addresses[i], true
}

// spelled returns a range as the node spells it, and false if the node does not have the range.
func (n Node) spelled(cidr string) (string, bool) {
	i := slices.IndexFunc(n.CIDRs, func(own string) bool { return prefix(own) == prefix(cidr) })
	if i < 0 {
		return "", false
	}
	return n.CIDRs[i], true
}

// Change is a route to create, update or delete.
type Change struct {
	Node string
	CIDR string
	// Name is the name of the route to delete, if known.
	Name string
	// Hop is the node's address, unless the route is deleted.
	Hop  netip.Addr
	Gone bool
}

// Key identifies the route: changes with the same key are about the same route.
func (c Change) Key() string {
	if c.Name != "" {
		return strings.ToLower(c.Name)
	}
	return strings.ToLower(Name(c.Node, c.CIDR))
}

// Input has all facts of a decision. The last change of each key counts.
type Input struct {
	Config
	Changes []Change
	Nodes   []Node // all nodes of the cluster
	// Most is the number of routes that Azure allows in the table, 0 if unknown.
	Most int
	Have plan.Snapshot
}

// Needs returns the ids that the snapshot must contain.
func Needs(in Input) []azure.ID { return []azure.ID{in.ID()} }

// nodesByName returns the nodes by name in lower case, because Azure ignores case.
func (in Input) nodesByName() map[string]Node {
	nodes := make(map[string]Node, len(in.Nodes))
	for _, n := range in.Nodes {
		nodes[strings.ToLower(n.Name)] = n
	}
	return nodes
}
