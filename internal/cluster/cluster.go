// Package cluster makes a cluster's template from its definition. [New] joins the steps: the units of the definition, the
// order that follows from their references, and the template. It checks the template against the limits of Azure. Layer L1:
// pure.
package cluster

import (
	"fmt"
	"strings"

	"kaz/internal/cluster/boot"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/lint"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/units"
)

// Plan is what a definition gives.
type Plan struct {
	Definition definition.Definition
	Names      naming.Names
	Graph      graph.Linked
	Boot       boot.Files
}

// New makes the plan of a definition.
func New(d definition.Definition) (Plan, error) { return WithMembers(d, nil) }

// WithMembers makes the plan of a definition for members that have been replaced.
func WithMembers(d definition.Definition, generations units.Generations) (Plan, error) {
	files, err := boot.Build(d)
	if err != nil {
		return Plan{}, fmt.Errorf("boot files: %w", err)
	}
	data := units.Boot{Pools: map[string]string{}}
	if data.ControlPlane, err = boot.CustomData(files.ControlPlane); err != nil {
		return Plan{}, err
	}
	if err := fits(d, data.ControlPlane); err != nil {
		return Plan{}, err
	}
	for pool, file := range files.Pools {
		if data.Pools[pool], err = boot.CustomData(file); err != nil {
			return Plan{}, err
		}
	}
	all, err := units.Build(d, data, generations)
	if err != nil {
		return Plan{}, err
	}
	linked, err := graph.Link(all)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Definition: d, Names: naming.Of(d.Cluster), Graph: linked, Boot: files}
	if found := lint.Template("template", p.Template(emit.Options{}).Main); len(found) > 0 {
		return Plan{}, fmt.Errorf("the template exceeds limits of Azure:\n%s", strings.Join(found, "\n"))
	}
	return p, nil
}

// fits refuses a boot file of the control plane that is larger than Azure allows, and names the manifests that make it so.
func fits(d definition.Definition, data string) error {
	if len(data) <= lint.MostCustomData {
		return nil
	}
	var parts []string
	for _, m := range boot.AtBoot(d) {
		alone, err := boot.CustomData([]byte(m.Text))
		if err != nil {
			return err
		}
		parts = append(parts, fmt.Sprintf("%s %d", m.Name, len(alone)))
	}
	return fmt.Errorf("the boot file of the control plane has %d characters as Azure takes it, compressed and in base64, want at most %d: "+
		"manifests of add-ons and extensions: %s: set atBoot: false at large charts, and run kaz cluster upgrade after the deployment",
		len(data), lint.MostCustomData, strings.Join(parts, ", "))
}

// Template is the template for Azure Resource Manager.
func (p Plan) Template(o emit.Options) emit.Template {
	if o.Definition == nil {
		o.Definition = p.Definition
	}
	return emit.ARM(p.Graph, p.Names, o)
}
