package machine

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/nodes"
)

// IsServed reports whether kaz lets machines like this one into the backend pools.
func IsServed(machine azure.ID, c cluster.Config) bool {
	if machine.Is(compute.ScaleSetInstances) {
		machine = machine.Parent()
	} else if !machine.Is(compute.VirtualMachines) {
		return false
	}
	return machine.Parent().Equal(c.MachineGroup())
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
	// Elsewhere says that a machine of the cluster, with or without a Node, has its primary interface in another
	// resource group.
	Elsewhere bool
	hidden    map[string]azure.ID // those machines where it may not be read, by id key of the interface
}

// FindInterfaces finds the resource groups of the network interfaces.
func FindInterfaces(in index.Input, all []*index.LoadBalancer) Interfaces {
	f := Interfaces{in: in, all: all, Groups: []azure.ID{in.Config.MachineGroup()}, hidden: map[string]azure.ID{}}
	known := map[string]bool{}                                                           // machines, by id key
	listed, _ := plan.Views[network.Interface](in.Have, f.Groups[0], network.Interfaces) // Read reports an error
	for _, i := range listed {
		if p := i.Properties.Primary; p == nil || *p {
			known[i.Properties.VirtualMachine.To().Key()] = true
		}
	}
	var machines, named []azure.ID // named are interfaces that machines and pools name
	for _, n := range in.Nodes {
		id, _ := nodes.MachineID(n.Spec.ProviderID)
		machines = append(machines, id)
	}
	for _, machine := range append(machines, in.DeletedNodes...) {
		if !machine.Is(compute.VirtualMachines) || !IsServed(machine, in.Config) || known[machine.Key()] {
			continue
		}
		f.Elsewhere = true
		id, _, unread := Unread(in, machine)
		named = append(named, id)
		if unread {
			f.hidden[id.Key()] = machine
		}
	}
	for _, m := range Members(all) {
		named = append(named, m.Configuration.Parent())
	}
	for _, id := range named {
		if group := id.Parent(); id.Is(network.Interfaces) && !slices.ContainsFunc(f.Groups, group.Equal) {
			f.Groups = append(f.Groups, group)
		}
	}
	return f
}

// primary is the primary network interface that a machine names, "" as long as that has not been read.
func primary(in index.Input, machine azure.ID) azure.ID {
	view, _, _ := plan.View[compute.Instance](in.Have, machine)
	if view.Properties.NetworkProfile == nil {
		return ""
	}
	all := view.Properties.NetworkProfile.NetworkInterfaces
	i := onlyOr(all, func(c compute.InterfaceReference) bool { return isTrue(c.Properties.Primary) })
	if i < 0 {
		return ""
	}
	return all[i].ID
}

// Unread is a machine's primary network interface that could not be read, and why.
func Unread(in index.Input, machine azure.ID) (id azure.ID, why azure.Kind, unread bool) {
	id = primary(in, machine)
	why, unread = in.Have.Unread(id.Parent(), network.Interfaces)
	return id, why, unread
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

// addTo adds machines with network interfaces of their own, each with its primary one: in other resource groups than
// the machines' own those of the cluster. Machines of a flexible scale set join its group. An interface without a
// machine is an orphan that can be left in a pool.
func (f Interfaces) addTo(alone *Group, sets map[string]*Group) error {
	var order []string
	byMachine := map[string][]networkInterface{}
	for i, group := range f.Groups {
		views, err := plan.Views[network.Interface](f.in.Have, group, network.Interfaces)
		if err != nil {
			return err
		}
		for _, view := range views {
			vm := view.Properties.VirtualMachine.To()
			switch key := vm.Key(); {
			case vm == "":
				if m := ofInterface(view); m.In(f.in.Config.NetworkGroup()) {
					m.Orphan = true
					alone.Machines = append(alone.Machines, m)
				}
			case view.ID.Is(network.Interfaces) && (i == 0 || IsServed(vm, f.in.Config)):
				if len(byMachine[key]) == 0 {
					order = append(order, key)
				}
				byMachine[key] = append(byMachine[key], view)
			}
		}
	}
	for _, key := range order {
		m := f.machineWith(byMachine[key])
		if m == nil {
			continue
		}
		vm, _, err := plan.View[compute.VirtualMachine](f.in.Have, m.ID)
		if err != nil {
			return err
		}
		g := alone
		if set, ok := sets[vm.Properties.VirtualMachineScaleSet.To().Key()]; ok {
			g, m.Excluded = set, set.Model.Excluded
		}
		g.Machines = append(g.Machines, m)
	}
	return nil
}

// machineWith is a machine by the primary one of its network interfaces, nil where none is.
func (f Interfaces) machineWith(all []networkInterface) *Machine {
	i := onlyOr(all, func(n networkInterface) bool { return isTrue(n.Properties.Primary) })
	if i < 0 {
		return nil
	}
	m := ofInterface(all[i])
	if p := all[i].Properties.Primary; p != nil && !*p { // another one is the machine's primary one
		id := primary(f.in, m.ID)
		m.Ready = m.Ready && (id == "" || id.Equal(all[i].ID)) // else that one is where it may not be read
	}
	return m
}

// ofInterface is a machine by its primary network interface.
func ofInterface(view networkInterface) *Machine {
	m := &Machine{
		ID: cmp.Or(view.Properties.VirtualMachine.To(), view.ID), holder: view.ID,
		Ready: !strings.EqualFold(view.Properties.ProvisioningState, "Failed"), Fixed: isDeleting(view.Properties.ProvisioningState),
	}
	list := view.Properties.IPConfigurations
	for _, c := range list {
		p := c.Properties
		m.configurations = append(m.configurations, Configuration{
			name: c.Name, primary: len(list) == 1 || isTrue(p.Primary), family: address.FamilyNamed(p.PrivateIPAddressVersion),
			usable: p.PrivateIPAddress != "", Pools: p.LoadBalancerBackendAddressPools,
		})
	}
	return m
}

// showMembers adds the machines of which only the load balancers' pools tell: instances that were not read, because none
// of their scale set leaves, and machines with a network interface in a resource group that may not be read. None of them
// is written.
func (f Interfaces) showMembers(alone *Group, sets map[string]*Group) {
	maps.DeleteFunc(sets, func(_ string, g *Group) bool { return len(g.Machines) > 0 })
	if len(sets)+len(f.hidden) == 0 {
		return
	}
	known := map[string]*Machine{}
	for _, m := range Members(f.all) {
		id := InstanceOf(m.Configuration)
		g := sets[id.Parent().Key()]
		if machine, isHidden := f.hidden[m.Configuration.Parent().Key()]; isHidden {
			id, g = machine, alone
		}
		if g == nil {
			continue
		}
		one := known[id.Key()]
		if one == nil {
			one = &Machine{ID: id, Fixed: true, configurations: make([]Configuration, 1)}
			known[id.Key()] = one
			g.Machines = append(g.Machines, one)
		}
		one.configurations[0].Pools = append(one.configurations[0].Pools, azure.Reference{ID: m.Pool})
	}
}
