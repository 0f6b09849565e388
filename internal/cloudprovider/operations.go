package cloudprovider

import (
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// operations measures what the framework asks of the cloud, under the names that
// clusters' dashboards know.
type operations struct {
	duration *prometheus.HistogramVec
	failures *prometheus.CounterVec
}

func newOperations(registerer prometheus.Registerer) operations {
	labels := []string{"request", "resource_group", "subscription_id", "source"}
	o := operations{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cloudprovider_azure_op_duration_seconds", Help: "How long operations of the cloud provider took.",
			Buckets: []float64{0.1, 0.2, 0.5, 1, 5, 10, 15, 20, 30, 40, 50, 60, 100, 200, 300, 600, 1200},
		}, labels),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cloudprovider_azure_op_failure_count", Help: "Operations of the cloud provider that failed.",
		}, labels),
	}
	if registerer != nil {
		o.duration = register(registerer, o.duration)
		o.failures = register(registerer, o.failures)
	}
	return o
}

// register is the collector that counts: the given one, or the one that was first.
func register[C prometheus.Collector](registerer prometheus.Registerer, c C) C {
	err := registerer.Register(c)
	if again, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if first, ok := again.ExistingCollector.(C); ok {
			return first
		}
	}
	return c
}

// of starts to measure one operation and returns what ends it. The source, which
// would be a node's or a Service's name, stays empty: names have no bound.
func (o operations) of(request, group, subscription string) func(error) {
	began := time.Now()
	return func(err error) {
		labels := []string{request, strings.ToLower(group), subscription, ""}
		o.duration.WithLabelValues(labels...).Observe(time.Since(began).Seconds())
		if err != nil {
			o.failures.WithLabelValues(labels...).Inc()
		}
	}
}
