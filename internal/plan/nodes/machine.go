package nodes

import (
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
)

// scaleSetInterfaces is the query type of what all instances of a scale set have.
const scaleSetInterfaces = compute.ScaleSets + "/networkInterfaces"

// instances is the type segment of a scale set's instances.
const instances = "virtualMachines"

// Ref is how Kubernetes names a machine: by its node's name and, once it is
// known, its provider id.
type Ref struct {
	Name       string
	ProviderID string
}

// Machine is a machine as Azure tells of it.
type Machine struct {
	Instance   azure.Resource[compute.Instance]
	Interfaces []azure.Resource[network.Interface]
	PublicIPs  map[string]string // address by the public IP's id key
}

// Needs names what a snapshot must hold to [Find] the machine: ask again with what
// was read, until it names nothing new. All machines of a scale set need the same
// lists. group holds the scale sets.
func Needs(have plan.Snapshot, group azure.ID, ref Ref) ([]azure.ID, []azure.Query) {
	sets, lists := candidates(have, group, ref)
	for _, set := range sets {
		lists = append(lists,
			azure.Query{Scope: set, Type: compute.ScaleSetInstances, Expand: "instanceView"},
			azure.Query{Scope: set, Type: scaleSetInterfaces})
	}
	m, ok, err := Find(have, group, ref)
	if err != nil || !ok {
		return nil, lists
	}
	var ids []azure.ID
	for _, c := range m.configurations() {
		if ip := c.Properties.PublicIPAddress; ip != nil {
			ids = append(ids, ip.ID)
		}
	}
	return ids, lists
}

// candidates are the scale sets that the machine can be in. Without a provider id
// they are those whose computer names start as the node's name does.
func candidates(have plan.Snapshot, group azure.ID, ref Ref) ([]azure.ID, []azure.Query) {
	if id, ok := MachineID(ref.ProviderID); ok {
		if !id.Is(compute.ScaleSetInstances) {
			return nil, nil
		}
		return []azure.ID{id.Parent()}, nil
	}
	lists := []azure.Query{{Scope: group, Type: compute.ScaleSets}}
	var sets []azure.ID
	for _, d := range have.List(group, compute.ScaleSets) {
		set, err := azure.Decode[compute.ScaleSet](d)
		if err == nil && bears(set, ref.Name) {
			sets = append(sets, set.ID)
		}
	}
	return sets, lists
}

// instanceDigits is how many base-36 digits of the instance's number end the
// computer name of a scale set's instance.
const instanceDigits = 6

// bears reports whether a computer of the scale set can have the name.
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

// Find returns the machine, false when Azure has none of that name or id. The
// provider id decides where there is one.
func Find(have plan.Snapshot, group azure.ID, ref Ref) (Machine, bool, error) {
	if id, ok := MachineID(ref.ProviderID); ok {
		return find(have, id, func(azure.Resource[compute.Instance]) bool { return id.Is(compute.ScaleSetInstances) })
	}
	named := func(vm azure.Resource[compute.Instance]) bool { return NodeName(vm) == ref.Name }
	sets, _ := candidates(have, group, ref)
	for _, set := range sets {
		// The name ends in the instance's number, which is nearly always the right one.
		number, _ := strconv.ParseUint(ref.Name[len(ref.Name)-instanceDigits:], 36, 64)
		m, ok, err := find(have, set.Child(instances, strconv.FormatUint(number, 10)), named)
		if ok || err != nil {
			return m, ok, err
		}
		for _, d := range have.List(set, compute.ScaleSetInstances) {
			if m, ok, err := find(have, d.ID(), named); ok || err != nil {
				return m, ok, err
			}
		}
	}
	return Machine{}, false, nil
}

// find returns the machine id if it is there and fits.
func find(have plan.Snapshot, id azure.ID, fits func(azure.Resource[compute.Instance]) bool) (Machine, bool, error) {
	vm, ok, err := plan.View[compute.Instance](have, id)
	if err != nil || !ok || !fits(vm) {
		return Machine{}, false, err
	}
	m, err := complete(have, vm)
	return m, err == nil, err
}

// NodeName is the name of an instance's node: its computer name in lower case.
func NodeName(vm azure.Resource[compute.Instance]) string {
	if vm.Properties.OSProfile == nil {
		return ""
	}
	return strings.ToLower(vm.Properties.OSProfile.ComputerName)
}

func complete(have plan.Snapshot, vm azure.Resource[compute.Instance]) (Machine, error) {
	m := Machine{Instance: vm, PublicIPs: map[string]string{}}
	if vm.Properties.NetworkProfile == nil {
		return m, nil
	}
	for _, ref := range vm.Properties.NetworkProfile.NetworkInterfaces {
		nic, ok, err := plan.View[network.Interface](have, ref.ID)
		if err != nil {
			return m, err
		}
		if !ok {
			continue
		}
		if nic.Properties.Primary == nil {
			nic.Properties.Primary = ref.Properties.Primary
		}
		m.Interfaces = append(m.Interfaces, nic)
	}
	for _, c := range m.configurations() {
		if c.Properties.PublicIPAddress == nil {
			continue
		}
		id := c.Properties.PublicIPAddress.ID
		ip, ok, err := plan.View[network.PublicIPAddress](have, id)
		if err != nil {
			return m, err
		}
		if ok && ip.Properties.IPAddress != "" {
			m.PublicIPs[id.Key()] = ip.Properties.IPAddress
		}
	}
	return m, nil
}

// configurations are the IP configurations of the primary interface, the primary
// one first.
func (m Machine) configurations() []azure.Child[network.IPConfiguration] {
	nic, ok := primary(m.Interfaces, func(n azure.Resource[network.Interface]) *bool { return n.Properties.Primary })
	if !ok {
		return nil
	}
	sorted := slices.Clone(nic.Properties.IPConfigurations)
	rank := func(c azure.Child[network.IPConfiguration]) int {
		if c.Properties.Primary != nil && *c.Properties.Primary {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(sorted, func(a, b azure.Child[network.IPConfiguration]) int { return rank(a) - rank(b) })
	return sorted
}

// primary is the only element, or the one that says so.
func primary[T any](all []T, says func(T) *bool) (T, bool) {
	if len(all) == 1 {
		return all[0], true
	}
	for _, one := range all {
		if p := says(one); p != nil && *p {
			return one, true
		}
	}
	var none T
	return none, false
}
