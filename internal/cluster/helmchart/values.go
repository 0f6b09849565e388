package helmchart

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// capabilitiesOf are what templates see of the cluster: its version, and the API versions that it serves without further flags.
func capabilitiesOf(version string, more []string) (*common.Capabilities, error) {
	parsed, err := common.ParseKubeVersion("v" + version)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(more)
	for _, name := range always() {
		all = append(all, name)
		group, err := schema.ParseGroupVersion(name)
		if err != nil {
			return nil, err
		}
		for kind := range scheme.Scheme.KnownTypes(group) {
			if !strings.HasSuffix(kind, "List") && !strings.HasSuffix(kind, "Options") && kind != "WatchEvent" {
				all = append(all, name+"/"+kind)
			}
		}
	}
	all = append(all, "apiextensions.k8s.io/v1/"+crdKind, "apiregistration.k8s.io/v1/APIService")
	slices.Sort(all)
	helm := common.DefaultCapabilities.HelmVersion
	helm.GitCommit, helm.GitTreeState, helm.GoVersion, helm.KubeClientVersion = "", "", "", "" // of the build of kaz
	return &common.Capabilities{KubeVersion: *parsed, APIVersions: slices.Compact(all), HelmVersion: helm}, nil
}

// always are the API versions that every supported version of Kubernetes serves.
func always() []string {
	return []string{"v1", "admissionregistration.k8s.io/v1", "apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1", "apps/v1",
		"authentication.k8s.io/v1", "authorization.k8s.io/v1", "autoscaling/v1", "autoscaling/v2", "batch/v1", "certificates.k8s.io/v1",
		"coordination.k8s.io/v1", "discovery.k8s.io/v1", "events.k8s.io/v1", "flowcontrol.apiserver.k8s.io/v1", "networking.k8s.io/v1",
		"node.k8s.io/v1", "policy/v1", "rbac.authorization.k8s.io/v1", "scheduling.k8s.io/v1", "storage.k8s.io/v1"}
}

// served are the API versions and kinds of CustomResourceDefinitions.
func served(definitions []object) []string {
	var all []string
	for _, o := range definitions {
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		for _, v := range versions {
			version, _ := v.(map[string]any)
			name := fmt.Sprintf("%s/%v", group, version["name"])
			all = append(all, name, name+"/"+kind)
		}
	}
	return all
}

// conforms checks values against the schemas of a chart and of the charts that it depends on.
func conforms(c *chart.Chart, values map[string]any) error {
	if len(c.Schema) > 0 {
		if err := conformsTo(c.Schema, values); err != nil {
			return fmt.Errorf("values of chart %s: %w", c.Name(), err)
		}
	}
	for _, d := range c.Dependencies() {
		var below map[string]any
		switch given := values[d.Name()].(type) {
		case map[string]any:
			below = given
		case common.Values:
			below = given
		default:
			continue
		}
		if err := conforms(d, below); err != nil {
			return err
		}
	}
	return nil
}

// anything is a schema for what is elsewhere: charts are rendered without a network.
type anything struct{}

func (anything) Load(string) (any, error) { return true, nil }

func conformsTo(text []byte, values map[string]any) error {
	const name = "file:///values.schema.json"
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("values.schema.json: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(anything{})
	if err := compiler.AddResource(name, document); err != nil {
		return fmt.Errorf("values.schema.json: %w", err)
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return fmt.Errorf("values.schema.json: %w", err)
	}
	return compiled.Validate(common.Values(values).AsMap())
}
