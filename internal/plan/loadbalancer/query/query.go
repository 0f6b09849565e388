// Package query finds out what must be read of Azure before a decision can be made. Layer L1.
package query

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/machine"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/spec"
)

// Needs names what the snapshot of an input must hold to decide, given what it holds already.
// decide decides the input as far as it has been read.
func Needs(in index.Input, decide func() (plan.Graph, error)) ([]azure.ID, []azure.Query) {
	c := in.Config
	n := needs{in, index.Balancers(in), decide}
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
	for _, group := range index.AddressGroups(in, n.all) {
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
	all    []index.Balancer
	decide func() (plan.Graph, error)
}

// links are the lists of private link services, and of the connections to the services of the commit.
func (n needs) links() []azure.Query {
	if !n.mayHaveLinks() {
		return nil
	}
	keys := make(map[string]bool, len(n.Services))
	for _, s := range n.Services {
		keys[s.Key()] = true
	}
	var lists []azure.Query
	for _, group := range index.LinkGroups(n.Input, n.all) {
		lists = append(lists, azure.Query{Scope: group, Type: network.PrivateLinkServices})
		links, _ := plan.Views[network.PrivateLinkService](n.Have, group, network.PrivateLinkServices) // the decision reports an error
		for _, l := range links {
			if keys[index.LinkOwner(&l)] && index.IsManagedLink(n.Config, &l) && len(l.Properties.PrivateEndpointConnections) > 0 {
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
	owners := make(map[string]bool, len(n.Services))
	for _, s := range n.Services {
		o := spec.Outline(s)
		isNamedOnly := s.UID == "" // a leftover that is known by a tag, maybe a private link service's
		if key.LinkStays(s.Annotations) || o.Internal || o.Fixed || isNamedOnly || len(s.FormerGroups(key.PrivateLinks)) > 0 {
			return true
		}
		owners[o.Owner] = true
	}
	return slices.ContainsFunc(n.all, func(b index.Balancer) bool {
		if cluster.IsInternal(b.ID) {
			return b.HasAnyOf(func(owner string) bool { return owners[owner] })
		}
		return slices.ContainsFunc(b.Properties.LoadBalancingRules, func(r index.Rule) bool {
			f := r.Properties.EnableFloatingIP // a Service that shares a frontend has rules alone
			return owners[naming.Owner(r.Name)] && (f == nil || !*f)
		})
	})
}

// machines are the lists that show the members of the backend pools, and machines that may
// join them.
func (n needs) machines() []azure.Query {
	c := n.Config
	ownMachines := azure.Query{Scope: c.MachineGroup(), Type: compute.VirtualMachines}
	sets, alone := n.machinesInvolved()
	if c.PoolByIP && !index.HasInterfacePools(n.all, func(string) bool { return true }) {
		if len(c.Balancers) == 0 || !alone {
			return nil
		}
		return []azure.Query{ownMachines} // they name their sets, by which nodes are placed
	}
	lists := []azure.Query{{Scope: c.MachineGroup(), Type: compute.ScaleSets}}
	for _, set := range n.unsettled(sets) {
		lists = append(lists, azure.Query{Scope: set, Type: compute.ScaleSetInstances, Expand: "instanceView"})
	}
	if alone {
		interfaces := machine.FindInterfaces(n.Input, n.all)
		for _, group := range interfaces.Groups {
			lists = append(lists, azure.Query{Scope: group, Type: network.Interfaces})
		}
		if n.hasFlexibleSet() || len(c.Balancers) > 0 || n.wasAsked() && len(interfaces.Missing) > 0 {
			lists = append(lists, ownMachines)
		}
	}
	return lists
}

// wasAsked reports whether the snapshot holds what [Needs] names at first: the security group, if any, is
// there then, or known not to exist.
func (n needs) wasAsked() bool {
	if n.Config.SecurityGroupName == "" {
		return true
	}
	_, there := n.Have.Get(n.Config.SecurityGroupID())
	_, absent := n.Have.Absent(n.Config.SecurityGroupID())
	return there || absent
}

func (n needs) scaleSets() []azure.Resource[compute.ScaleSet] {
	sets, _ := plan.Views[compute.ScaleSet](n.Have, n.Config.MachineGroup(), compute.ScaleSets) // the decision reports an error
	return sets
}

func (n needs) hasFlexibleSet() bool {
	return slices.ContainsFunc(n.scaleSets(), func(set azure.Resource[compute.ScaleSet]) bool {
		return strings.EqualFold(set.Properties.OrchestrationMode, "Flexible")
	})
}

// machinesInvolved lists the scale sets of which a decision reads the instances, and says whether it reads machines
// of their own. They are the machines of nodes, machines without a Node, and members of pools. A scale set
// with its model in a pool has at least one instance there.
func (n needs) machinesInvolved() (sets []azure.ID, alone bool) {
	seen := map[string]bool{}
	add := func(machine azure.ID) {
		if machine.Is(compute.VirtualMachines) {
			alone = true
		}
		if id := machine.Parent(); id.Is(compute.ScaleSets) && id.Parent().Equal(n.Config.MachineGroup()) && !seen[id.Key()] {
			seen[id.Key()] = true
			sets = append(sets, id)
		}
	}
	for _, id := range machine.Known(n.Input) {
		add(id)
	}
	for _, m := range machine.Members(n.all) {
		if m.Configuration.Parent().Is(network.Interfaces) {
			alone = true
		} else {
			add(machine.InstanceOf(m.Configuration))
		}
	}
	for _, set := range n.scaleSets() {
		if slices.ContainsFunc(n.all, func(b index.Balancer) bool { return b.Exists && machine.OfModel(set).In(b.ID) }) {
			add(set.ID.Child("virtualMachines", "0"))
		}
	}
	return sets, alone
}
