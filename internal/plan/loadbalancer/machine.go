package loadbalancer

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/nodes"
)

type (
	scaleSet = azure.Resource[compute.ScaleSet]
	instance = azure.Resource[compute.Instance]
	nic      = azure.Resource[network.Interface]
)

// The sections that an update of a scale set or an instance sends: what changes,
// and what Azure demands beside it.
var (
	modelSections    = []string{"location", "extendedLocation", "properties.virtualMachineProfile.networkProfile"}
	instanceSections = []string{"location", "properties.hardwareProfile", "properties.networkProfileConfiguration"}
)

// slot is one IP configuration that can be in backend pools.
type slot struct {
	primary bool // of the machine, and of its interface
	family  v1.IPFamily
	usable  bool // has an address, or will have one
	pools   *[]azure.Reference
}

// machine is something with slots: a machine that is there, or the model of those to
// come. Its slots point into a copy of its document, which node makes a graph's node.
type machine struct {
	id       azure.ID
	model    bool
	slots    []slot
	excluded map[v1.IPFamily]bool // families whose pools it cannot be in
	ready    bool                 // to be let in
	fixed    bool                 // not to be written at all
	orphan   bool                 // only a network interface is left of it
	node     func(why string) plan.Node
}

// group is a scale set's model with its instances, or a machine alone.
type group struct {
	model    *machine
	machines []*machine
}

// readGroups reads all that may be in pools.
func readGroups(in Input) ([]*group, error) {
	var groups []*group
	sets := map[string]*group{}
	for _, d := range in.Have.List(in.Config.machines(), compute.ScaleSets) {
		view, err := azure.Decode[compute.ScaleSet](d)
		if err != nil {
			return nil, err
		}
		g := &group{model: modelOf(view)}
		groups = append(groups, g)
		sets[view.ID.Key()] = g
	}
	for _, d := range in.Have.List(in.Config.machines(), compute.ScaleSetInstances) {
		view, err := azure.Decode[compute.Instance](d)
		if err != nil {
			return nil, err
		}
		if g, ok := sets[view.ID.Parent().Key()]; ok {
			g.machines = append(g.machines, machineOf(view, g.model.excluded))
		}
	}
	showInstances(in, sets)
	of := interfaceGroups(in)
	alone, err := readAlone(in, sets, of)
	return slices.Concat(groups, alone, showCards(in, of)), err
}

// showInstances gives the scale sets whose instances were not read those that load balancers show
// in their pools. Nobody of them leaves, or all would have been read.
func showInstances(in Input, sets map[string]*group) {
	unread := map[string]*group{}
	for key, g := range sets {
		if len(g.machines) == 0 {
			unread[key] = g
		}
	}
	if len(unread) == 0 {
		return
	}
	shown := map[string]*machine{}
	for _, id := range balancersOf(in) {
		// A document that cannot be read is Desired's to report.
		lb, _, _ := plan.View[pools](in.Have, id)
		for _, p := range lb.Properties.BackendAddressPools {
			for _, configuration := range p.Properties.BackendIPConfigurations {
				id := instanceOf(configuration.ID)
				g, isUnread := unread[id.Parent().Key()]
				if !isUnread {
					continue
				}
				one, again := shown[id.Key()]
				if !again {
					one = &machine{id: id, fixed: true, slots: []slot{{pools: new([]azure.Reference)}}}
					shown[id.Key()] = one
					g.machines = append(g.machines, one)
				}
				in := one.slots[0].pools
				*in = append(*in, azure.Reference{ID: lb.ID.Child(network.BackendAddressPools, p.Name)})
			}
		}
	}
}

// Machines are those that there are, by id key, as far as a decision looks at them: all of those
// whose Node was deleted.
func Machines(in Input) (map[string]bool, error) {
	groups, err := readGroups(in)
	there := map[string]bool{}
	for _, g := range groups {
		for _, one := range g.machines {
			there[one.id.Key()] = true
		}
	}
	return there, err
}

// readAlone reads machines that have a network interface of their own: each with its
// primary one. Those of a flexible scale set join its group. An interface can be left
// in a pool when its machine goes; it is all that is left of it.
func readAlone(in Input, sets map[string]*group, of []azure.ID) ([]*group, error) {
	setOf, err := setsOfMachines(in)
	if err != nil {
		return nil, err
	}
	cards, err := readCards(in, of)
	if err != nil {
		return nil, err
	}
	var groups []*group
	var order []string
	byMachine := map[string][]nic{}
	for _, view := range cards {
		if vm := view.Properties.VirtualMachine; vm != nil && view.ID.Is(network.Interfaces) {
			if len(byMachine[vm.ID.Key()]) == 0 {
				order = append(order, vm.ID.Key())
			}
			byMachine[vm.ID.Key()] = append(byMachine[vm.ID.Key()], view)
		} else if m := cardOf(view); vm == nil && m.in(in.Config.balancers()) {
			m.orphan = true
			groups = append(groups, &group{machines: []*machine{m}})
		}
	}
	for _, key := range order {
		m := machineWith(in, byMachine[key])
		if m == nil {
			continue
		}
		if g, ok := sets[setOf[key].Key()]; ok {
			m.excluded = g.model.excluded
			g.machines = append(g.machines, m)
			continue
		}
		groups = append(groups, &group{machines: []*machine{m}})
	}
	return groups, nil
}

// machineWith is a machine by the primary one of its network interfaces, nil where none is.
func machineWith(in Input, cards []nic) *machine {
	i := onlyOr(cards, func(n nic) bool { return n.Properties.Primary != nil && *n.Properties.Primary })
	if i < 0 {
		return nil
	}
	m := cardOf(cards[i])
	if primary, named := primaryCard(in, m.id); named && isSecondary(cards[i]) && !primary.Equal(cards[i].ID) {
		m.ready = false // that one is where it may not be read
	}
	return m
}

// setsOfMachines are the flexible scale sets of machines, by the machine's id key.
func setsOfMachines(in Input) (map[string]azure.ID, error) {
	sets := map[string]azure.ID{}
	for _, d := range in.Have.List(in.Config.machines(), compute.VirtualMachines) {
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

// readCards reads network interfaces of resource groups: all of the first, which is the machines'
// own, and of others those of the cluster's machines and those that no machine has.
func readCards(in Input, of []azure.ID) ([]nic, error) {
	var cards []nic
	for i, group := range of {
		for _, d := range in.Have.List(group, network.Interfaces) {
			view, err := azure.Decode[network.Interface](d)
			if err != nil {
				return nil, err
			}
			if vm := view.Properties.VirtualMachine; i == 0 || vm == nil || isServed(vm.ID, in.Config) {
				cards = append(cards, view)
			}
		}
	}
	return cards, nil
}

func modelOf(view scaleSet) *machine {
	profile := clone(profileOf(view))
	m := &machine{
		id: view.ID, model: true, ready: true, slots: slotsOf(profile), excluded: excludedFamilies(view),
		fixed: sameText(view.Properties.ProvisioningState, "Deleting"),
	}
	m.node = func(why string) plan.Node {
		n := plan.Wanted(scaleSet{ID: view.ID, Properties: compute.ScaleSet{VirtualMachineProfile: &compute.Profile{NetworkProfile: profile}}}, why)
		n.Only = modelSections
		return n
	}
	return m
}

func machineOf(view instance, excluded map[v1.IPFamily]bool) *machine {
	profile := clone(view.Properties.NetworkProfileConfiguration)
	m := &machine{
		id: view.ID, ready: runs(view), slots: slotsOf(profile), excluded: excluded,
		fixed: sameText(view.Properties.ProvisioningState, "Deleting"),
	}
	m.node = func(why string) plan.Node {
		n := plan.Wanted(instance{ID: view.ID, Properties: compute.Instance{NetworkProfileConfiguration: profile}}, why)
		n.Only = instanceSections
		return n
	}
	return m
}

// cardOf is a machine by its primary network interface.
func cardOf(view nic) *machine {
	view.Properties.IPConfigurations = slices.Clone(view.Properties.IPConfigurations)
	list := view.Properties.IPConfigurations
	m := &machine{
		id: view.ID, ready: !sameText(view.Properties.ProvisioningState, "Failed"),
		fixed: sameText(view.Properties.ProvisioningState, "Deleting"),
	}
	if vm := view.Properties.VirtualMachine; vm != nil {
		m.id = vm.ID
	}
	for i := range list {
		p := &list[i].Properties
		m.slots = append(m.slots, slot{
			primary: len(list) == 1 || p.Primary != nil && *p.Primary, family: familyNamed(p.PrivateIPAddressVersion),
			usable: p.PrivateIPAddress != "", pools: &p.LoadBalancerBackendAddressPools,
		})
	}
	m.node = func(why string) plan.Node {
		next := nic{ID: view.ID, Properties: network.Interface{IPConfigurations: list}}
		return plan.Wanted(next, why)
	}
	return m
}

func familyNamed(version string) v1.IPFamily {
	if sameText(version, "IPv6") {
		return v1.IPv6Protocol
	}
	return v1.IPv4Protocol
}

func profileOf(m scaleSet) *compute.NetworkProfile {
	if m.Properties.VirtualMachineProfile == nil {
		return nil
	}
	return m.Properties.VirtualMachineProfile.NetworkProfile
}

// slotsOf lists the IP configurations of a profile's primary interface first.
func slotsOf(p *compute.NetworkProfile) []slot {
	if p == nil {
		return nil
	}
	first := onlyOr(p.NetworkInterfaceConfigurations, func(c compute.Named[compute.InterfaceConfiguration]) bool {
		return c.Properties.Primary != nil && *c.Properties.Primary
	})
	var slots []slot
	for i := range p.NetworkInterfaceConfigurations {
		list := p.NetworkInterfaceConfigurations[i].Properties.IPConfigurations
		for k := range list {
			c := &list[k].Properties
			slots = append(slots, slot{
				primary: i == first && (len(list) == 1 || c.Primary != nil && *c.Primary), usable: i == first,
				family: familyNamed(c.PrivateIPAddressVersion), pools: &c.LoadBalancerBackendAddressPools,
			})
		}
	}
	return slots
}

// clone copies a profile down to the lists of pools.
func clone(p *compute.NetworkProfile) *compute.NetworkProfile {
	if p == nil {
		return nil
	}
	next := &compute.NetworkProfile{NetworkInterfaceConfigurations: slices.Clone(p.NetworkInterfaceConfigurations)}
	for i := range next.NetworkInterfaceConfigurations {
		card := &next.NetworkInterfaceConfigurations[i].Properties
		card.IPConfigurations = slices.Clone(card.IPConfigurations)
	}
	return next
}

func onlyOr[T any](list []T, marked func(T) bool) int {
	if len(list) == 1 {
		return 0
	}
	return slices.IndexFunc(list, marked)
}

// excludedFamilies: Windows Server 2019 cannot be in pools of IPv6.
func excludedFamilies(set scaleSet) map[v1.IPFamily]bool {
	p := set.Properties.VirtualMachineProfile
	if p == nil || p.StorageProfile == nil || p.StorageProfile.OSDisk == nil || p.StorageProfile.ImageReference == nil ||
		!sameText(p.StorageProfile.OSDisk.OSType, "Windows") {
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

// slotFor finds the slot for a family's pools, nil for none. The nodes' IPv4 address
// is the primary one; IPv6 stands beside it.
func (m *machine) slotFor(family v1.IPFamily) *slot {
	for i, s := range m.slots {
		if s.family == family && s.usable && (s.primary || family == v1.IPv6Protocol) {
			return &m.slots[i]
		}
	}
	return nil
}

// in reports whether the machine is in a pool, or in any of a load balancer.
func (m *machine) in(id azure.ID) bool {
	return slices.ContainsFunc(m.slots, func(s slot) bool {
		return slices.ContainsFunc(*s.pools, func(r azure.Reference) bool { return r.ID.Under(id) })
	})
}

// leave takes the machine out of a pool, or all of a load balancer, and reports
// whether it was in any.
func (m *machine) leave(id azure.ID) bool {
	if !m.in(id) {
		return false
	}
	for _, s := range m.slots {
		if *s.pools != nil {
			*s.pools = slices.DeleteFunc(slices.Clone(*s.pools), func(r azure.Reference) bool { return r.ID.Under(id) })
		}
	}
	return true
}

// runs reports whether an instance is on, or on its way, as far as is known.
func runs(vm instance) bool {
	if sameText(vm.Properties.ProvisioningState, "Deleting") || sameText(vm.Properties.ProvisioningState, "Unknown") {
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
