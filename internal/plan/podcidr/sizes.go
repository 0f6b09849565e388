package podcidr

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan"
	"kaz/internal/plan/nodes"
)

// The tags of a scale set or availability set that say how large its nodes' blocks
// are, such as "26".
const (
	TagIPv4 = "kubernetesNodeCIDRMaskIPV4"
	TagIPv6 = "kubernetesNodeCIDRMaskIPV6"
)

// ReasonTag is the reason of the problem of a tag that says no size.
const ReasonTag = "InvalidNodeCIDRMask"

const availabilitySets = "Microsoft.Compute/availabilitySets"

// Needs names what a snapshot must hold for [TagsOf]: ask again with what was read,
// until it names nothing new. All machines of a resource group need the same.
func Needs(have plan.Snapshot, providerID string) []azure.Query {
	id, ok := nodes.MachineID(providerID)
	if !ok {
		return nil
	}
	group := groupOf(id)
	if id.Is(compute.ScaleSetInstances) {
		return []azure.Query{{Scope: group, Type: compute.ScaleSets}}
	}
	queries := []azure.Query{{Scope: group, Type: compute.VirtualMachines}}
	if set, ok := setOf(have, id); ok {
		queries = append(queries, azure.Query{Scope: groupOf(set), Type: set.Type()})
	}
	return queries
}

// TagsOf are the tags of the set that a machine is in, none of a machine that is in
// no set, or that is not there.
func TagsOf(have plan.Snapshot, providerID string) (azure.Tags, error) {
	id, ok := nodes.MachineID(providerID)
	if !ok {
		return nil, nil
	}
	set, ok := setOf(have, id)
	if !ok {
		return nil, nil
	}
	view, _, err := plan.View[struct{}](have, set)
	return view.Tags, err
}

// setOf is the scale set or availability set that a machine is in.
func setOf(have plan.Snapshot, machine azure.ID) (azure.ID, bool) {
	if machine.Is(compute.ScaleSetInstances) {
		return machine.Parent(), true
	}
	doc, ok := have.Get(machine)
	if !ok {
		return "", false
	}
	var vm struct {
		Properties struct{ VirtualMachineScaleSet, AvailabilitySet *azure.Reference }
	}
	if err := json.Unmarshal(doc, &vm); err != nil {
		return "", false
	}
	if set := vm.Properties.VirtualMachineScaleSet; set != nil && set.ID.Is(compute.ScaleSets) {
		return set.ID, true
	}
	if set := vm.Properties.AvailabilitySet; set != nil && set.ID.Is(availabilitySets) {
		return set.ID, true
	}
	return "", false
}

func groupOf(id azure.ID) azure.ID { return azure.GroupID(id.Subscription(), id.Group()) }

// Sizes are the bits of a node's blocks in each of the ranges: as the tags say, or as
// usual where they say nothing that can be used.
func Sizes(node string, tags azure.Tags, ranges []netip.Prefix, usual []int) ([]int, []plan.Problem) {
	sizes := make([]int, len(ranges))
	var problems []plan.Problem
	for i, r := range ranges {
		sizes[i] = usual[i]
		name := TagIPv4
		if r.Addr().Is6() {
			name = TagIPv6
		}
		text, ok := tags.Get(name)
		if !ok {
			continue
		}
		bits, err := strconv.Atoi(text)
		if err != nil || bits < 1 || bits > r.Addr().BitLen() {
			problems = append(problems, plan.Problem{
				Object: node, Reason: ReasonTag, Warning: true,
				Message: fmt.Sprintf("tag %s: %q is not a number from 1 to %d, so the node gets a /%d", name, text, r.Addr().BitLen(), usual[i]),
			})
			continue
		}
		sizes[i] = bits
	}
	return sizes, problems
}
