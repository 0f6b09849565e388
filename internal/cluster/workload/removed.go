package workload

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// deprecatedUse is the metric of API servers about requests to deprecated APIs since they started.
const deprecatedUse = "apiserver_requested_deprecated_apis"

// Removed are the APIs that clients use and a version no longer has, such as "flowcontrol.apiserver.k8s.io/v1beta3 flowschemas (removed in
// 1.32)". One API server is asked, about the time since its start.
func (c *Cluster) Removed(ctx context.Context, version string) ([]string, error) {
	target, err := utilversion.ParseGeneric(version)
	if err != nil {
		return nil, err
	}
	text, err := c.Metrics(ctx)
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	var all []string
	for _, metric := range families[deprecatedUse].GetMetric() {
		if api, release := deprecated(metric); release != nil && !target.LessThan(release) {
			all = append(all, api)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// deprecated is an API in a metric, and the release that removes it, nil for none.
func deprecated(metric *dto.Metric) (api string, release *utilversion.Version) {
	labels := map[string]string{}
	for _, l := range metric.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	release, err := utilversion.ParseGeneric(labels["removed_release"])
	if err != nil || metric.GetGauge().GetValue() == 0 {
		return "", nil
	}
	api = fmt.Sprintf("%s/%s %s", labels["group"], labels["version"], labels["resource"])
	return fmt.Sprintf("%s (removed in %s)", api, labels["removed_release"]), release
}
