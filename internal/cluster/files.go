package cluster

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/boot"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/naming"
)

// Format is the language of generated files.
type Format string

// The formats.
const (
	ARM       Format = "arm"
	Bicep     Format = "bicep"
	Terraform Format = "terraform"
)

// Formats are all formats.
func Formats() []Format { return []Format{ARM, Bicep, Terraform} }

// Files are the files of kaz cluster generate, by their paths: the template in a format, the boot files, a picture and checksums. None has
// a secret.
func (p Plan) Files(f Format) map[string][]byte {
	var files map[string][]byte
	switch f {
	case Bicep:
		files = emit.Bicep(p.Graph, p.Names, p.Definition)
		files["main.parameters.json"] = emit.JSON(emit.Parameters(p.Graph))
	case Terraform:
		files = emit.Terraform(p.Graph, p.Names, p.Definition.Cluster.Spec.Azure.Location, p.GroupTags())
	default:
		files = p.armFiles()
	}
	files[boot.FileName("control-plane", p.Boot.ControlPlane)] = p.Boot.ControlPlane
	for pool, file := range p.Boot.Pools {
		files[boot.FileName(naming.PoolUnit(pool), file)] = file
	}
	files["cluster.svg"] = []byte(p.Picture().SVG())
	var sums strings.Builder
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(files[path]), path)
	}
	files["SHA256SUMS"] = []byte(sums.String())
	return files
}

// armFiles are the template and its parameters, the template of each unit, and the user interface of Azure's portal.
func (p Plan) armFiles() map[string][]byte {
	t := p.Template(emit.Options{})
	files := map[string][]byte{
		"template.json":           emit.JSON(t.Main),
		"parameters.json":         emit.JSON(emit.Parameters(p.Graph)),
		"createUiDefinition.json": emit.JSON(emit.Portal(p.Graph, p.Names, p.Definition)),
	}
	for name, body := range t.Units {
		files["units/"+name+".json"] = emit.JSON(body)
	}
	return files
}

// Groups are the further resource groups of a plan.
func (p Plan) Groups() []azure.ID {
	var all []azure.ID
	for _, u := range p.Graph.Units {
		if u.Unit.Group != "" && !slices.Contains(all, u.Unit.Group) {
			all = append(all, u.Unit.Group)
		}
	}
	return all
}

// GroupTags are the tags of the resource group that kaz makes, nil if the group has to exist.
func (p Plan) GroupTags() map[string]string {
	a := p.Definition.Cluster.Spec.Azure
	if a.ResourceGroup.Lifecycle != "Owned" {
		return nil
	}
	tags := map[string]string{naming.ClusterTag: p.Names.Cluster, naming.LifecycleTag: "Owned"}
	maps.Copy(tags, a.Tags)
	return tags
}
