package nodegroup

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

// Group is a scale set that is a node group. It does not change.
type Group struct {
	Set  azure.ID
	Name string // the id of the node group
	Limits
	Flexible, Spot bool
	// EvictedStay says that an evicted machine stays in the scale set, deallocated.
	EvictedStay bool
	// Forceable says that machines can be deleted by force.
	Forceable bool
	Options   Options
	// Warnings name what is wrong with the scale set or its tags.
	Warnings []string

	set azure.Resource[compute.ScaleSetModel]
}

// ErrNoModel says that Azure shows a scale set without the model of its machines.
var ErrNoModel = errors.New("it has no model of machines: only machines that are put into it by hand can be in it")

// Read returns the node group of a scale set. The error says why the scale set is no node group.
func (s Selection) Read(set azure.Resource[compute.ScaleSetModel]) (Group, error) {
	limits, err := s.Select(set.Name, set.Tags)
	if err != nil {
		return Group{}, err
	}
	g := Group{
		Set: set.ID, Name: set.Name, Limits: limits, set: set,
		Flexible: strings.EqualFold(set.Properties.OrchestrationMode, "Flexible"),
	}
	model := set.Properties.VirtualMachineProfile
	if model == nil || set.SKU == nil {
		return Group{}, ErrNoModel
	}
	g.Spot = strings.EqualFold(model.Priority, "Spot") || strings.EqualFold(model.Priority, "Low")
	g.EvictedStay = g.Spot && !strings.EqualFold(model.EvictionPolicy, "Delete")
	g.Forceable = set.Properties.HostGroup == nil && !isolated(set.SKU.Name)
	g.Options, g.Warnings = ReadOptions(set.Tags)
	if g.Options.Deallocate {
		if g.Options.Deallocate = !ephemeral(model); ephemeral(model) {
			return Group{}, fmt.Errorf("the tag %sautoscaling-options_scaledownmode is deallocate, and machines with an ephemeral OS disk "+
				"cannot be deallocated: use delete", prefix)
		}
	}
	if !g.Flexible && (set.Properties.Overprovision == nil || *set.Properties.Overprovision) {
		g.Warnings = append(g.Warnings, "overprovision is true: for some minutes Azure makes more machines than asked for; set it to false")
	}
	if len(set.Zones) > 1 {
		g.Warnings = append(g.Warnings, fmt.Sprintf("it is in the zones %s: the zone of the next machine is not known, and a pod "+
			"that needs one of them may get no machine; use a scale set for each zone", strings.Join(set.Zones, ", ")))
	}
	return g, nil
}

// Size returns the name of the size of the group's machines.
func (g Group) Size() string { return g.set.SKU.Name }

// Zones returns the zones of the group's machines.
func (g Group) Zones() []string { return g.set.Zones }

// Reported returns the capacity that Azure reported when the scale set was read, and whether it reported one. What is known
// can contradict it: see [Status].
func (g Group) Reported() (capacity int, reports bool) {
	if g.set.SKU.Capacity == nil {
		return 0, false
	}
	return int(*g.set.SKU.Capacity), true
}

// Version tells states of the scale set apart.
func (g Group) Version() string {
	capacity, reports := g.Reported()
	return fmt.Sprintf("%s %d %t %s", g.set.Etag, capacity, reports, g.set.Properties.ProvisioningState)
}

// Matches reports whether the scale set, when it was read, had exactly the given machines, and nothing was under way.
func (g Group) Matches(machines []azure.Resource[compute.ScaledInstance]) bool {
	underWay := func(m azure.Resource[compute.ScaledInstance]) bool {
		return !strings.EqualFold(m.Properties.ProvisioningState, succeeded)
	}
	capacity, reports := g.Reported()
	return strings.EqualFold(g.set.Properties.ProvisioningState, succeeded) && reports && capacity == len(machines) &&
		!slices.ContainsFunc(machines, underWay)
}

const succeeded = "Succeeded"

// Etag is the etag of the scale set when it was read.
func (g Group) Etag() string { return g.set.Etag }

func ephemeral(model *compute.ScaleSetPrototype) bool {
	return model.StorageProfile != nil && model.StorageProfile.OSDisk != nil && model.StorageProfile.OSDisk.DiffDiskSettings != nil &&
		strings.EqualFold(model.StorageProfile.OSDisk.DiffDiskSettings.Option, "Local")
}

func windows(model *compute.ScaleSetPrototype) bool {
	if model.StorageProfile != nil && model.StorageProfile.OSDisk != nil && model.StorageProfile.OSDisk.OSType != "" {
		return strings.EqualFold(model.StorageProfile.OSDisk.OSType, "Windows")
	}
	return model.OSProfile != nil && model.OSProfile.WindowsConfiguration != nil
}

// isolated reports whether each machine of a size has a host of its own. Azure does not delete such machines by force.
func isolated(size string) bool {
	switch strings.ToLower(strings.TrimPrefix(strings.ToLower(size), "standard_")) {
	case "e80ids_v4", "e80is_v4", "e104i_v5", "e104is_v5", "e104id_v5", "e104ids_v5",
		"m192is_v2", "m192ims_v2", "m192ids_v2", "m192idms_v2", "f72s_v2", "m128ms":
		return true
	}
	return false
}
