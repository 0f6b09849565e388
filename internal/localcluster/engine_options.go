package localcluster

import (
	"cmp"
	"context"
	_ "embed" // the definition of a cluster
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/setup"
	"kaz/internal/localcluster/controlplane"
	"kaz/internal/localcluster/site"
)

// engineDefinition is the definition of a cluster without [UpOptions.Definitions]. VERSION and NODES stand for the release of
// Kubernetes and the number of nodes.
//
//go:embed engine.yaml
var engineDefinition string

// checkKind refuses the options that the way to make the cluster does not have.
func (o *UpOptions) checkKind() error {
	if o.Engine {
		return o.checkEngine()
	}
	var problems []error
	for _, file := range o.Definitions {
		problems = append(problems, fmt.Errorf("--definition %s: only the cluster engine has definitions; add --engine", file))
	}
	problems = append(problems, checkReleases(o.Releases))
	if len(o.Releases) > 1 {
		problems = append(problems, fmt.Errorf("--kubernetes %s: only machines of the cluster engine have several releases; add --engine",
			strings.Join(o.Releases, ",")))
	}
	return errors.Join(problems...)
}

// checkEngine validates the options of a cluster of the cluster engine.
func (o *UpOptions) checkEngine() error {
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if o.NodesKind != "" {
		refuse("--nodes-kind %s: the machines of --engine boot from an image; want --engine without --nodes-kind", o.NodesKind)
	}
	if o.ScaleSets > 0 {
		refuse("--scale-sets %d: the scale sets of --engine are the node pools of its definition; want --definition with such pools",
			o.ScaleSets)
	}
	if slices.Contains(o.IPFamilies, site.IPv6) {
		refuse("--ip-families %s: the cluster engine makes no IPv6 networks; want %s with --engine",
			strings.Join(o.IPFamilies, ","), site.IPv4)
	}
	if o.Gateway || o.Gateways > 0 {
		refuse("--gateway: --engine makes no application gateway; want --gateway without --engine")
	}
	if o.Example {
		refuse("--example: --engine has no example; want --engine without --example")
	}
	for _, name := range o.Without {
		refuse("--without %s: the components of --engine are the add-ons of its definition; want --definition without spec.addons for "+
			"none", name)
	}
	for _, file := range o.Images {
		refuse("--image %s: machines of --engine import no archives; want a registry of the local Azure, or --nodes-kind %s without "+
			"--engine", file, NodesReal)
	}
	if len(o.Definitions) > 0 && o.Nodes > 0 {
		refuse("--nodes %d: the definition has the numbers of nodes; want --nodes or --definition", o.Nodes)
	}
	if err := checkReleases(o.Releases); err != nil {
		problems = append(problems, err)
	}
	if len(problems) == 0 && len(o.Definitions) > 0 {
		_, err := o.definition()
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// definition returns the definition of a new cluster: the definition of the files, or a definition with [UpOptions.Nodes] nodes.
func (o *UpOptions) definition() (definition.Definition, error) {
	if len(o.Definitions) > 0 {
		return o.readDefinition()
	}
	text, err := o.ownDefinition()
	if err != nil {
		return definition.Definition{}, err
	}
	return definition.Load(definition.Layer{Name: definitionFile, Text: text})
}

// ownDefinition returns the text of the definition without files.
func (o *UpOptions) ownDefinition() ([]byte, error) {
	releases := o.Releases
	if len(releases) == 0 {
		var err error
		if releases, err = controlplane.Releases(); err != nil {
			return nil, err
		}
	}
	nodes := strconv.Itoa(cmp.Or(o.Nodes, defaultNodes))
	return []byte(strings.NewReplacer("VERSION", releases[0], "NODES", nodes).Replace(engineDefinition)), nil
}

// readDefinition reads the files of a definition, and refuses what machines of this machine cannot do.
func (o *UpOptions) readDefinition() (definition.Definition, error) {
	if slices.Contains(o.Definitions, "-") {
		return definition.Definition{}, errors.New("--definition -: want files, because the next start reads them again")
	}
	d, err := setup.ReadDefinition(context.Background(), nil, o.Definitions)
	if err != nil {
		return d, fmt.Errorf("--definition: %w", err)
	}
	known, err := controlplane.Releases()
	if err != nil {
		return d, err
	}
	var problems []error
	name := d.Cluster.Metadata.Name
	if version := d.Cluster.Spec.Kubernetes.Version; !slices.Contains(known, version) {
		problems = append(problems, fmt.Errorf("--definition: Cluster %s: spec.kubernetes.version: %s: local machines want one of %s", name,
			version, strings.Join(known, ", ")))
	}
	if access := d.Cluster.Spec.Network.APIServer.Access; access == internalAccess {
		problems = append(problems, fmt.Errorf("--definition: Cluster %s: spec.network.apiServer.access: %s: this machine reaches only a "+
			"public API server; want another access", name, access))
	}
	return d, errors.Join(problems...)
}

// internalAccess is the access of an API server without a public address.
const internalAccess = "Internal"
