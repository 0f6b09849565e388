// Package apimodel makes definitions of kaz from the API models of aks-engine, the JSON documents from which it made clusters. All
// that a definition does not take is named, with the reason. Layer L1: pure.
package apimodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"kaz/internal/cluster/definition"
)

// Options are what a model does not say, and what replaces what it says.
type Options struct {
	// Subscription and Tenant are where the new cluster is to be. A model has neither.
	Subscription, Tenant string
	// ResourceGroup is the group of the new cluster, by default the name of the cluster.
	ResourceGroup string
	// Name is the name of the new cluster, by default the DNS prefix of the model.
	Name string
	// Location is the region if the model has none.
	Location string
	// Version replaces a version of Kubernetes that is too old for kaz.
	Version string
}

// Dropped is a field of a model that the definition does not have.
type Dropped struct {
	// Path is where the field is: properties.masterProfile.distro.
	Path string
	// Reason says why it is dropped, and what to do. It never has the value, which may be a secret.
	Reason string
}

func (d Dropped) String() string { return d.Path + ": " + d.Reason }

// Result is what became of a model.
type Result struct {
	// Definition is the definition as YAML.
	Definition []byte
	// Dropped are the fields that it does not have, in the order of their paths.
	Dropped []Dropped
	// Problems are mistakes of the definition that have to be mended by hand, such as ranges of addresses that overlap.
	Problems definition.Problems
}

// Import makes a definition of a model. The error says why there is none.
func Import(text []byte, o Options) (Result, error) {
	var tree map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return Result{}, fmt.Errorf("the model cannot be read as JSON: %w: want the apimodel.json of aks-engine", err)
	}
	if d.More() {
		return Result{}, errors.New("the model has text behind its JSON: want one JSON document")
	}
	m := &model{root: field{value: tree}, used: map[string]bool{}, because: map[string]string{}}
	if err := m.check(); err != nil {
		return Result{}, err
	}
	docs, err := m.convert(o)
	if err != nil {
		return Result{}, err
	}
	r := Result{Dropped: m.left()}
	if r.Definition, err = write(docs); err != nil {
		return Result{}, err
	}
	if _, err := definition.Load(definition.Layer{Name: "definition", Text: r.Definition}); err != nil {
		problems, ok := errors.AsType[definition.Problems](err)
		if !ok {
			return Result{}, err
		}
		r.Problems = problems
	}
	return r, nil
}

// check refuses documents that are no models of Kubernetes clusters.
func (m *model) check() error {
	if version := m.root.get("apiVersion").text(m); version != "vlabs" {
		return fmt.Errorf("apiVersion: %q: want vlabs, the version of aks-engine's models", version)
	}
	properties := m.root.get("properties")
	if _, ok := properties.value.(map[string]any); !ok {
		return errors.New("properties: missing: want the object with masterProfile and agentPoolProfiles")
	}
	if kind := properties.get("orchestratorProfile").get("orchestratorType").text(m); kind != "" && kind != "Kubernetes" {
		return fmt.Errorf("properties.orchestratorProfile.orchestratorType: %q: want Kubernetes: kaz makes no other clusters", kind)
	}
	if _, ok := properties.get("masterProfile").value.(map[string]any); !ok {
		return errors.New("properties.masterProfile: missing: want the machines of the control plane")
	}
	return nil
}

// document is a document of a definition.
type document struct {
	kind, name string
	spec       map[string]any
}

// write writes documents as YAML.
func write(docs []document) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("# Made from an API model of aks-engine.\n")
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	for _, d := range docs {
		tree := &yaml.Node{Kind: yaml.MappingNode}
		for _, entry := range []struct {
			key   string
			value any
		}{
			{"apiVersion", definition.APIVersion}, {"kind", d.kind}, {"metadata", map[string]any{"name": d.name}},
			{"spec", withoutEmpty(d.spec)},
		} {
			var value yaml.Node
			if err := value.Encode(entry.value); err != nil {
				return nil, fmt.Errorf("%s %s: %w", d.kind, d.name, err)
			}
			tree.Content = append(tree.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: entry.key}, &value)
		}
		if err := e.Encode(tree); err != nil {
			return nil, fmt.Errorf("%s %s: %w", d.kind, d.name, err)
		}
	}
	return b.Bytes(), e.Close()
}

// withoutEmpty is a tree without maps that have no fields and texts that are empty. Empty lists say something and stay.
func withoutEmpty(tree map[string]any) map[string]any {
	all := map[string]any{}
	for key, value := range tree {
		switch v := value.(type) {
		case map[string]any:
			if inner := withoutEmpty(v); len(inner) > 0 {
				all[key] = inner
			}
		case entries:
			if len(v) > 0 {
				all[key] = v
			}
		case string:
			if v != "" {
				all[key] = v
			}
		case nil:
		default:
			all[key] = value
		}
	}
	return all
}

// clusterName makes a valid name of a cluster from a DNS prefix.
func clusterName(prefix string) string {
	name := strings.Trim(strings.ToLower(prefix), "-")
	return strings.Trim(name[:min(len(name), 30)], "-")
}
