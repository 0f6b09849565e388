package loadbalancer

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/nodes"
)

type (
	scaleSet = azure.Resource[compute.ScaleSet]
	instance = azure.Resource[compute.Instance]
)

// The sections that an update of a scale set or an instance sends: what changes,
// and what Azure demands beside it.
var (
	modelSections    = []string{"location", "extendedLocation", "properties.virtualMachineProfile.networkProfile"}
	instanceSections = []string{"location", "properties.hardwareProfile", "properties.networkProfileConfiguration"}
)

// membership lets the cluster's nodes into the backend pool: the scale sets' models
// first, so that new instances are born into it, then the instances. With a load
// balancer that goes, all its pools are left.
func (f *facts) membership(lb balancer, b batch, found *problems) ([]plan.Node, error) {
	if !lb.going() && (!lb.stays || !lb.pooled || len(f.Nodes) == 0) {
		return nil, nil
	}
	sets, err := readScaleSets(f.Have, f.Config)
	if err != nil {
		return nil, err
	}
	if lb.going() {
		return leaveAll(f.Config, sets, b.names()), nil
	}
	m := members{facts: f, pool: f.Config.pool(), found: found, roles: rolesByMachine(f, found)}
	return m.decide(sets), nil
}

// set is a scale set with its instances.
type set struct {
	model     scaleSet
	instances []instance
}

func readScaleSets(have plan.Snapshot, c Config) ([]*set, error) {
	var sets []*set
	byID := map[string]*set{}
	for _, d := range have.List(c.machines(), compute.ScaleSets) {
		model, err := azure.Decode[compute.ScaleSet](d)
		if err != nil {
			return nil, err
		}
		s := &set{model: model}
		sets = append(sets, s)
		byID[model.ID.Key()] = s
	}
	for _, d := range have.List(c.machines(), compute.ScaleSetInstances) {
		vm, err := azure.Decode[compute.Instance](d)
		if err != nil {
			return nil, err
		}
		if s, ok := byID[vm.ID.Parent().Key()]; ok {
			s.instances = append(s.instances, vm)
		}
	}
	return sets, nil
}

// rolesByMachine gives the role of each machine, and says which nodes cannot be let
// in because their machine is of a kind that kaz does not serve yet.
func rolesByMachine(f *facts, found *problems) map[string]Role {
	roles := make(map[string]Role, len(f.Nodes))
	for _, n := range f.Nodes {
		id, ok := nodes.MachineID(n.Spec.ProviderID)
		if !ok {
			continue
		}
		role := RoleOf(f.Config, n)
		roles[id.Key()] = role
		if role == Receiver && !isServed(id, f.Config) {
			found.warn(n.Name, ReasonNotJoined, "it stays out of the backend pool: of machines like %s, allowed are instances of Uniform scale sets in resource group %s", id, f.Config.ResourceGroup)
		}
	}
	return roles
}

func isServed(machine azure.ID, c Config) bool {
	return machine.Is(compute.ScaleSetInstances) && machine.Parent().Parent().Equal(c.machines())
}

// scaleSetsInvolved lists the scale sets whose instances a decision looks at: those
// of the nodes, and those that are in a pool of the load balancer.
func scaleSetsInvolved(in Input) []azure.ID {
	var ids []azure.ID
	seen := map[string]bool{}
	add := func(id azure.ID) {
		if id.Is(compute.ScaleSets) && id.Parent().Equal(in.Config.machines()) && !seen[id.Key()] {
			seen[id.Key()] = true
			ids = append(ids, id)
		}
	}
	for _, n := range in.Nodes {
		if id, ok := nodes.MachineID(n.Spec.ProviderID); ok {
			add(id.Parent())
		}
	}
	// A document that cannot be read is Desired's to report.
	lb := in.Config.LoadBalancer()
	if view, _, err := plan.View[pools](in.Have, lb); err == nil {
		for _, p := range view.Properties.BackendAddressPools {
			for _, c := range p.Properties.BackendIPConfigurations {
				add(instanceOf(c.ID).Parent())
			}
		}
	}
	for _, d := range in.Have.List(in.Config.machines(), compute.ScaleSets) {
		if model, err := azure.Decode[compute.ScaleSet](d); err == nil && inBalancer(profileOf(model), lb) {
			add(model.ID)
		}
	}
	return ids
}

// pools is as much of a load balancer as tells who is in it.
type pools struct {
	BackendAddressPools []azure.Child[network.BackendAddressPool] `json:"backendAddressPools"`
}

// instanceOf is the machine that an IP configuration belongs to.
func instanceOf(configuration azure.ID) azure.ID { return configuration.Parent().Parent() }

func profileOf(m scaleSet) *compute.NetworkProfile {
	if m.Properties.VirtualMachineProfile == nil {
		return nil
	}
	return m.Properties.VirtualMachineProfile.NetworkProfile
}

// members decides who is in the cluster's pool.
type members struct {
	*facts
	pool  azure.ID
	found *problems
	roles map[string]Role // by machine id key
}

func (m members) decide(sets []*set) []plan.Node {
	leaving := m.mayLeave(sets)
	var out []plan.Node
	for _, s := range sets {
		if sameText(s.model.Properties.ProvisioningState, "Deleting") {
			continue
		}
		out = append(out, m.model(s, leaving)...)
		for _, vm := range s.instances {
			out = append(out, m.instance(vm, leaving)...)
		}
	}
	return out
}

// mayLeave reports whether excluded nodes may be taken out. A pool is never
// emptied: with nobody in it every Service of the cluster would be dead.
func (m members) mayLeave(sets []*set) bool {
	known := map[string]bool{}
	for _, s := range sets {
		for _, vm := range s.instances {
			known[vm.ID.Key()] = true
			role := m.roles[vm.ID.Key()]
			if role == Receiver && runs(vm) || role != Excluded && inPool(vm.Properties.NetworkProfileConfiguration, m.pool) {
				return true
			}
		}
	}
	for _, p := range m.lb.Properties.BackendAddressPools {
		if !sameText(p.Name, m.pool.Name()) {
			continue
		}
		for _, c := range p.Properties.BackendIPConfigurations {
			if !known[instanceOf(c.ID).Key()] {
				return true
			}
		}
	}
	return false
}

// model lets the instances to come into the pool, or keeps them out when all that
// are there are excluded.
func (m members) model(s *set, leaving bool) []plan.Node {
	receivers, excluded := 0, 0
	for _, vm := range s.instances {
		switch m.roles[vm.ID.Key()] {
		case Receiver:
			receivers++
		case Excluded:
			excluded++
		}
	}
	have := profileOf(s.model)
	var next *compute.NetworkProfile
	why := ""
	switch {
	case receivers > 0:
		next, why = m.join(have, string(s.model.ID)), "new instances join the backend pool"
	case excluded > 0 && excluded == len(s.instances) && leaving:
		next, why = leave(have, m.pool), "new instances stay out of the backend pool, as all there are do"
	}
	if next == nil {
		return nil
	}
	return []plan.Node{modelNode(s.model.ID, next, why)}
}

func (m members) instance(vm instance, leaving bool) []plan.Node {
	have := vm.Properties.NetworkProfileConfiguration
	if sameText(vm.Properties.ProvisioningState, "Deleting") {
		return nil
	}
	var next *compute.NetworkProfile
	why := ""
	switch role := m.roles[vm.ID.Key()]; {
	case role == Receiver && runs(vm):
		next, why = m.join(have, string(vm.ID)), "node joins the backend pool"
	case role == Excluded && leaving:
		next, why = leave(have, m.pool), "node is excluded from load balancers"
	}
	if next == nil {
		return nil
	}
	return []plan.Node{instanceNode(vm.ID, next, why)}
}

// join is the profile with the pool at the first address of its primary interface,
// nil when it is there already or must not be. An interface is in one public load
// balancer at most; one in another is left there.
func (m members) join(have *compute.NetworkProfile, who string) *compute.NetworkProfile {
	if have == nil || inPool(have, m.pool) {
		return nil
	}
	nic, ip := primaryAddress(have)
	if nic < 0 || ip < 0 {
		m.found.warn(who, ReasonNotJoined, "it has no primary network interface with an IPv4 configuration, so it stays out of the backend pool %s", m.pool.Name())
		return nil
	}
	pools := have.NetworkInterfaceConfigurations[nic].Properties.IPConfigurations[ip].Properties.LoadBalancerBackendAddressPools
	for _, p := range pools {
		if lb := p.ID.TopLevel(); !lb.Equal(m.pool.TopLevel()) && !isInternalOf(lb.Name(), m.pool.TopLevel().Name()) {
			m.found.warn(who, ReasonNotJoined, "it is in pool %s of load balancer %s already, so it stays out of %s", p.ID.Name(), lb.Name(), m.pool.TopLevel().Name())
			return nil
		}
	}
	next := clone(have)
	at := &next.NetworkInterfaceConfigurations[nic].Properties.IPConfigurations[ip].Properties
	at.LoadBalancerBackendAddressPools = append(slices.Clip(at.LoadBalancerBackendAddressPools), azure.Reference{ID: m.pool})
	return next
}

// isInternalOf reports whether other is the internal sibling of a load balancer,
// or the other way round.
func isInternalOf(other, lb string) bool {
	const suffix = "-internal"
	trim := func(s string) string { return strings.TrimSuffix(strings.ToLower(s), suffix) }
	return trim(other) == trim(lb)
}

// leave is the profile without a pool, or all pools of a load balancer; nil when
// it is in none of them.
func leave(have *compute.NetworkProfile, from azure.ID) *compute.NetworkProfile {
	if !inBalancer(have, from) {
		return nil
	}
	next := clone(have)
	for _, nic := range next.NetworkInterfaceConfigurations {
		for i := range nic.Properties.IPConfigurations {
			p := &nic.Properties.IPConfigurations[i].Properties
			if p.LoadBalancerBackendAddressPools != nil {
				p.LoadBalancerBackendAddressPools = slices.DeleteFunc(slices.Clone(p.LoadBalancerBackendAddressPools),
					func(r azure.Reference) bool { return r.ID.Under(from) })
			}
		}
	}
	return next
}

// leaveAll takes everybody out of all pools of the load balancer.
func leaveAll(c Config, sets []*set, names []string) []plan.Node {
	why := "the load balancer goes with " + summary(names)
	var out []plan.Node
	for _, s := range sets {
		if sameText(s.model.Properties.ProvisioningState, "Deleting") {
			continue
		}
		if next := leave(profileOf(s.model), c.LoadBalancer()); next != nil {
			out = append(out, modelNode(s.model.ID, next, why))
		}
		for _, vm := range s.instances {
			if sameText(vm.Properties.ProvisioningState, "Deleting") {
				continue
			}
			if next := leave(vm.Properties.NetworkProfileConfiguration, c.LoadBalancer()); next != nil {
				out = append(out, instanceNode(vm.ID, next, why))
			}
		}
	}
	return out
}

func modelNode(id azure.ID, profile *compute.NetworkProfile, why string) plan.Node {
	n := plan.Wanted(scaleSet{ID: id, Properties: compute.ScaleSet{VirtualMachineProfile: &compute.Profile{NetworkProfile: profile}}}, why)
	n.Only = modelSections
	return n
}

func instanceNode(id azure.ID, profile *compute.NetworkProfile, why string) plan.Node {
	n := plan.Wanted(instance{ID: id, Properties: compute.Instance{NetworkProfileConfiguration: profile}}, why)
	n.Only = instanceSections
	return n
}

// clone copies a profile down to the lists of pools.
func clone(p *compute.NetworkProfile) *compute.NetworkProfile {
	next := &compute.NetworkProfile{NetworkInterfaceConfigurations: slices.Clone(p.NetworkInterfaceConfigurations)}
	for i := range next.NetworkInterfaceConfigurations {
		nic := &next.NetworkInterfaceConfigurations[i].Properties
		nic.IPConfigurations = slices.Clone(nic.IPConfigurations)
	}
	return next
}

func inPool(p *compute.NetworkProfile, pool azure.ID) bool { return inBalancer(p, pool) }

// inBalancer reports whether any address of the profile is in a pool under id.
func inBalancer(p *compute.NetworkProfile, id azure.ID) bool {
	if p == nil {
		return false
	}
	for _, nic := range p.NetworkInterfaceConfigurations {
		for _, ip := range nic.Properties.IPConfigurations {
			if slices.ContainsFunc(ip.Properties.LoadBalancerBackendAddressPools, func(r azure.Reference) bool { return r.ID.Under(id) }) {
				return true
			}
		}
	}
	return false
}

// primaryAddress finds the interface and IP configuration that carry a node's own
// IPv4 address: the only one, or the one marked primary. -1 is for none.
func primaryAddress(p *compute.NetworkProfile) (nic, ip int) {
	nic = onlyOr(p.NetworkInterfaceConfigurations, func(c compute.Named[compute.InterfaceConfiguration]) bool {
		return c.Properties.Primary != nil && *c.Properties.Primary
	})
	if nic < 0 {
		return -1, -1
	}
	return nic, onlyOr(p.NetworkInterfaceConfigurations[nic].Properties.IPConfigurations, func(c compute.Named[compute.IPConfiguration]) bool {
		return c.Properties.Primary != nil && *c.Properties.Primary
	})
}

func onlyOr[T any](list []T, marked func(T) bool) int {
	if len(list) == 1 {
		return 0
	}
	return slices.IndexFunc(list, marked)
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
