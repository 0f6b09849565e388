package loadbalancer

import (
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
)

type (
	pool       = azure.Child[network.BackendAddressPool]
	poolMember = azure.Child[network.BackendAddress]
)

// pools keeps all pools and adds those that the batch's Services need. Who is in the
// cluster's own ones is written here where members are addresses, and at the
// machines where they are network interfaces.
func (f *facts) pools(b *batch, lb *balancer) {
	for _, p := range lb.side.lb.Properties.BackendAddressPools {
		lb.BackendAddressPools = append(lb.BackendAddressPools, f.poolAsIs(b, lb, p))
	}
	for _, w := range b.live {
		for _, p := range w.places {
			name := firstOf(p.ownPool, f.Config.poolName(p.family))
			if p.side == lb.side && !slices.ContainsFunc(lb.BackendAddressPools, func(c pool) bool { return sameText(c.Name, name) }) {
				fresh := pool{Name: name}
				if f.fills(lb.side) && f.byIP(lb.side) && p.ownPool == "" {
					fresh = f.byAddress(fresh, p.family, f.nodes)
				}
				lb.BackendAddressPools = append(lb.BackendAddressPools, fresh)
			}
		}
	}
}

// fills reports whether the pools of a load balancer are ours to fill.
func (f *facts) fills(s *side) bool { return !f.Config.presets(s.internal) && len(f.Nodes) > 0 }

// byIP reports whether the cluster's pools at a load balancer list addresses. They go on to
// be of network interfaces as long as a private link service stands before it, as Azure has
// none before addresses: the interfaces would leave, and nobody could come in their place.
func (f *facts) byIP(s *side) bool {
	return f.Config.PoolByIP && (slices.ContainsFunc(s.lb.Properties.BackendAddressPools, isByAddress) || f.linksAt(s, "") == 0)
}

// poolAsIs is a pool that is there: with the members that it shall have if it is the
// cluster's own, else as it is.
func (f *facts) poolAsIs(b *batch, lb *balancer, p pool) pool {
	family, ours := f.Config.poolFamily(p.Name)
	if !ours || !f.fills(lb.side) {
		return kept(p)
	}
	switch {
	case f.byIP(lb.side) && !isByAddress(p) && f.isReferred(lb.side.id.Child(network.BackendAddressPools, p.Name)):
		// They leave first, in a round of their own.
		b.waits = append(b.waits, "pool "+p.Name+" of "+lb.side.id.Name()+" gets addresses when its network interfaces have left")
		return kept(p)
	case f.byIP(lb.side):
		return f.byAddress(p, family, f.nodes)
	case hasAddresses(p):
		return pool{Name: p.Name, Properties: network.BackendAddressPool{LoadBalancerBackendAddresses: []poolMember{}}}
	}
	return kept(p)
}

// isByAddress reports whether a pool is one of addresses: it has its virtual network.
func isByAddress(p pool) bool { return p.Properties.VirtualNetwork != nil || hasAddresses(p) }

// isReferred reports whether machines, or the model of some, name a pool.
func (f *facts) isReferred(id azure.ID) bool {
	// A document that cannot be read is membership's to report.
	groups, err := readGroups(f.Input)
	return err == nil && slices.ContainsFunc(groups, func(g *group) bool {
		return slices.ContainsFunc(g.all(), func(one *machine) bool { return one.in(id) })
	})
}

// hasAddresses reports whether members of a pool are addresses. Azure shows
// interfaces in the same place.
func hasAddresses(p pool) bool {
	return slices.ContainsFunc(p.Properties.LoadBalancerBackendAddresses, func(m poolMember) bool {
		return m.Properties.NetworkInterfaceIPConfiguration == nil && m.Properties.IPAddress != ""
	})
}

// byAddress is a pool with the addresses of the nodes that belong into it, which come by name. As
// everywhere, excluded nodes do not leave the pool empty, and who is neither let in
// nor excluded stays as he is.
func (f *facts) byAddress(p pool, family v1.IPFamily, belong []*v1.Node) pool {
	had := make(map[netip.Addr]string, len(p.Properties.LoadBalancerBackendAddresses)) // names by address
	for _, m := range p.Properties.LoadBalancerBackendAddresses {
		if ip, err := netip.ParseAddr(m.Properties.IPAddress); err == nil {
			had[ip.Unmap()] = m.Name
		}
	}
	var excluded roster
	members := roster{all: make([]addressed, 0, len(belong)), at: make(map[netip.Addr]bool, len(belong))}
	for _, n := range belong {
		ip, ok := addressIn(n, family)
		if _, unfit := f.Unfit[ip.String()]; !ok || unfit {
			continue
		}
		_, there := had[ip]
		switch role := RoleOf(f.Config, n); {
		case role == Receiver, role == Bystander && there:
			members.add(n.Name, ip)
		case role == Excluded && there:
			excluded.add(n.Name, ip)
		}
	}
	if len(members.all) == 0 {
		members = excluded
	}
	next := pool{Name: p.Name}
	next.Properties.LoadBalancerBackendAddresses = members.named(had) // nil for nobody: a pool of nodes is not emptied
	if network := f.Config.poolNetwork(); network != "" {
		next.Properties.VirtualNetwork = azure.Ref(network)
	}
	return next
}

// warnUnfit tells which nodes are let into no pool because Azure does not take their addresses.
func (f *facts) warnUnfit(found *problems) {
	for _, n := range f.nodes {
		for _, ip := range internalIPs(n) {
			if why, unfit := f.Unfit[ip.String()]; unfit && RoleOf(f.Config, n) == Receiver {
				found.warn(n.Name, ReasonNotJoined, "its address %s stays out of the backend pools, as Azure does not take it: %s", ip, why)
			}
		}
	}
}

// roster is the nodes that are in a pool of addresses.
type roster struct {
	all []addressed
	at  map[netip.Addr]bool
}

type addressed struct {
	node string // its name
	ip   netip.Addr
}

// add adds a node, unless another one has its address: that of a machine that is gone is given
// to the next one, and the Node of the first may still be there.
func (r *roster) add(node string, ip netip.Addr) {
	if r.at == nil {
		r.at = map[netip.Addr]bool{}
	}
	if !r.at[ip] {
		r.at[ip] = true
		r.all = append(r.all, addressed{node, ip})
	}
}

// named are the members with their names: those that their addresses have, but for such that
// others come by. Azure takes a name once.
func (r *roster) named(had map[netip.Addr]string) (members []poolMember) {
	own := map[string]bool{} // names of nodes that are named after themselves
	for more := true; more; {
		more = false
		for _, m := range r.all {
			if name, there := had[m.ip]; !own[m.node] && (!there || own[name]) {
				delete(had, m.ip)
				own[m.node], more = true, true
			}
		}
	}
	members = slices.Grow(members, len(r.all))
	for _, m := range r.all {
		members = append(members, poolMember{Name: firstOf(had[m.ip], m.node), Properties: network.BackendAddress{IPAddress: m.ip.String()}})
	}
	return members
}

// addressIn is a node's own address in a family: the first one.
func addressIn(n *v1.Node, family v1.IPFamily) (netip.Addr, bool) {
	for _, ip := range internalIPs(n) {
		if familyOf(ip) == family {
			return ip, true
		}
	}
	return netip.Addr{}, false
}
