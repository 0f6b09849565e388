// Package query finds out what must be read of Azure before a decision can be made. Layer L1.
package query

import (
	"slices"
	"sync"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/machine"
	"kaz/internal/plan/loadbalancer/spec"
)

// Needs names what the snapshot of an input must hold to decide, given what it holds already.
// decide decides the input as far as it has been read.
func Needs(in index.Input, decide func() (plan.Graph, error)) ([]azure.ID, []azure.Query) {
	c := in.Config
	all, unreadable := index.Balancers(in)
	n := needs{in, all, unreadable, sync.OnceValues(decide)}
	var ids []azure.ID
	if c.SecurityGroupName != "" {
		ids = append(ids, c.SecurityGroupID())
	}
	for _, id := range index.Subnets(in) {
		ids = append(ids, id)
		if _, absent := in.Have.Absent(id); absent { // the network may be missing, which Azure does not say
			ids = append(ids, c.NetworkID())
		}
	}
	lists := []azure.Query{{Scope: c.NetworkGroup(), Type: network.LoadBalancers}}
	for _, group := range index.AddressGroups(in, all) {
		lists = append(lists, azure.Query{Scope: group, Type: network.PublicIPAddresses})
	}
	return ids, slices.Concat(lists, n.links(), n.machines())
}

// MayBeUnread reports whether a decision can do without a list that [Needs] names, or without a resource:
// scope is then its id. The Services that name it are refused then and keep what they have. A node with a
// network interface there stays out of the pools. Without the cluster's own groups nothing can be decided.
func MayBeUnread(c cluster.Config, scope azure.ID, fullType string) bool {
	own, named := map[string]azure.ID{
		network.PublicIPAddresses: c.PublicIPGroup(""), network.PrivateLinkServices: c.LinkGroup(""), network.Subnets: c.SubnetID(""),
		network.PrivateEndpointConnections: "", network.VirtualNetworks: "", network.Interfaces: c.MachineGroup(),
	}[fullType]
	return named && !scope.Equal(own)
}

type needs struct {
	index.Input
	all        []*index.LoadBalancer
	unreadable error // of one of them
	decide     func() (plan.Graph, error)
}

// links are the lists of private link services, and of the connections to the services of the commit.
func (n needs) links() []azure.Query {
	if !n.mayHaveLinks() {
		return nil
	}
	var lists []azure.Query
	for _, group := range index.LinkGroups(n.Input, n.all) {
		lists = append(lists, azure.Query{Scope: group, Type: network.PrivateLinkServices})
		links, _ := plan.Views[network.PrivateLinkService](n.Have, group, network.PrivateLinkServices) // the decision reports an error
		for _, l := range links {
			isOurs := func(s spec.Service) bool { return s.Key() == index.LinkOwner(&l) && index.IsManagedLink(n.Config, &l) }
			if len(l.Properties.PrivateEndpointConnections) > 0 && slices.ContainsFunc(n.Services, isOurs) {
				lists = append(lists, azure.Query{Scope: l.ID, Type: network.PrivateEndpointConnections})
			}
		}
	}
	return lists
}

// mayHaveLinks reports whether one of the Services asks for what can have a private link
// service, or has it so far.
func (n needs) mayHaveLinks() bool {
	if n.Config.PoolByIP && index.HasInterfacePools(n.all, n.Config.IsOwnPool) {
		return true // they stay so behind a private link service
	}
	return slices.ContainsFunc(n.Services, func(s spec.Service) bool {
		o := spec.Outline(s)
		isNamedOnly := s.UID == "" // a leftover that is known by a tag, maybe a private link service's
		isFixed := func(r network.LoadBalancingRule) bool { return r.EnableFloatingIP == nil || !*r.EnableFloatingIP }
		return key.LinkStays(s.Annotations) || o.Internal || o.Fixed || isNamedOnly || len(s.FormerGroups(key.PrivateLinks)) > 0 ||
			slices.ContainsFunc(n.all, func(lb *index.LoadBalancer) bool {
				// A Service that shares a frontend has rules alone.
				return lb.Internal && lb.Has(o.Owner) || slices.ContainsFunc(lb.RulesOf[o.Owner], isFixed)
			})
	})
}

// machines are the lists that show the members of the backend pools, and machines that may
// join them.
func (n needs) machines() []azure.Query {
	c := n.Config
	ownMachines := azure.Query{Scope: c.MachineGroup(), Type: compute.VirtualMachines}
	sets, alone, flexible := n.involved()
	if c.PoolByIP && !index.HasInterfacePools(n.all, func(string) bool { return true }) {
		if len(c.Balancers) == 0 || !alone {
			return nil
		}
		return []azure.Query{ownMachines} // they name their sets, by which nodes are placed
	}
	lists := []azure.Query{{Scope: c.MachineGroup(), Type: compute.ScaleSets}}
	for _, set := range n.unsettled(sets) {
		lists = append(lists, azure.Query{Scope: set.id, Type: compute.ScaleSetInstances, Expand: "instanceView"})
	}
	if alone {
		interfaces := machine.FindInterfaces(n.Input, n.all)
		for _, group := range interfaces.Groups {
			lists = append(lists, azure.Query{Scope: group, Type: network.Interfaces})
		}
		_, there := n.Have.Get(c.SecurityGroupID())
		_, absent := n.Have.Absent(c.SecurityGroupID())
		wasAsked := there || absent || c.SecurityGroupName == "" // for what is named at first
		if flexible || len(c.Balancers) > 0 || wasAsked && len(interfaces.Missing) > 0 {
			lists = append(lists, ownMachines)
		}
	}
	return lists
}
