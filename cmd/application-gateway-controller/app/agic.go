package app

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	_ "k8s.io/component-base/metrics/prometheus/workqueue" // the work queue metrics

	"kaz/internal/azure"
	"kaz/internal/component/release"
)

// agicPrefix begins the names of AGIC's metrics.
const agicPrefix = "appgw_ingress_controller_"

// counted is a counter of AGIC that metrics of kaz have the value of.
type counted struct {
	name, help, from string
	counts           func(m *dto.Metric) float64
}

// countedByAGIC are the counters of AGIC that dashboards and alerts use.
func countedByAGIC() []counted {
	const written = "kaz_gateway_writes_total"
	writes := func(succeeded bool) func(m *dto.Metric) float64 {
		return func(m *dto.Metric) float64 {
			if slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool {
				return l.GetName() == "result" && (l.GetValue() == "succeeded") == succeeded
			}) {
				return m.GetCounter().GetValue()
			}
			return 0
		}
	}
	return []counted{
		{"arm_api_call_counter", "Requests to Azure Resource Manager.", "kaz_arm_request_duration_seconds",
			func(m *dto.Metric) float64 { return float64(m.GetHistogram().GetSampleCount()) }},
		{"arm_api_update_call_failure_counter", "Writes of the application gateway that failed.", written, writes(false)},
		{"arm_api_update_call_success_counter", "Writes of the application gateway that succeeded.", written, writes(true)},
	}
}

// labelsOfAGIC are the labels that all metrics of AGIC have.
func labelsOfAGIC(gateway azure.ID, class string, lookup func(string) (string, bool)) []*dto.LabelPair {
	value := func(name string) string { v, _ := lookup(name); return v }
	labels := map[string]string{
		"controller_appgw_name": gateway.Name(), "controller_appgw_resource_group": gateway.Group(),
		"controller_appgw_subscription": gateway.Subscription(), "controller_class": class,
		"controller_namespace": value("AGIC_POD_NAMESPACE"), "controller_pod": value("AGIC_POD_NAME"),
		"controller_version": release.Version(),
	}
	pairs := make([]*dto.LabelPair, 0, len(labels))
	for name, text := range labels {
		pairs = append(pairs, &dto.LabelPair{Name: new(name), Value: new(text)})
	}
	slices.SortFunc(pairs, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	return pairs
}

// withAGIC adds the counters of AGIC to what is gathered, so that its dashboards and alerts go on.
func withAGIC(from prometheus.Gatherer, labels []*dto.LabelPair) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := from.Gather()
		more := make([]*dto.MetricFamily, 0, len(families))
		for _, c := range countedByAGIC() {
			sum := 0.0
			for _, f := range families {
				for _, m := range f.GetMetric() {
					if f.GetName() == c.from {
						sum += c.counts(m)
					}
				}
			}
			more = append(more, &dto.MetricFamily{Name: new(agicPrefix + c.name), Help: new(c.help), Type: dto.MetricType_COUNTER.Enum(),
				Metric: []*dto.Metric{{Label: labels, Counter: &dto.Counter{Value: new(sum)}}}})
		}
		return append(more, families...), err
	})
}
