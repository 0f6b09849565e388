// Package machine reads the machines that can be members of backend pools: scale sets with their
// instances, and machines with network interfaces of their own. Layer L1.
package machine

import (
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

type (
	scaleSet         = azure.Resource[compute.ScaleSet]
	instance         = azure.Resource[compute.Instance]
	networkInterface = azure.Resource[network.Interface]
)

// The sections that an update of a scale set or an instance sends: what changes,
// and what Azure requires with it.
var (
	modelSections    = []string{"location", "extendedLocation", "properties.virtualMachineProfile.networkProfile"}
	instanceSections = []string{"location", "properties.hardwareProfile", "properties.networkProfileConfiguration"}
)

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
	node           func(m *Machine, why string) plan.Node
}

// Group is a scale set's model with its instances, or a machine alone.
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
	var groups []*Group
	sets := map[string]*Group{}
	for _, d := range in.Have.List(in.Config.MachineGroup(), compute.ScaleSets) {
		view, err := azure.Decode[compute.ScaleSet](d)
		if err != nil {
			return nil, err
		}
		g := &Group{Model: OfModel(view)}
		groups = append(groups, g)
		sets[view.ID.Key()] = g
	}
	for _, d := range in.Have.List(in.Config.MachineGroup(), compute.ScaleSetInstances) {
		view, err := azure.Decode[compute.Instance](d)
		if err != nil {
			return nil, err
		}
		if g, ok := sets[view.ID.Parent().Key()]; ok {
			g.Machines = append(g.Machines, ofInstance(view, g.Model.Excluded))
		}
	}
	showInstances(all, sets)
	interfaces := FindInterfaces(in, all)
	alone, err := interfaces.machines(sets)
	return slices.Concat(groups, alone, interfaces.shown()), err
}

// showInstances adds to scale sets without a list of instances the instances that load balancers show in
// their pools. None of them leaves, or all would have been read.
func showInstances(all []*index.LoadBalancer, sets map[string]*Group) {
	unread := map[string]*Group{}
	for key, g := range sets {
		if len(g.Machines) == 0 {
			unread[key] = g
		}
	}
	if len(unread) == 0 {
		return
	}
	known := map[string]*Machine{}
	for _, m := range Members(all) {
		id := InstanceOf(m.Configuration)
		g, isUnread := unread[id.Parent().Key()]
		if !isUnread {
			continue
		}
		if one, again := known[id.Key()]; again {
			one.show(m.Pool)
			continue
		}
		one := shown(id, m.Pool)
		known[id.Key()] = one
		g.Machines = append(g.Machines, one)
	}
}

// machines reads machines with network interfaces of their own, each with its primary one. Machines of a
// flexible scale set join its group. An interface without a machine is an orphan that can be left in a pool.
func (f Interfaces) machines(sets map[string]*Group) ([]*Group, error) {
	setOf, err := f.flexibleSets()
	if err != nil {
		return nil, err
	}
	all, err := f.read()
	if err != nil {
		return nil, err
	}
	var groups []*Group
	var order []string
	byMachine := map[string][]networkInterface{}
	for _, view := range all {
		if vm := view.Properties.VirtualMachine; vm != nil && view.ID.Is(network.Interfaces) {
			if len(byMachine[vm.ID.Key()]) == 0 {
				order = append(order, vm.ID.Key())
			}
			byMachine[vm.ID.Key()] = append(byMachine[vm.ID.Key()], view)
		} else if m := ofInterface(view); vm == nil && m.In(f.in.Config.NetworkGroup()) {
			m.Orphan = true
			groups = append(groups, &Group{Machines: []*Machine{m}})
		}
	}
	for _, key := range order {
		m := f.machineWith(byMachine[key])
		if m == nil {
			continue
		}
		if g, ok := sets[setOf[key].Key()]; ok {
			m.Excluded = g.Model.Excluded
			g.Machines = append(g.Machines, m)
			continue
		}
		groups = append(groups, &Group{Machines: []*Machine{m}})
	}
	return groups, nil
}

// machineWith is a machine by the primary one of its network interfaces, nil where none is.
func (f Interfaces) machineWith(all []networkInterface) *Machine {
	i := onlyOr(all, func(n networkInterface) bool { return isTrue(n.Properties.Primary) })
	if i < 0 {
		return nil
	}
	m := ofInterface(all[i])
	if !isSecondary(all[i]) {
		return m
	}
	if id, named := primary(f.in, m.ID); named && !id.Equal(all[i].ID) {
		m.Ready = false // that one is where it may not be read
	}
	return m
}

// flexibleSets are the flexible scale sets of machines, by the machine's id key.
func (f Interfaces) flexibleSets() (map[string]azure.ID, error) {
	sets := map[string]azure.ID{}
	for _, d := range f.in.Have.List(f.in.Config.MachineGroup(), compute.VirtualMachines) {
		vm, err := azure.Decode[compute.VirtualMachine](d)
		if err != nil {
			return nil, err
		}
		if ref := vm.Properties.VirtualMachineScaleSet; ref != nil {
			sets[vm.ID.Key()] = ref.ID
		}
	}
	return sets, nil
}

// read reads network interfaces: all of the machines' own resource group, and in other groups those of the
// cluster's machines and orphans.
func (f Interfaces) read() ([]networkInterface, error) {
	var all []networkInterface
	for i, group := range f.Groups {
		for _, d := range f.in.Have.List(group, network.Interfaces) {
			view, err := azure.Decode[network.Interface](d)
			if err != nil {
				return nil, err
			}
			if vm := view.Properties.VirtualMachine; i == 0 || vm == nil || IsServed(vm.ID, f.in.Config) {
				all = append(all, view)
			}
		}
	}
	return all, nil
}

// OfModel is the model of a scale set.
func OfModel(view scaleSet) *Machine {
	m := &Machine{
		ID: view.ID, Model: true, Ready: true, Excluded: excludedFamilies(view), Fixed: isDeleting(view.Properties.ProvisioningState),
		node: func(m *Machine, why string) plan.Node {
			n := plan.Wanted(scaleSet{ID: view.ID,
				Properties: compute.ScaleSet{VirtualMachineProfile: &compute.Profile{NetworkProfile: m.profile()}}}, why)
			n.Only = modelSections
			return n
		},
	}
	if p := view.Properties.VirtualMachineProfile; p != nil {
		m.configurations = configurationsOf(p.NetworkProfile)
	}
	return m
}

func ofInstance(view instance, excluded map[v1.IPFamily]bool) *Machine {
	return &Machine{
		ID: view.ID, Ready: isRunning(view), configurations: configurationsOf(view.Properties.NetworkProfileConfiguration),
		Excluded: excluded, Fixed: isDeleting(view.Properties.ProvisioningState),
		node: func(m *Machine, why string) plan.Node {
			n := plan.Wanted(instance{ID: view.ID, Properties: compute.Instance{NetworkProfileConfiguration: m.profile()}}, why)
			n.Only = instanceSections
			return n
		},
	}
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

// ofInterface is a machine by its primary network interface.
func ofInterface(view networkInterface) *Machine {
	m := &Machine{
		ID: view.ID, Ready: !strings.EqualFold(view.Properties.ProvisioningState, "Failed"),
		Fixed: isDeleting(view.Properties.ProvisioningState),
		node: func(m *Machine, why string) plan.Node {
			var list []azure.Child[network.IPConfiguration]
			for _, c := range m.changes() {
				list = append(list, azure.Child[network.IPConfiguration]{Name: c.name,
					Properties: network.IPConfiguration{LoadBalancerBackendAddressPools: c.Pools}})
			}
			return plan.Wanted(networkInterface{ID: view.ID, Properties: network.Interface{IPConfigurations: list}}, why)
		},
	}
	if vm := view.Properties.VirtualMachine; vm != nil {
		m.ID = vm.ID
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

func isTrue(b *bool) bool { return b != nil && *b }

func isDeleting(state string) bool { return strings.EqualFold(state, "Deleting") }

// configurationsOf lists the IP configurations of a profile.
func configurationsOf(p *compute.NetworkProfile) (all []Configuration) {
	if p == nil {
		return nil
	}
	first := onlyOr(p.NetworkInterfaceConfigurations,
		func(c compute.Named[compute.InterfaceConfiguration]) bool { return isTrue(c.Properties.Primary) })
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

// excludedFamilies are the families of pools that a scale set cannot be in: Windows Server 2019
// cannot be in pools of IPv6.
func excludedFamilies(set scaleSet) map[v1.IPFamily]bool {
	p := set.Properties.VirtualMachineProfile
	if p == nil || p.StorageProfile == nil || p.StorageProfile.OSDisk == nil || p.StorageProfile.ImageReference == nil ||
		!strings.EqualFold(p.StorageProfile.OSDisk.OSType, "Windows") {
		return nil
	}
	image := strings.ToLower(string(p.StorageProfile.ImageReference.ID))
	_, version, found := strings.Cut(image, "/images/windows-2019-containerd/versions/")
	parts := strings.Split(version, ".")
	if !found || len(parts) != 3 || parts[0] != "17763" {
		return nil
	}
	return map[v1.IPFamily]bool{v1.IPv6Protocol: true}
}

func (m *Machine) CanBeMember() bool { return len(m.configurations) > 0 }

// Node is the machine in a graph, with the pools that it joins and leaves. Other pools stay.
func (m *Machine) Node(why string) plan.Node {
	return m.node(m, why).Owning(azure.Ours(func(pool azure.Reference) bool { return m.decides(pool.ID) }))
}

func (m *Machine) decides(pool azure.ID) bool { return slices.ContainsFunc(m.decided, pool.Under) }

// changes are the changed configurations, with those of their pools that are decided.
func (m *Machine) changes() (all []Configuration) {
	for _, c := range m.configurations {
		if c.changed {
			pools := []azure.Reference{}
			for _, pool := range c.Pools {
				if m.decides(pool.ID) {
					pools = append(pools, pool)
				}
			}
			c.Pools = pools
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
func isRunning(vm instance) bool {
	if isDeleting(vm.Properties.ProvisioningState) || strings.EqualFold(vm.Properties.ProvisioningState, "Unknown") {
		return false
	}
	if vm.Properties.InstanceView == nil {
		return true
	}
	switch nodes.PowerState(vm.Properties.InstanceView) {
	case nodes.Stopped, nodes.Stopping, nodes.Deallocated, nodes.Deallocating, nodes.Unknown:
		return false
	}
	return true
}
