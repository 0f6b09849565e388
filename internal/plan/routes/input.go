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

// Config says which route table is the cluster's.
type Config struct {
	Subscription, ResourceGroup, Table string
	// Location is where a table that does not exist yet is made.
	Location string
	// Tags that the table shall carry, if it is in ClusterGroup, the cluster's own
	// resource group. Those of a table elsewhere are its owner's.
	Tags         azure.Tags
	ClusterGroup string
	// SystemTags are the starts of names of tags that stay though they are not wanted.
	// Without any, all stay.
	SystemTags []string
}

// ID is the route table.
func (c Config) ID() azure.ID {
	return azure.GroupID(c.Subscription, c.ResourceGroup).Resource(network.RouteTables, c.Table)
}

// Node is what routes depend on of a node.
type Node struct {
	Name  string
	CIDRs []string // the ranges of its pods
	// Hops are its inside addresses, the first of a family being where its routes lead.
	Hops []netip.Addr
	// Unmanaged nodes are reached by routes of somebody else's.
	Unmanaged bool
}

// NodeOf reads the facts from a node.
func NodeOf(n *corev1.Node, unmanaged bool) Node {
	return Node{Name: n.Name, CIDRs: n.Spec.PodCIDRs, Hops: Hops(n.Status.Addresses), Unmanaged: unmanaged}
}

// Hops are the inside addresses among a node's addresses, in their order.
func Hops(addresses []corev1.NodeAddress) []netip.Addr {
	var hops []netip.Addr
	for _, a := range addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
			hops = append(hops, ip.Unmap())
		}
	}
	return hops
}

// HopFor is the first of the addresses in the family of a range, false when there
// is none.
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

// spelled is a range as the node writes it, false where it has no such range.
func (n Node) spelled(cidr string) (string, bool) {
	i := slices.IndexFunc(n.CIDRs, func(own string) bool { return prefix(own) == prefix(cidr) })
	if i < 0 {
		return "", false
	}
	return n.CIDRs[i], true
}

// Change is one route that shall lead to a node, or shall be there no more.
type Change struct {
	Node string
	CIDR string
	// Name of the route that shall go, where it is known.
	Name string
	// Hop is the node's address. Only for what shall be.
	Hop  netip.Addr
	Gone bool
}

// Key names the change's route: changes of the same key are about the same thing.
func (c Change) Key() string {
	if c.Name != "" {
		return strings.ToLower(c.Name)
	}
	return strings.ToLower(Name(c.Node, c.CIDR))
}

// Input is all facts of a decision. Of several changes of one key the last counts.
type Input struct {
	Config
	Changes []Change
	Nodes   []Node // all of the cluster
	// Most is how many routes Azure allows in the table, 0 where it was not asked.
	Most int
	Have plan.Snapshot
}

// Needs names what the snapshot must hold.
func Needs(in Input) []azure.ID { return []azure.ID{in.ID()} }

// nodesByName finds nodes as Azure would: in any case.
func (in Input) nodesByName() map[string]Node {
	nodes := make(map[string]Node, len(in.Nodes))
	for _, n := range in.Nodes {
		nodes[strings.ToLower(n.Name)] = n
	}
	return nodes
}
