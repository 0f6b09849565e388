package check

import (
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/nodegroup"
)

// nodeGroups compares the scale sets with the flags of the cluster-autoscaler-provider that runs in the cluster.
func nodeGroups(f *Facts, l *list) {
	arguments, runs := f.Arguments[scalerProvider]
	if !runs {
		l.add("all", OK, "no "+scalerProvider+" runs in a pod, so there are none to compare", "")
		return
	}
	const mend = "correct the flags of the " + scalerProvider + ": docs/guides/autoscaler.md"
	selection, err := nodegroup.ParseSelection(arguments["nodes"], arguments["node-group-auto-discovery"])
	if err != nil {
		l.add("flags", Problem, err.Error(), mend)
		return
	}
	machines := map[string]int{}
	for _, m := range f.Machines {
		machines[m.Set.Key()]++
	}
	names, groups := map[string]bool{}, 0
	for _, set := range f.ScaleSets {
		names[strings.ToLower(set.Name)] = true
		if !selection.Wants(set.Name, set.Tags) {
			continue
		}
		groups++
		nodeGroup(selection, set, machines[set.ID.Key()], l)
	}
	for _, name := range selection.Missing(func(name string) bool { return names[strings.ToLower(name)] }) {
		l.add(name, Problem, nodegroup.NoScaleSet, mend)
	}
	if groups == 0 && len(l.all) == 0 {
		l.add("all", Warning, "no scale set of "+string(f.Group)+" is a node group by the flags of the "+scalerProvider, mend)
	}
}

// nodeGroup judges a scale set that is to be a node group. existing is the number of its machines.
func nodeGroup(selection nodegroup.Selection, set azure.Resource[compute.ScaleSetModel], existing int, l *list) {
	g, err := selection.Read(set)
	if err != nil {
		l.add(set.Name, Problem, "it is no node group: "+err.Error(),
			"correct the tags of the scale set, or the flags of the "+scalerProvider)
		return
	}
	for _, w := range g.Warnings {
		l.add(set.Name, Warning, w, "correct the scale set or its tags: docs/guides/autoscaler.md")
	}
	explain := "kaz explain nodegroup " + set.Name
	capacity, reports := g.Reported()
	switch {
	case !reports:
	case capacity < g.Min || capacity > g.Max:
		l.add(set.Name, Warning,
			fmt.Sprintf("its capacity is %d, outside the limits of the node group, %d to %d", capacity, g.Min, g.Max), explain)
	case capacity != existing && strings.EqualFold(set.Properties.ProvisioningState, succeeded):
		l.add(set.Name, Warning, fmt.Sprintf("its capacity is %d, and Azure has %d machines", capacity, existing), explain)
	}
}
