// Package units has the infrastructure of a cluster, one function for each unit. A unit takes the ports that it needs and
// gives the ports that it has; what exists already is a port without a unit. [Build] calls them all. Layer L1: pure.
package units

import (
	_ "embed"
	"maps"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/naming"
)

type object = map[string]any

// Boot has the boot files of machines, as Azure takes them: in base64.
type Boot struct {
	ControlPlane string
	Pools        map[string]string
}

// Generations are the generations of the members of the control plane that are not 0, by index.
type Generations map[int]int

// builder builds the units of one definition.
type builder struct {
	d     definition.Definition
	spec  definition.ClusterSpec
	names naming.Names
	boot  Boot
	// generations are those of the members.
	generations Generations
	units       []*graph.Unit
	// ports are what extensions may refer to, by name.
	ports map[string]graph.Ref
}

// Build returns the units of a cluster. The error names the extension or the patch that does not fit.
func Build(d definition.Definition, boot Boot, generations Generations) ([]*graph.Unit, error) {
	b := &builder{d: d, spec: d.Cluster.Spec, names: naming.Of(d.Cluster), boot: boot, generations: generations,
		ports: map[string]graph.Ref{}}
	ids := b.identities()
	vault := b.vault()
	account := b.storage()
	egress := b.outbound()
	net := b.network(egress)
	api := b.api(net, egress)
	granted := b.access(ids, vault, account, net)
	ready := b.controlPlane(ids, net, api, granted)
	for _, pool := range d.Pools {
		b.pool(pool, ids, net, egress, ready, granted)
	}
	if err := b.extensions(); err != nil {
		return nil, err
	}
	if err := b.patch(); err != nil {
		return nil, err
	}
	for _, u := range b.units {
		b.tag(u)
	}
	return b.units, nil
}

// unit adds an empty unit.
func (b *builder) unit(name string) *graph.Unit {
	u := &graph.Unit{Name: name}
	b.units = append(b.units, u)
	return u
}

// at puts a unit into the resource group of a resource that exists.
func (b *builder) at(u *graph.Unit, id azure.ID) {
	if group := groupOf(id); !group.Equal(b.names.Group()) {
		u.Group = group
	}
}

func groupOf(id azure.ID) azure.ID { return azure.GroupID(id.Subscription(), id.Group()) }

func (b *builder) location() string { return b.spec.Azure.Location }

const secretType = "Microsoft.KeyVault/vaults/secrets"

//go:embed tagged.txt
var taggedTypes string

// tagged reports whether resources of a type have tags. Azure refuses tags on others. Of a type that the official models do not
// have, nothing is known, so it gets none.
func tagged(fullType string) bool {
	for line := range strings.Lines(taggedTypes) {
		if strings.EqualFold(strings.TrimSpace(line), fullType) {
			return true
		}
	}
	return false
}

// tag tags the resources of a unit. Extensions' resources may have tags that kaz does not know of, so they keep theirs.
func (b *builder) tag(u *graph.Unit) {
	for _, r := range u.Resources {
		// A write of a secret's tags is a new version of the secret.
		if !tagged(r.Type) || r.Type == secretType {
			continue
		}
		tags := object{}
		for key, value := range b.spec.Azure.Tags {
			tags[key] = value
		}
		own, _ := r.Body["tags"].(object)
		maps.Copy(tags, own)
		tags[naming.ClusterTag], tags[naming.UnitTag] = b.names.Cluster, u.Name
		if r.Body == nil {
			r.Body = object{}
		}
		r.Body["tags"] = tags
	}
}

// id is a reference in a document of Azure.
func id(ref any) object { return object{"id": ref} }

// zoneNames returns the zones of a resource as texts.
func zoneNames(zones []int) []any {
	all := []any{}
	for _, zone := range zones {
		all = append(all, string(rune('0'+zone)))
	}
	return all
}

func list[T any](items []T) []any {
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = item
	}
	return all
}

// symbol makes a symbol of a name that may have capitals and dots.
func symbol(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}
