package backend

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/nodes"
)

type networkInterface = azure.Resource[network.Interface]

// configuration is one IP configuration that can be in backend pools.
type configuration struct {
	holder string // in a profile, the name of the interface's configuration
	name   string
	family v1.IPFamily
	// usable says that the machine joins the family's pools with this configuration: it has an address, or will have one.
	// For IPv4 it is the primary configuration of the machine's primary interface; for IPv6 it is a second one there.
	usable bool
	pools  []azure.Reference
	joined []azure.Reference // pools that are new, nil where no pool is new and none is left
}

// Machine is a machine that exists, or the model of new ones.
type Machine struct {
	ID       azure.ID
	Excluded map[v1.IPFamily]bool // families whose pools it cannot be in

	isModel   bool
	instances []*Machine // of a model
	ready     bool       // it may join
	fixed     bool       // it is not to be written at all
	orphan    bool       // only a network interface is left of it

	configurations []configuration
	holder         azure.ID // network interface with the configurations, "" where the machine's document has them

	role    cluster.Role // of its node; of a model see readRoles
	decided []azure.ID   // pools that it joins or leaves
	why     string       // the last reason for that
	after   []azure.ID   // machines that are written before
}

// ReadMachines reads all machines that may be in pools. It returns the model of each scale set with its instances, and
// then the machines that are in no scale set.
func ReadMachines(in index.Input, balancers []*index.LoadBalancer) ([]*Machine, error) {
	views, noModels := plan.Views[compute.ScaleSet](in.Have, in.Config.MachineGroup(), compute.ScaleSets)
	instances, noInstances := plan.Views[compute.Instance](in.Have, in.Config.MachineGroup(), compute.ScaleSetInstances)
	if err := cmp.Or(noModels, noInstances); err != nil {
		return nil, err
	}
	models := make([]*Machine, len(views))
	sets := make(map[string]*Machine, len(views))
	for i, view := range views {
		models[i] = ModelOf(view)
		sets[view.ID.Key()] = models[i]
	}
	for _, view := range instances {
		p := view.Properties
		if set := sets[view.ID.Parent().Key()]; set != nil {
			set.instances = append(set.instances, &Machine{ID: view.ID, ready: isRunning(p), fixed: isDeleting(p.ProvisioningState),
				Excluded: set.Excluded, configurations: configurationsOf(p.NetworkProfileConfiguration)})
		}
	}
	interfaces, alone := FindInterfaces(in, balancers), &Machine{} // alone holds the machines that are in no scale set
	if err := addInterfaces(in, interfaces.Groups, sets, alone); err != nil {
		return nil, err
	}
	addMembers(balancers, interfaces.hidden, sets, alone)
	var all []*Machine
	for _, model := range models {
		all = append(append(all, model), model.instances...)
	}
	return append(all, alone.instances...), nil
}

var windows2019 = regexp.MustCompile(`(?i)/images/windows-2019-containerd/versions/17763(\.[^.]*){2}$`)

// ModelOf is the model of a scale set.
func ModelOf(view azure.Resource[compute.ScaleSet]) *Machine {
	m := &Machine{ID: view.ID, isModel: true, ready: true, fixed: isDeleting(view.Properties.ProvisioningState)}
	p := view.Properties.VirtualMachineProfile
	if p == nil {
		return m
	}
	m.configurations = configurationsOf(p.NetworkProfile)
	if s := p.StorageProfile; s != nil && s.OSDisk != nil && s.ImageReference != nil && strings.EqualFold(s.OSDisk.OSType, "Windows") &&
		windows2019.MatchString(string(s.ImageReference.ID)) {
		m.Excluded = map[v1.IPFamily]bool{v1.IPv6Protocol: true} // Windows Server 2019 cannot be in pools of IPv6
	}
	return m
}

func isDeleting(state string) bool { return strings.EqualFold(state, "Deleting") }

// isRunning reports whether an instance is on, or on its way, as far as is known.
func isRunning(vm compute.Instance) bool {
	off := []nodes.Power{nodes.Stopped, nodes.Stopping, nodes.Deallocated, nodes.Deallocating, nodes.Unknown}
	return !strings.EqualFold(vm.ProvisioningState, "Unknown") &&
		(vm.InstanceView == nil || !slices.Contains(off, nodes.PowerState(vm.InstanceView)))
}

// isPrimary reports whether one of several is the primary one. A single one need not be marked.
func isPrimary(several int, mark *bool) bool { return several == 1 || mark != nil && *mark }

func configurationsOf(p *compute.NetworkProfile) (all []configuration) {
	if p == nil {
		return nil
	}
	for _, holder := range p.NetworkInterfaceConfigurations {
		inPrimary := isPrimary(len(p.NetworkInterfaceConfigurations), holder.Properties.Primary)
		list := holder.Properties.IPConfigurations
		for _, c := range list {
			family := address.FamilyNamed(c.Properties.PrivateIPAddressVersion)
			all = append(all, configuration{
				holder: holder.Name, name: c.Name, family: family, pools: c.Properties.LoadBalancerBackendAddressPools,
				usable: inPrimary && (family == v1.IPv6Protocol || isPrimary(len(list), c.Properties.Primary)),
			})
		}
	}
	return all
}

// ofInterface returns a machine as its primary network interface shows it, or the only interface that may be read.
func ofInterface(in index.Input, view networkInterface) *Machine {
	vm, state, list := view.Properties.VirtualMachine.To(), view.Properties.ProvisioningState, view.Properties.IPConfigurations
	m := &Machine{ID: cmp.Or(vm, view.ID), holder: view.ID, orphan: vm == "",
		ready: !strings.EqualFold(state, "Failed"), fixed: isDeleting(state)}
	if mark := view.Properties.Primary; mark != nil && !*mark { // another one is the machine's primary one
		id := primaryInterface(in, vm)
		m.ready = m.ready && (id == "" || id.Equal(view.ID)) // else that one is where it may not be read
	}
	for _, c := range list {
		p, family := c.Properties, address.FamilyNamed(c.Properties.PrivateIPAddressVersion)
		m.configurations = append(m.configurations, configuration{
			name: c.Name, family: family, pools: p.LoadBalancerBackendAddressPools,
			usable: p.PrivateIPAddress != "" && (family == v1.IPv6Protocol || isPrimary(len(list), p.Primary)),
		})
	}
	return m
}

// isServed reports whether kaz lets machines like this one into the backend pools.
func isServed(machine azure.ID, c cluster.Config) bool {
	return machine.Is(compute.VirtualMachines) && machine.Parent().Equal(c.MachineGroup()) ||
		machine.Is(compute.ScaleSetInstances) && machine.Parent().Parent().Equal(c.MachineGroup())
}

// Interfaces are the network interfaces of a decision, as far as they have been read. A machine
// that is in no Uniform scale set has network interfaces of its own. Nearly always they are in its
// resource group, and one list has all of them; Azure lets them be in others.
type Interfaces struct {
	// Groups are the resource groups of the interfaces: first the machines' own, then those that a
	// machine or a pool names.
	Groups []azure.ID
	// Elsewhere says that a machine of the cluster, with or without a Node, has its primary interface in another
	// resource group.
	Elsewhere bool
	hidden    map[string]azure.ID // those machines where it may not be read, by id key of the interface
}

// FindInterfaces finds the resource groups of the network interfaces.
func FindInterfaces(in index.Input, balancers []*index.LoadBalancer) Interfaces {
	f := Interfaces{Groups: []azure.ID{in.Config.MachineGroup()}, hidden: map[string]azure.ID{}}
	known := map[string]bool{}                                                           // machines, by id key
	listed, _ := plan.Views[network.Interface](in.Have, f.Groups[0], network.Interfaces) // ReadMachines reports an error
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
		if !machine.Is(compute.VirtualMachines) || !isServed(machine, in.Config) || known[machine.Key()] {
			continue
		}
		f.Elsewhere = true
		id, _, unread := unreadInterface(in, machine)
		named = append(named, id)
		if unread {
			f.hidden[id.Key()] = machine
		}
	}
	for _, m := range Members(balancers) {
		named = append(named, m.Interface)
	}
	for _, id := range named {
		if group := id.Parent(); id.Is(network.Interfaces) && !slices.ContainsFunc(f.Groups, group.Equal) {
			f.Groups = append(f.Groups, group)
		}
	}
	return f
}

// primaryInterface is the primary network interface that a machine names, "" as long as that has not been read.
func primaryInterface(in index.Input, machine azure.ID) azure.ID {
	view, _, _ := plan.View[compute.Instance](in.Have, machine)
	if p := view.Properties.NetworkProfile; p != nil {
		for _, i := range p.NetworkInterfaces {
			if isPrimary(len(p.NetworkInterfaces), i.Properties.Primary) {
				return i.ID
			}
		}
	}
	return ""
}

// unreadInterface is a machine's primary network interface that could not be read, and why.
func unreadInterface(in index.Input, machine azure.ID) (id azure.ID, why azure.Kind, unread bool) {
	id = primaryInterface(in, machine)
	why, unread = in.Have.Unread(id.Parent(), network.Interfaces)
	return id, why, unread
}

// Member is a network interface in a pool. The interface of a scale set's instance has an id below the instance's id.
type Member struct{ Pool, Interface azure.ID }

// Members are the members of the pools, as load balancers show them.
func Members(balancers []*index.LoadBalancer) []Member {
	var list []Member
	for _, lb := range balancers {
		for _, p := range lb.Properties.BackendAddressPools {
			pool := lb.ID.Child(network.BackendAddressPools, p.Name)
			for _, c := range p.Properties.BackendIPConfigurations {
				list = append(list, Member{pool, c.ID.Parent()})
			}
		}
	}
	return list
}

// addInterfaces adds machines with network interfaces of their own, each with its primary one. Outside of the machines'
// own resource group, only machines of the cluster count. Machines of a flexible scale set become its instances. An
// interface without a machine is an orphan that can be left in a pool.
func addInterfaces(in index.Input, groups []azure.ID, sets map[string]*Machine, alone *Machine) error {
	var own []networkInterface
	count := map[string]int{} // by machine
	for i, group := range groups {
		views, err := plan.Views[network.Interface](in.Have, group, network.Interfaces)
		if err != nil {
			return err
		}
		for _, view := range views {
			vm := view.Properties.VirtualMachine.To()
			switch {
			case vm == "":
				if m := ofInterface(in, view); m.In(in.Config.NetworkGroup()) {
					alone.instances = append(alone.instances, m)
				}
			case view.ID.Is(network.Interfaces) && (i == 0 || isServed(vm, in.Config)):
				own = append(own, view)
				count[vm.Key()]++
			}
		}
	}
	for _, view := range own {
		if !isPrimary(count[view.Properties.VirtualMachine.To().Key()], view.Properties.Primary) {
			continue
		}
		m := ofInterface(in, view)
		vm, _, err := plan.View[compute.VirtualMachine](in.Have, m.ID)
		if err != nil {
			return err
		}
		set := cmp.Or(sets[vm.Properties.VirtualMachineScaleSet.To().Key()], alone)
		m.Excluded = set.Excluded
		set.instances = append(set.instances, m)
	}
	return nil
}

// addMembers adds the machines that only the load balancers' pools show. Some are instances that were not read, because
// no machine of their scale set changes its pools. Others have their network interface in a resource group that may not
// be read. None of them is written.
func addMembers(balancers []*index.LoadBalancer, hidden map[string]azure.ID, sets map[string]*Machine, alone *Machine) {
	maps.DeleteFunc(sets, func(_ string, set *Machine) bool { return len(set.instances) > 0 })
	if len(sets)+len(hidden) == 0 {
		return
	}
	known := map[string]*Machine{}
	for _, m := range Members(balancers) {
		id := m.Interface.Parent()
		set := sets[id.Parent().Key()]
		if machine, isHidden := hidden[m.Interface.Key()]; isHidden {
			id, set = machine, alone
		}
		if set == nil {
			continue
		}
		one := known[id.Key()]
		if one == nil {
			one = &Machine{ID: id, fixed: true}
			known[id.Key()] = one
			set.instances = append(set.instances, one)
		}
		one.configurations = append(one.configurations, configuration{pools: []azure.Reference{{ID: m.Pool}}})
	}
}

// In reports whether the machine is in a pool, or in any of a load balancer.
func (m *Machine) In(id azure.ID) bool {
	return slices.ContainsFunc(m.configurations, func(c configuration) bool { return c.in(id) })
}

func (c *configuration) in(id azure.ID) bool {
	return slices.ContainsFunc(c.pools, func(r azure.Reference) bool { return r.ID.Under(id) })
}

// leave takes the machine out of a pool, or all of a load balancer.
func (m *Machine) leave(id azure.ID, why string) {
	if m.fixed || !m.In(id) {
		return
	}
	for i := range m.configurations {
		if c := &m.configurations[i]; c.in(id) {
			c.pools = slices.DeleteFunc(slices.Clone(c.pools), func(r azure.Reference) bool { return r.ID.Under(id) })
			c.joined = append([]azure.Reference{}, c.joined...)
		}
	}
	m.decided, m.why = append(m.decided, id), why
}

// node is the machine in a graph, with the pools that it joins and leaves. Other pools stay. An update of a
// scale set or an instance sends the sections that change, and those that Azure requires with them.
func (m *Machine) node() plan.Node {
	changed := slices.DeleteFunc(slices.Clone(m.configurations), func(c configuration) bool { return c.joined == nil })
	var n plan.Node
	switch {
	case m.isModel:
		profile := &compute.Profile{NetworkProfile: profile(changed)}
		n = plan.Wanted(azure.Resource[compute.ScaleSet]{ID: m.ID, Properties: compute.ScaleSet{VirtualMachineProfile: profile}}, m.why)
		n.Only = []string{"location", "extendedLocation", "properties.virtualMachineProfile.networkProfile"}
	case m.holder == "":
		n = plan.Wanted(azure.Resource[compute.Instance]{ID: m.ID,
			Properties: compute.Instance{NetworkProfileConfiguration: profile(changed)}}, m.why)
		n.Only = []string{"location", "properties.hardwareProfile", "properties.networkProfileConfiguration"}
	default:
		view := networkInterface{ID: m.holder}
		for _, c := range changed {
			view.Properties.IPConfigurations = append(view.Properties.IPConfigurations, azure.Child[network.IPConfiguration]{
				Name: c.name, Properties: network.IPConfiguration{LoadBalancerBackendAddressPools: c.joined}})
		}
		n = plan.Wanted(view, m.why)
	}
	n.After = m.after
	return n.Owning(azure.Ours(func(pool azure.Reference) bool { return slices.ContainsFunc(m.decided, pool.ID.Under) }))
}

// profile is the view of the changed configurations in a profile.
func profile(changed []configuration) *compute.NetworkProfile {
	var holders []compute.Named[compute.InterfaceConfiguration]
	for _, c := range changed {
		if n := len(holders); n == 0 || holders[n-1].Name != c.holder {
			holders = append(holders, compute.Named[compute.InterfaceConfiguration]{Name: c.holder})
		}
		of := &holders[len(holders)-1].Properties
		of.IPConfigurations = append(of.IPConfigurations, compute.Named[compute.IPConfiguration]{Name: c.name,
			Properties: compute.IPConfiguration{LoadBalancerBackendAddressPools: c.joined}})
	}
	return &compute.NetworkProfile{NetworkInterfaceConfigurations: holders}
}
