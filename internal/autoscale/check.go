package autoscale

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/nodegroup"
)

// Finding is what a provider makes of a scale set.
type Finding struct {
	ScaleSet string `json:"scaleSet"`
	// NodeGroup says that the scale set is a node group. Reason says why another one is none.
	NodeGroup bool     `json:"nodeGroup"`
	Min       int      `json:"min,omitempty"`
	Max       int      `json:"max,omitempty"`
	Capacity  int      `json:"capacity"`
	Size      string   `json:"size,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
}

// Check reads the scale sets of a resource group and returns what a provider makes of each, in the order of their names.
func Check(ctx context.Context, from azure.Reader, group azure.ID, selection nodegroup.Selection) ([]Finding, error) {
	docs, err := from.List(ctx, azure.Query{Scope: group, Type: compute.ScaleSets})
	if err != nil {
		return nil, err
	}
	var all []Finding
	for _, doc := range docs {
		set, err := azure.Decode[compute.ScaleSetModel](doc)
		if err != nil {
			return nil, err
		}
		f := Finding{ScaleSet: set.Name}
		if set.SKU != nil {
			f.Size = set.SKU.Name
			if set.SKU.Capacity != nil {
				f.Capacity = int(*set.SKU.Capacity)
			}
		}
		spec, err := selection.Read(set)
		if err != nil {
			f.Reason = err.Error()
		} else {
			f.NodeGroup, f.Min, f.Max, f.Warnings = true, spec.Min, spec.Max, spec.Warnings
			_, more := nodegroup.ReadTags(set.Tags)
			f.Warnings = append(f.Warnings, more...)
		}
		all = append(all, f)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(all, func(f Finding) bool { return strings.EqualFold(f.ScaleSet, name) })
	}
	for _, name := range selection.Missing(has) {
		all = append(all, Finding{ScaleSet: name, Reason: nodegroup.NoScaleSet})
	}
	slices.SortFunc(all, func(a, b Finding) int { return cmp.Compare(a.ScaleSet, b.ScaleSet) })
	return all, nil
}
