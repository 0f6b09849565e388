package nodes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
)

// Known returns the answer to a query, or nil if the query was not read yet.
type Known func(azure.Query) *Listing

// SeveralError says that several machines match a node.
type SeveralError struct {
	Name     string
	Machines []azure.ID
}

func (e *SeveralError) Error() string {
	return fmt.Sprintf("%d machines have the computer name %s, allowed is one: %v", len(e.Machines), e.Name, e.Machines)
}

// Locate returns a node's machine, or nil if Azure has none. With a provider id, that decides.
// Otherwise Locate searches group: first the Uniform scale sets with a matching computer name prefix,
// then all other machines by name and computer name.
//
// The returned queries must be read first: call Locate again with their answers.
func Locate(known Known, group azure.ID, ref Ref) (*azure.Resource[compute.Instance], []azure.Query, error) {
	if ref.ProviderID == "" {
		return locateByName(known, group, strings.ToLower(ref.Name))
	}
	id, ok := MachineID(ref.ProviderID)
	list, isMachine := ListWith(id)
	if !ok || !isMachine {
		return nil, nil, fmt.Errorf("error splitting providerID %q: it does not name a virtual machine", ref.ProviderID)
	}
	l := known(list)
	if l == nil {
		return nil, []azure.Query{list}, nil
	}
	if vm, ok := l.machines[id.Key()]; ok {
		return &vm, nil, nil
	}
	return nil, nil, nil
}

func locateByName(known Known, group azure.ID, name string) (*azure.Resource[compute.Instance], []azure.Query, error) {
	sets := known(setsIn(group))
	if sets == nil {
		return nil, []azure.Query{setsIn(group)}, nil
	}
	var unread []azure.Query
	var found []azure.Resource[compute.Instance]
	for _, set := range sets.sets {
		if isFlexible(set) || !bears(set, name) {
			continue
		}
		q := instancesOf(set.ID)
		if l := known(q); l == nil {
			unread = append(unread, q)
		} else {
			found = append(found, l.withName(name)...)
		}
	}
	if len(unread) > 0 {
		return nil, unread, nil
	}
	if len(found) == 0 {
		q := machinesIn(group)
		l := known(q)
		if l == nil {
			return nil, []azure.Query{q}, nil
		}
		if vm, ok := l.machines[group.Resource(compute.VirtualMachines, name).Key()]; ok {
			return &vm, nil, nil
		}
		found = l.withName(name)
	}
	switch len(found) {
	case 0:
		return nil, nil, nil
	case 1:
		return &found[0], nil, nil
	}
	several := &SeveralError{Name: name}
	for _, vm := range found {
		several.Machines = append(several.Machines, vm.ID)
	}
	return nil, nil, several
}

func (l *Listing) withName(name string) []azure.Resource[compute.Instance] {
	var all []azure.Resource[compute.Instance]
	for _, id := range l.named[name] {
		all = append(all, l.machines[id.Key()])
	}
	return all
}

func isFlexible(set azure.Resource[compute.ScaleSet]) bool {
	return strings.EqualFold(set.Properties.OrchestrationMode, "Flexible")
}

// instanceDigits is the number of base-36 digits at the end of a scale set instance's computer name.
const instanceDigits = 6

// bears reports whether a computer name can belong to the scale set.
func bears(set azure.Resource[compute.ScaleSet], name string) bool {
	if len(name) < instanceDigits {
		return false
	}
	prefix, digits := name[:len(name)-instanceDigits], name[len(name)-instanceDigits:]
	if _, err := strconv.ParseUint(digits, 36, 64); err != nil {
		return false
	}
	want := set.Name
	if p := set.Properties.VirtualMachineProfile; p != nil && p.OSProfile != nil && p.OSProfile.ComputerNamePrefix != "" {
		want = p.OSProfile.ComputerNamePrefix
	}
	return strings.EqualFold(prefix, want)
}

// Complete adds the network interfaces, their public addresses and, in a region without zones, the
// fault domain. Handle the returned queries as with [Locate].
func Complete(known Known, vm azure.Resource[compute.Instance]) (Machine, []azure.Query) {
	m := Machine{Instance: vm, PublicIPs: map[string]string{}}
	unread := completeInterfaces(known, &m)
	unread = append(unread, completeView(known, &m)...)
	if len(unread) == 0 {
		unread = completeAddresses(known, &m)
	}
	return m, unread
}

// WithInterfaces adds the interface lists to instance lists. A description needs both, and they can
// be read in parallel.
func WithInterfaces(lists []azure.Query) []azure.Query {
	all := slices.Clone(lists)
	for _, q := range lists {
		if strings.EqualFold(q.Type, compute.ScaleSetInstances) {
			all = append(all, azure.Query{Scope: q.Scope, Type: scaleSetInterfaces})
		}
	}
	return all
}

// once returns the answer to a query, or adds the query to unread if it is not in it.
func once(known Known, q azure.Query, unread *[]azure.Query) *Listing {
	l := known(q)
	if l == nil && !slices.Contains(*unread, q) {
		*unread = append(*unread, q)
	}
	return l
}

func completeInterfaces(known Known, m *Machine) (unread []azure.Query) {
	if m.Instance.Properties.NetworkProfile == nil {
		return nil
	}
	for _, ref := range m.Instance.Properties.NetworkProfile.NetworkInterfaces {
		q := azure.Query{Scope: ref.ID.Parent(), Type: network.Interfaces}
		if isInstance(m.Instance.ID) {
			q = azure.Query{Scope: m.Instance.ID.Parent(), Type: scaleSetInterfaces}
		}
		l := once(known, q, &unread)
		if l == nil {
			continue
		}
		nic, ok := l.interfaces[ref.ID.Key()]
		if !ok {
			continue
		}
		if nic.Properties.Primary == nil {
			nic.Properties.Primary = ref.Properties.Primary
		}
		m.Interfaces = append(m.Interfaces, nic)
	}
	return unread
}

func completeAddresses(known Known, m *Machine) (unread []azure.Query) {
	for _, c := range m.configurations() {
		if c.Properties.PublicIPAddress == nil {
			continue
		}
		id := c.Properties.PublicIPAddress.ID
		q := azure.Query{Scope: id.Parent(), Type: network.PublicIPAddresses}
		if isInstance(m.Instance.ID) {
			q = azure.Query{Scope: m.Instance.ID.Parent(), Type: scaleSetAddresses}
		}
		if l := once(known, q, &unread); l != nil && l.addresses[id.Key()] != "" {
			m.PublicIPs[id.Key()] = l.addresses[id.Key()]
		}
	}
	return unread
}

// completeView requests the instance view of a machine without a zone, which has its fault domain.
// Machines of one scale set share a query.
func completeView(known Known, m *Machine) (unread []azure.Query) {
	if len(m.Instance.Zones) > 0 || isInstance(m.Instance.ID) || m.Instance.Properties.InstanceView != nil {
		return nil
	}
	set := m.Instance.Properties.VirtualMachineScaleSet
	if set == nil {
		if l := once(known, ViewOf(m.Instance.ID), &unread); l != nil {
			m.Instance.Properties.InstanceView = l.view
		}
		return unread
	}
	if l := once(known, membersOf(set.ID), &unread); l != nil {
		m.Instance.Properties.InstanceView = l.machines[m.Instance.ID.Key()].Properties.InstanceView
	}
	return unread
}
