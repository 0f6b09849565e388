package cloudprovider

import (
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// operations measures the framework's calls, under the metric names of existing dashboards.
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

// register registers a collector and returns it. It returns the existing collector if it was
// registered before.
func register[C prometheus.Collector](registerer prometheus.Registerer, c C) C {
	err := registerer.Register(c)
	if again, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if first, ok := again.ExistingCollector.(C); ok {
			return first
		}
	}
	return c
}

// of starts to measure one operation and returns the function that ends it. The label source stays
// empty, because names of nodes and Services are unbounded.
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
