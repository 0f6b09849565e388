package routes

import (
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
)

// Route is a route as Kubernetes knows it.
type Route struct{ Name, Node, CIDR string }

// Known returns the routes that Kubernetes should consider present. It leaves out routes with an old
// address of their node or a former name: Kubernetes then requests them, and one write repairs them.
// Routes without a node are ignored.
func Known(in Input) ([]Route, error) {
	table, _, err := plan.View[network.RouteTable](in.Have, in.ID())
	if err != nil {
		return nil, err
	}
	nodes := in.nodesByName()
	var known []Route
	seen := map[string]bool{}
	for _, r := range table.Properties.Routes {
		name, ours := nodeOf(r.Name)
		if !ours || r.Properties.AddressPrefix == "" {
			continue
		}
		route := Route{Name: r.Name, Node: name, CIDR: r.Properties.AddressPrefix}
		if n, there := nodes[strings.ToLower(name)]; there {
			route.Node = n.Name
			own, has := n.spelled(route.CIDR)
			if has && !n.Unmanaged && !leadsTo(r, n) {
				continue
			}
			if has {
				route.CIDR = own
			}
		}
		seen[route.Node+" "+route.CIDR] = true
		known = append(known, route)
	}
	for _, n := range in.Nodes {
		for _, cidr := range n.CIDRs {
			if n.Unmanaged && !seen[n.Name+" "+cidr] {
				known = append(known, Route{Name: Name(n.Name, cidr), Node: n.Name, CIDR: cidr})
			}
		}
	}
	return known, nil
}

// leadsTo reports whether a route leads to the node, or whether the node's address is unknown.
func leadsTo(r azure.Child[network.Route], n Node) bool {
	if _, known := HopFor(r.Properties.AddressPrefix, n.Hops); !known {
		return true
	}
	hop, err := netip.ParseAddr(r.Properties.NextHopIPAddress)
	return err == nil && strings.EqualFold(r.Properties.NextHopType, network.VirtualAppliance) && slices.Contains(n.Hops, hop.Unmap())
}
