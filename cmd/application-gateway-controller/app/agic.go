package app

import (
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	_ "k8s.io/component-base/metrics/prometheus/workqueue" // the work queue metrics

	"kaz/internal/azure"
	"kaz/internal/component/release"
	"kaz/internal/gateway"
)

// agicPrefix begins the names of AGIC's metrics.
const agicPrefix = "appgw_ingress_controller_"

// counted is a metric of AGIC that metrics of kaz have the value of.
type counted struct {
	name, help, from string
	kind             dto.MetricType
	value            func(m *dto.Metric) float64
	// code returns the value of the label error_code, "" for a metric that is not counted. Without code, there is no such label.
	code func(m *dto.Metric) string
}

// resultOf returns the label of the result of a write.
func resultOf(m *dto.Metric) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == "result" {
			return l.GetValue()
		}
	}
	return ""
}

const succeeded = "succeeded"

// countedByAGIC are the metrics of AGIC that dashboards and alerts use.
func countedByAGIC() []counted {
	const written = "kaz_gateway_writes_total"
	writes := func(of func(result string) bool) func(m *dto.Metric) float64 {
		return func(m *dto.Metric) float64 {
			if of(resultOf(m)) {
				return m.GetCounter().GetValue()
			}
			return 0
		}
	}
	failed := writes(func(result string) bool { return result != succeeded })
	return []counted{
		{name: "arm_api_call_counter", help: "Requests to Azure Resource Manager.", from: "kaz_arm_request_duration_seconds",
			value: func(m *dto.Metric) float64 { return float64(m.GetHistogram().GetSampleCount()) }},
		{name: "arm_api_update_call_failure_counter", help: "Writes of the application gateway that failed.", from: written, value: failed},
		{name: "arm_api_update_call_success_counter", help: "Writes of the application gateway that succeeded.", from: written,
			value: writes(func(result string) bool { return result == succeeded })},
		{name: "error_counter", help: "Writes of the application gateway that failed, by the kind of the error.", from: written,
			value: failed,
			code: func(m *dto.Metric) string {
				if result := resultOf(m); result != succeeded {
					return result
				}
				return ""
			}},
		{name: "k8s_api_event_counter", help: "Changes of Kubernetes objects that matter to the application gateway.",
			from: "workqueue_adds_total", value: ofQueue},
		{name: "update_latency_seconds", help: "Time of the last write of the application gateway.",
			from: "kaz_gateway_last_write_duration_seconds", kind: dto.MetricType_GAUGE,
			value: func(m *dto.Metric) float64 { return m.GetGauge().GetValue() }},
	}
}

// ofQueue is how many objects were put into the queue of an application gateway.
func ofQueue(m *dto.Metric) float64 {
	for _, l := range m.GetLabel() {
		if l.GetName() == "name" && l.GetValue() == gateway.QueueName {
			return m.GetCounter().GetValue()
		}
	}
	return 0
}

// labelsOfAGIC are the labels that all metrics of AGIC have.
func labelsOfAGIC(of azure.ID, class string, lookup func(string) (string, bool)) []*dto.LabelPair {
	value := func(name string) string { v, _ := lookup(name); return v }
	labels := map[string]string{
		"controller_appgw_name": of.Name(), "controller_appgw_resource_group": of.Group(),
		"controller_appgw_subscription": of.Subscription(), "controller_class": class,
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

// withAGIC adds the metrics of AGIC to what is gathered, so that its dashboards and alerts go on.
func withAGIC(from prometheus.Gatherer, labels []*dto.LabelPair) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := from.Gather()
		more := make([]*dto.MetricFamily, 0, len(families))
		for _, c := range countedByAGIC() {
			var metrics []*dto.Metric
			for _, f := range families {
				if f.GetName() == c.from {
					metrics = f.GetMetric()
				}
			}
			if made := c.family(metrics, labels); len(made.GetMetric()) > 0 {
				more = append(more, made)
			}
		}
		return append(more, families...), err
	})
}

// family returns the metric of AGIC from metrics of kaz.
func (c counted) family(from []*dto.Metric, labels []*dto.LabelPair) *dto.MetricFamily {
	sums := map[string]float64{} // by error code
	if c.code == nil {
		sums[""] = 0
	}
	for _, m := range from {
		if c.code == nil {
			sums[""] += c.value(m)
		} else if code := c.code(m); code != "" {
			sums[code] += c.value(m)
		}
	}
	f := &dto.MetricFamily{Name: new(agicPrefix + c.name), Help: new(c.help), Type: c.kind.Enum()}
	for _, code := range slices.Sorted(maps.Keys(sums)) {
		m := &dto.Metric{Label: labels}
		if code != "" {
			m.Label = append(slices.Clone(labels), &dto.LabelPair{Name: new("error_code"), Value: new(code)})
		}
		if c.kind == dto.MetricType_GAUGE {
			m.Gauge = &dto.Gauge{Value: new(sums[code])}
		} else {
			m.Counter = &dto.Counter{Value: new(sums[code])}
		}
		f.Metric = append(f.Metric, m)
	}
	return f
}
