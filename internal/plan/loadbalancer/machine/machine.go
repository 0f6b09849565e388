// Package machine reads the machines that can be members of backend pools: scale sets with their
// instances, and machines with network interfaces of their own. Layer L1.
package machine

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/nodes"
)

type networkInterface = azure.Resource[network.Interface]

// Configuration is one IP configuration that can be in backend pools.
type Configuration struct {
	Pools   []azure.Reference
	holder  string // in a profile, the name of the interface's configuration
	name    string
	primary bool // of the machine, and of its interface
	family  v1.IPFamily
	usable  bool // has an address, or will have one
	changed bool
}

// Machine is a machine that exists, or the model of new ones.
type Machine struct {
	ID       azure.ID
	Model    bool
	Excluded map[v1.IPFamily]bool // families whose pools it cannot be in
	Ready    bool                 // it may join
	Fixed    bool                 // it is not to be written at all
	Orphan   bool                 // only a network interface is left of it

	configurations []Configuration
	decided        []azure.ID // pools that it joins or leaves
	holder         azure.ID   // network interface with the configurations, "" where the machine's document has them
}

// Group is a scale set's model with its instances, or all machines that are in no scale set.
type Group struct {
	Model    *Machine
	Machines []*Machine
}

// All are the group's model and machines.
func (g *Group) All() []*Machine {
	if g.Model == nil {
		return g.Machines
	}
	return append([]*Machine{g.Model}, g.Machines...)
}

// Read reads all machines that may be in pools.
func Read(in index.Input, all []*index.LoadBalancer) ([]*Group, error) {
	models, noModels := plan.Views[compute.ScaleSet](in.Have, in.Config.MachineGroup(), compute.ScaleSets)
	instances, noInstances := plan.Views[compute.Instance](in.Have, in.Config.MachineGroup(), compute.ScaleSetInstances)
	if err := cmp.Or(noModels, noInstances); err != nil {
		return nil, err
	}
	var groups []*Group
	sets := map[string]*Group{}
	for _, view := range models {
		g := &Group{Model: OfModel(view)}
		groups = append(groups, g)
		sets[view.ID.Key()] = g
	}
	for _, view := range instances {
		p := view.Properties
		if g, ok := sets[view.ID.Parent().Key()]; ok {
			g.Machines = append(g.Machines, &Machine{ID: view.ID, Ready: isRunning(p), Fixed: isDeleting(p.ProvisioningState),
				Excluded: g.Model.Excluded, configurations: configurationsOf(p.NetworkProfileConfiguration)})
		}
	}
	interfaces, alone := FindInterfaces(in, all), &Group{}
	if err := interfaces.addTo(alone, sets); err != nil {
		return nil, err
	}
	interfaces.showMembers(alone, sets)
	return append(groups, alone), nil
}

var windows2019 = regexp.MustCompile(`(?i)/images/windows-2019-containerd/versions/17763(\.[^.]*){2}$`)

// OfModel is the model of a scale set.
func OfModel(view azure.Resource[compute.ScaleSet]) *Machine {
	m := &Machine{ID: view.ID, Model: true, Ready: true, Fixed: isDeleting(view.Properties.ProvisioningState)}
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

func isTrue(b *bool) bool { return b != nil && *b }

func isDeleting(state string) bool { return strings.EqualFold(state, "Deleting") }

func configurationsOf(p *compute.NetworkProfile) (all []Configuration) {
	if p == nil {
		return nil
	}
	first := onlyOr(p.NetworkInterfaceConfigurations,
		func(c compute.Named[compute.InterfaceConfiguration]) bool {
			return isTrue(c.Properties.Primary)
		})
	for i, holder := range p.NetworkInterfaceConfigurations {
		list := holder.Properties.IPConfigurations
		for _, c := range list {
			all = append(all, Configuration{
				holder: holder.Name, name: c.Name, primary: i == first && (len(list) == 1 || isTrue(c.Properties.Primary)),
				usable: i == first, family: address.FamilyNamed(c.Properties.PrivateIPAddressVersion),
				Pools: c.Properties.LoadBalancerBackendAddressPools,
			})
		}
	}
	return all
}

func onlyOr[T any](list []T, marked func(T) bool) int {
	if len(list) == 1 {
		return 0
	}
	return slices.IndexFunc(list, marked)
}

// CanBeMember reports whether the machine has any IP configuration.
func (m *Machine) CanBeMember() bool { return len(m.configurations) > 0 }

// Node is the machine in a graph, with the pools that it joins and leaves. Other pools stay. An update of a
// scale set or an instance sends the sections that change, and those that Azure requires with them.
func (m *Machine) Node(why string) plan.Node {
	var n plan.Node
	switch {
	case m.Model:
		profile := &compute.Profile{NetworkProfile: m.profile()}
		n = plan.Wanted(azure.Resource[compute.ScaleSet]{ID: m.ID, Properties: compute.ScaleSet{VirtualMachineProfile: profile}}, why)
		n.Only = []string{"location", "extendedLocation", "properties.virtualMachineProfile.networkProfile"}
	case m.holder == "":
		n = plan.Wanted(azure.Resource[compute.Instance]{ID: m.ID,
			Properties: compute.Instance{NetworkProfileConfiguration: m.profile()}}, why)
		n.Only = []string{"location", "properties.hardwareProfile", "properties.networkProfileConfiguration"}
	default:
		view := networkInterface{ID: m.holder}
		for _, c := range m.changes() {
			view.Properties.IPConfigurations = append(view.Properties.IPConfigurations, azure.Child[network.IPConfiguration]{
				Name: c.name, Properties: network.IPConfiguration{LoadBalancerBackendAddressPools: c.Pools}})
		}
		n = plan.Wanted(view, why)
	}
	return n.Owning(azure.Ours(func(pool azure.Reference) bool { return m.decides(pool.ID) }))
}

// profile is the view of the changed configurations in a profile.
func (m *Machine) profile() *compute.NetworkProfile {
	var holders []compute.Named[compute.InterfaceConfiguration]
	for _, c := range m.changes() {
		if n := len(holders); n == 0 || holders[n-1].Name != c.holder {
			holders = append(holders, compute.Named[compute.InterfaceConfiguration]{Name: c.holder})
		}
		of := &holders[len(holders)-1].Properties
		of.IPConfigurations = append(of.IPConfigurations, compute.Named[compute.IPConfiguration]{Name: c.name,
			Properties: compute.IPConfiguration{LoadBalancerBackendAddressPools: c.Pools}})
	}
	return &compute.NetworkProfile{NetworkInterfaceConfigurations: holders}
}

func (m *Machine) decides(pool azure.ID) bool { return slices.ContainsFunc(m.decided, pool.Under) }

// changes are the changed configurations, with those of their pools that are decided.
func (m *Machine) changes() (all []Configuration) {
	for _, c := range m.configurations {
		if c.changed {
			c.Pools = slices.DeleteFunc(slices.Clone(c.Pools), func(r azure.Reference) bool { return !m.decides(r.ID) })
			all = append(all, c)
		}
	}
	return all
}

// ConfigurationFor finds the IP configuration for a family's pools, nil for none. IPv4 is the primary one;
// IPv6 is a second one.
func (m *Machine) ConfigurationFor(family v1.IPFamily) *Configuration {
	i := slices.IndexFunc(m.configurations, func(c Configuration) bool {
		return c.family == family && c.usable && (c.primary || family == v1.IPv6Protocol)
	})
	if i < 0 {
		return nil
	}
	return &m.configurations[i]
}

// In reports whether the machine is in a pool, or in any of a load balancer.
func (m *Machine) In(id azure.ID) bool {
	return slices.ContainsFunc(m.configurations, func(c Configuration) bool { return c.in(id) })
}

func (c *Configuration) in(id azure.ID) bool {
	return slices.ContainsFunc(c.Pools, func(r azure.Reference) bool { return r.ID.Under(id) })
}

// Join puts a configuration of the machine into a pool.
func (m *Machine) Join(c *Configuration, pool azure.ID) {
	c.Pools = append(slices.Clip(c.Pools), azure.Reference{ID: pool})
	c.changed = true
	m.decided = append(m.decided, pool)
}

// Leave takes the machine out of a pool, or all of a load balancer, and reports
// whether it was in any.
func (m *Machine) Leave(id azure.ID) (was bool) {
	for i := range m.configurations {
		if c := &m.configurations[i]; c.in(id) {
			c.Pools = slices.DeleteFunc(slices.Clone(c.Pools), func(r azure.Reference) bool { return r.ID.Under(id) })
			c.changed, was = true, true
		}
	}
	if was {
		m.decided = append(m.decided, id)
	}
	return was
}

// isRunning reports whether an instance is on, or on its way, as far as is known.
func isRunning(vm compute.Instance) bool {
	if isDeleting(vm.ProvisioningState) || strings.EqualFold(vm.ProvisioningState, "Unknown") {
		return false
	}
	off := []nodes.Power{nodes.Stopped, nodes.Stopping, nodes.Deallocated, nodes.Deallocating, nodes.Unknown}
	return vm.InstanceView == nil || !slices.Contains(off, nodes.PowerState(vm.InstanceView))
}
