package helmchart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"text/template"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"

	"kaz/internal/cluster/definition"
)

// Render renders a chart for a version of Kubernetes. The first manifest has its namespace and its CustomResourceDefinitions.
func (r Renderer) Render(ctx context.Context, c definition.Chart, layer, version string) ([]definition.Packed, error) {
	loaded, err := r.load(ctx, c, layer)
	if err != nil {
		return nil, err
	}
	if err := usable(loaded, version); err != nil {
		return nil, fmt.Errorf("chart %s: %w", loaded.Name(), err)
	}
	all, err := objectsOf(loaded, c, version)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", loaded.Name(), err)
	}
	return manifests(all, c)
}

// usable refuses charts that Helm would not install.
func usable(c *chart.Chart, version string) error {
	if c.Metadata.Type == "library" {
		return errors.New("it is a library, which has no objects: want a chart of the type application")
	}
	if want := c.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, "v"+version) {
		return fmt.Errorf("it is for Kubernetes %s, and the cluster has %s: want another version of the chart", want, version)
	}
	for _, need := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(d *chart.Chart) bool { return d.Name() == need.Name }) {
			return fmt.Errorf("its dependency %s %s is not in its folder charts: run helm dependency build", need.Name, need.Version)
		}
	}
	return nil
}

// objectsOf are the objects of a chart in the order in which they are applied.
func objectsOf(loaded *chart.Chart, c definition.Chart, version string) ([]object, error) {
	values := maps.Clone(c.Values)
	if values == nil {
		values = map[string]any{}
	}
	if err := chartutil.ProcessDependencies(loaded, values); err != nil {
		return nil, err
	}
	var definitions []object
	if c.IncludeCRDs {
		for _, crd := range loaded.CRDObjects() {
			all, err := parse(crd.Filename, string(crd.File.Data))
			if err != nil {
				return nil, err
			}
			definitions = append(definitions, all...)
		}
	}
	capabilities, err := capabilitiesOf(version, append(served(definitions), c.APIVersions...))
	if err != nil {
		return nil, err
	}
	given, err := util.ToRenderValuesWithSchemaValidation(loaded, values,
		common.ReleaseOptions{Name: c.ReleaseName, Namespace: c.Namespace, Revision: 1, IsInstall: true}, capabilities, true)
	if err != nil {
		return nil, err
	}
	if all, ok := given["Values"].(common.Values); ok {
		err = conforms(loaded, all)
	}
	if err != nil {
		return nil, err
	}
	texts, err := stable(func(own template.FuncMap) (map[string]string, error) {
		return engine.Engine{CustomTemplateFuncs: own}.Render(loaded, given)
	})
	if err != nil {
		return nil, err
	}
	return collect(definitions, texts, c.Namespace)
}

// collect joins the CustomResourceDefinitions of a chart with the objects of its templates.
func collect(all []object, texts map[string]string, namespace string) ([]object, error) {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if path.Base(name) == "NOTES.txt" {
			continue
		}
		found, err := parse(name, texts[name])
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			keep, err := o.hook()
			if err != nil {
				return nil, err
			}
			if keep {
				all = append(all, o)
			}
		}
	}
	cluster := clusterKinds(all)
	for i := range all {
		all[i].within(namespace, cluster)
	}
	slices.SortStableFunc(all, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.phase, b.phase), cmp.Compare(a.weight, b.weight), cmp.Compare(a.rank(), b.rank()))
	})
	return all, nil
}
