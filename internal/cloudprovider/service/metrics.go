package service

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/observe"
)

// metrics have the names of the framework's controller, because users watch these names. A synchronization is a commit,
// which serves many Services at once.
type metrics struct {
	syncs, nodeErrors                 prometheus.Counter
	nodeLatency, hostLatency, batches prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	histogram := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(1, 2, 15)})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		syncs: counter("service_controller_loadbalancer_sync_total", "Commits of load balancers, for whatever reason."),
		nodeErrors: counter("service_controller_nodesync_error_total",
			"Commits of load balancers after a change of the nodes that failed."),
		nodeLatency: histogram("service_controller_nodesync_latency_seconds",
			"From a change of the nodes until the load balancers have it."),
		hostLatency: histogram("service_controller_update_loadbalancer_host_latency_seconds",
			"How long a commit after a change of the nodes takes."),
		batches: histogram("kaz_service_commit_services", "Services that a commit of load balancers serves."),
	}
	return m, errors.Join(observe.Register(r, &m.syncs), observe.Register(r, &m.nodeErrors), observe.Register(r, &m.nodeLatency),
		observe.Register(r, &m.hostLatency), observe.Register(r, &m.batches))
}

func (m *metrics) committed(services int, why reasons, began time.Time, err error) {
	m.syncs.Inc()
	m.batches.Observe(float64(services))
	switch {
	case why.nodes && err != nil:
		m.nodeErrors.Inc()
	case why.nodes:
		m.hostLatency.Observe(time.Since(began).Seconds())
		m.nodeLatency.Observe(time.Since(why.since).Seconds())
	}
}
