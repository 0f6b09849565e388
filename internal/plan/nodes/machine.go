package nodes

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
)

// Ref identifies a machine by its node's name and, if known, its provider id.
type Ref struct {
	Name       string
	ProviderID string
}

// Machine is a machine with its related documents.
type Machine struct {
	Instance   azure.Resource[compute.Instance]
	Interfaces []azure.Resource[network.Interface]
	PublicIPs  map[string]string // addresses by the id key of the public IP
}

// NodeName returns the name of an instance's node: its computer name in lower case.
func NodeName(vm azure.Resource[compute.Instance]) string {
	if vm.Properties.OSProfile == nil {
		return ""
	}
	return strings.ToLower(vm.Properties.OSProfile.ComputerName)
}

// isInstance reports whether a machine is an instance of a Uniform scale set. Such a machine is not a
// virtualMachines resource.
func isInstance(id azure.ID) bool { return id.Is(compute.ScaleSetInstances) }

// configurations returns the IP configurations of the primary interface, the primary one first.
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

// primary returns the only element, or the element for which says returns true.
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
