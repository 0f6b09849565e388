package observe

import (
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewRegistry returns a registry with the metrics of the Go runtime, the process and the build.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	)
	return registry
}

// Register registers a metric, unless the registerer is nil. If an earlier component of this process
// registered the metric, that one continues to be used.
func Register[C prometheus.Collector](r prometheus.Registerer, metric *C) error {
	if r == nil {
		return nil
	}
	err := r.Register(*metric)
	if again, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if first, ok := again.ExistingCollector.(C); ok {
			*metric, err = first, nil
		}
	}
	return err
}

// MetricsHandler serves the metrics.
func MetricsHandler(gatherer prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{})
}
