package machine

import (
	"slices"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/nodes"
)

// IsServed reports whether kaz lets machines like this one into the backend pools.
func IsServed(machine azure.ID, c cluster.Config) bool {
	switch {
	case machine.Is(compute.ScaleSetInstances):
		return machine.Parent().Parent().Equal(c.MachineGroup())
	case machine.Is(compute.VirtualMachines):
		return machine.Parent().Equal(c.MachineGroup())
	}
	return false
}

// Known are the machines of the nodes, and the machines without a Node.
func Known(in index.Input) []azure.ID {
	all := make([]azure.ID, 0, len(in.Nodes)+len(in.DeletedNodes))
	for _, n := range in.Nodes {
		if id, ok := nodes.MachineID(n.Spec.ProviderID); ok {
			all = append(all, id)
		}
	}
	return append(all, in.DeletedNodes...)
}

// Interfaces are the network interfaces of a decision, as far as they have been read. A machine
// that is in no Uniform scale set has network interfaces of its own. Nearly always they are in its
// resource group, and one list has all of them; Azure lets them be in others.
type Interfaces struct {
	in  index.Input
	all []*index.LoadBalancer
	// Groups are the resource groups of the interfaces: first the machines' own, then those that a
	// machine or a pool names.
	Groups []azure.ID
	// Missing are the machines of the cluster, those without a Node included, that
	// have their primary interface in another resource group.
	Missing []azure.ID
}

// FindInterfaces finds the resource groups of the network interfaces.
func FindInterfaces(in index.Input, all []*index.LoadBalancer) Interfaces {
	f := Interfaces{in: in, all: all, Groups: []azure.ID{in.Config.MachineGroup()}, Missing: missing(in)}
	add := func(id azure.ID) {
		if group := id.Parent(); !slices.ContainsFunc(f.Groups, group.Equal) {
			f.Groups = append(f.Groups, group)
		}
	}
	for _, machine := range f.Missing {
		if id, named := primary(in, machine); named {
			add(id)
		}
	}
	for _, m := range Members(all) {
		if holder := m.Configuration.Parent(); holder.Is(network.Interfaces) {
			add(holder)
		}
	}
	return f
}

// Member is an IP configuration in a pool.
type Member struct{ Pool, Configuration azure.ID }

// Members are the members of the pools, as load balancers show them.
func Members(all []*index.LoadBalancer) []Member {
	var list []Member
	for _, b := range all {
		for _, p := range b.Properties.BackendAddressPools {
			pool := b.ID.Child(network.BackendAddressPools, p.Name)
			for _, c := range p.Properties.BackendIPConfigurations {
				list = append(list, Member{pool, c.ID})
			}
		}
	}
	return list
}

// InstanceOf is the machine that an IP configuration belongs to.
func InstanceOf(configuration azure.ID) azure.ID { return configuration.Parent().Parent() }

func missing(in index.Input) []azure.ID {
	alone := slices.DeleteFunc(Known(in), func(id azure.ID) bool {
		return !id.Is(compute.VirtualMachines) || !IsServed(id, in.Config)
	})
	if len(alone) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, d := range in.Have.List(in.Config.MachineGroup(), network.Interfaces) {
		// A document that cannot be read is reported by Read.
		if i, err := azure.Decode[network.Interface](d); err == nil && i.Properties.VirtualMachine != nil && !isSecondary(i) {
			known[i.Properties.VirtualMachine.ID.Key()] = true
		}
	}
	return slices.DeleteFunc(alone, func(id azure.ID) bool { return known[id.Key()] })
}

// isSecondary reports whether a network interface says that another one is its machine's primary one.
func isSecondary(i networkInterface) bool {
	return i.Properties.Primary != nil && !*i.Properties.Primary
}

// primary is the primary network interface that a machine names, as far as it has been read.
func primary(in index.Input, machine azure.ID) (azure.ID, bool) {
	view, _, _ := plan.View[compute.Instance](in.Have, machine)
	if view.Properties.NetworkProfile == nil {
		return "", false
	}
	all := view.Properties.NetworkProfile.NetworkInterfaces
	i := onlyOr(all, func(c compute.InterfaceReference) bool { return isTrue(c.Properties.Primary) })
	if i < 0 {
		return "", false
	}
	return all[i].ID, true
}

// Unread is a machine's primary network interface that could not be read, and why.
func Unread(in index.Input, machine azure.ID) (id azure.ID, why azure.Kind, unread bool) {
	id, _ = primary(in, machine)
	why, unread = in.Have.Unread(id.Parent(), network.Interfaces)
	return id, why, unread
}

// shown are the machines with a network interface in a resource group that may
// not be read, as far as load balancers show it in their pools. None of them is written.
func (f Interfaces) shown() []*Group {
	isHidden := func(group azure.ID) bool {
		_, unread := f.in.Have.Unread(group, network.Interfaces)
		return unread
	}
	if !slices.ContainsFunc(f.Groups, isHidden) {
		return nil
	}
	hidden := map[string]azure.ID{} // machines, by id key of the interface
	for _, id := range f.Missing {
		if i, named := primary(f.in, id); named && isHidden(i.Parent()) {
			hidden[i.Key()] = id
		}
	}
	var groups []*Group
	for _, m := range Members(f.all) {
		if id, is := hidden[m.Configuration.Parent().Key()]; is {
			groups = append(groups, &Group{Machines: []*Machine{shown(id, m.Pool)}})
		}
	}
	return groups
}

// shown is a machine of which only its pools are known.
func shown(id, pool azure.ID) *Machine {
	m := &Machine{ID: id, Fixed: true, configurations: make([]Configuration, 1)}
	m.show(pool)
	return m
}

func (m *Machine) show(pool azure.ID) {
	c := &m.configurations[0]
	c.Pools = append(c.Pools, azure.Reference{ID: pool})
}
