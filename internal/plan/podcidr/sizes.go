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

// The tags of a scale set or availability set with the prefix lengths of its nodes' blocks, such as
// "26".
const (
	TagIPv4 = "kubernetesNodeCIDRMaskIPV4"
	TagIPv6 = "kubernetesNodeCIDRMaskIPV6"
)

// ReasonTag is the reason of a problem with an invalid tag.
const ReasonTag = "InvalidNodeCIDRMask"

const availabilitySets = "Microsoft.Compute/availabilitySets"

// Needs returns the queries that a snapshot for [TagsOf] needs. Call it again with their answers
// until it returns nothing new. All machines of a resource group have the same needs.
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

// TagsOf returns the tags of a machine's set, or none if the machine is not in a set or does not
// exist.
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

// setOf returns the scale set or availability set of a machine.
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

// Sizes returns the prefix lengths of a node's blocks in each range, from the tags or else from
// usual. Invalid tags are problems.
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
				Message: fmt.Sprintf("tag %s: %q is not a number from 1 to %d, so the node gets a /%d", name, text,
					r.Addr().BitLen(), usual[i]),
			})
			continue
		}
		sizes[i] = bits
	}
	return sizes, problems
}
