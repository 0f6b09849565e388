package loadbalancer

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/nodes"
)

// A machine that is in no Uniform scale set has network interfaces of their own. Nearly always
// they are in its resource group, and one list tells all of them; Azure lets them be in others.

// interfaceGroups are the resource groups of the network interfaces of machines: first the
// machines' own, then those of which a machine or a pool tells.
func interfaceGroups(in Input) []azure.ID {
	groups := []azure.ID{in.Config.machines()}
	add := func(card azure.ID) {
		if id := card.Parent(); !slices.ContainsFunc(groups, id.Equal) {
			groups = append(groups, id)
		}
	}
	for _, machine := range withoutCard(in) {
		if card, named := primaryCard(in, machine); named {
			add(card)
		}
	}
	for _, lb := range balancersOf(in) {
		// A document that cannot be read is Desired's to report.
		view, _, _ := plan.View[pools](in.Have, lb)
		for _, p := range view.Properties.BackendAddressPools {
			for _, c := range p.Properties.BackendIPConfigurations {
				if holder := configurationHolder(c.ID); holder.Is(network.Interfaces) {
					add(holder)
				}
			}
		}
	}
	return groups
}

// withoutCard are the machines alone of the cluster, those whose Node was deleted included, of
// which their own resource group does not have the primary network interface.
func withoutCard(in Input) []azure.ID {
	alone := slices.DeleteFunc(knownMachines(in), func(id azure.ID) bool {
		return !id.Is(compute.VirtualMachines) || !isServed(id, in.Config)
	})
	if len(alone) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, d := range in.Have.List(in.Config.machines(), network.Interfaces) {
		// A document that cannot be read is Desired's to report.
		if card, err := azure.Decode[network.Interface](d); err == nil && card.Properties.VirtualMachine != nil && !isSecondary(card) {
			known[card.Properties.VirtualMachine.ID.Key()] = true
		}
	}
	return slices.DeleteFunc(alone, func(id azure.ID) bool { return known[id.Key()] })
}

// knownMachines are those of the nodes, and those whose Node was deleted.
func knownMachines(in Input) []azure.ID {
	all := make([]azure.ID, 0, len(in.Nodes)+len(in.Nodeless))
	for _, n := range in.Nodes {
		if id, ok := nodes.MachineID(n.Spec.ProviderID); ok {
			all = append(all, id)
		}
	}
	return append(all, in.Nodeless...)
}

// isSecondary reports whether a network interface says that another one is its machine's primary one.
func isSecondary(card nic) bool { return card.Properties.Primary != nil && !*card.Properties.Primary }

// primaryCard is the primary network interface that a machine names, as far as it has been read.
func primaryCard(in Input, machine azure.ID) (azure.ID, bool) {
	view, _, _ := plan.View[compute.Instance](in.Have, machine)
	if view.Properties.NetworkProfile == nil {
		return "", false
	}
	cards := view.Properties.NetworkProfile.NetworkInterfaces
	i := onlyOr(cards, func(c compute.InterfaceReference) bool { return c.Properties.Primary != nil && *c.Properties.Primary })
	if i < 0 {
		return "", false
	}
	return cards[i].ID, true
}

// showCards are the machines whose network interface is in one of these resource groups that may
// not be read, as far as load balancers show it in their pools. None of them is written.
func showCards(in Input, of []azure.ID) []*group {
	isHidden := func(group azure.ID) bool {
		_, unread := in.Have.Unread(group, network.Interfaces)
		return unread
	}
	if !slices.ContainsFunc(of, isHidden) {
		return nil
	}
	hidden := map[string]azure.ID{} // machines, by id key of the interface
	for _, id := range withoutCard(in) {
		if card, named := primaryCard(in, id); named && isHidden(card.Parent()) {
			hidden[card.Key()] = id
		}
	}
	var shown []*group
	for _, id := range balancersOf(in) {
		// A document that cannot be read is Desired's to report.
		lb, _, _ := plan.View[pools](in.Have, id)
		for _, p := range lb.Properties.BackendAddressPools {
			for _, c := range p.Properties.BackendIPConfigurations {
				if id, is := hidden[configurationHolder(c.ID).Key()]; is {
					at := []azure.Reference{{ID: lb.ID.Child(network.BackendAddressPools, p.Name)}}
					shown = append(shown, &group{machines: []*machine{{id: id, fixed: true, slots: []slot{{pools: &at}}}}})
				}
			}
		}
	}
	return shown
}

// wasAsked reports whether Have holds what [Needs] names at first: the security group, if any, is
// there then, or known not to be.
func wasAsked(in Input) bool {
	if in.Config.SecurityGroupName == "" {
		return true
	}
	_, there := in.Have.Get(in.Config.securityGroup())
	_, absent := in.Have.Absent(in.Config.securityGroup())
	return there || absent
}

// warnUnreadCard tells of a node whose network interface is where it may not be read.
func (f *facts) warnUnreadCard(n *v1.Node, machine azure.ID, found *problems) {
	card, _ := primaryCard(f.Input, machine)
	if why, unread := f.Have.Unread(card.Parent(), network.Interfaces); unread {
		found.warn(n.Name, ReasonNotJoined, "it is not let into the backend pools, nor out of them: its network interface %s %s; to do: %s",
			card, whyUnread(why), cureUnread(why, network.Interfaces))
	}
}
