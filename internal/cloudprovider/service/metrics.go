package service

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics have the names under which users watch the framework's controller. A
// synchronization is a commit, which serves many Services at once.
type metrics struct {
	syncs       prometheus.Counter
	nodeErrors  prometheus.Counter
	nodeLatency prometheus.Histogram
	hostLatency prometheus.Histogram
	batches     prometheus.Histogram
}

const subsystem = "service_controller"

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	const first, factor, buckets = 1, 2, 15
	seconds := prometheus.ExponentialBuckets(first, factor, buckets)
	m := &metrics{
		syncs: prometheus.NewCounter(prometheus.CounterOpts{
			Subsystem: subsystem, Name: "loadbalancer_sync_total",
			Help: "Commits of load balancers, for whatever reason.",
		}),
		nodeErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Subsystem: subsystem, Name: "nodesync_error_total",
			Help: "Commits of load balancers after a change of the nodes that failed.",
		}),
		nodeLatency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Subsystem: subsystem, Name: "nodesync_latency_seconds", Buckets: seconds,
			Help: "From a change of the nodes until the load balancers have it.",
		}),
		hostLatency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Subsystem: subsystem, Name: "update_loadbalancer_host_latency_seconds", Buckets: seconds,
			Help: "How long a commit after a change of the nodes takes.",
		}),
		batches: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kaz_service_commit_services", Buckets: prometheus.ExponentialBuckets(first, factor, buckets),
			Help: "Services that a commit of load balancers serves.",
		}),
	}
	if r == nil {
		return m, nil
	}
	return m, errors.Join(
		register(r, &m.syncs), register(r, &m.nodeErrors), register(r, &m.nodeLatency),
		register(r, &m.hostLatency), register(r, &m.batches),
	)
}

// register shows a metric. One that a controller before this one has shown goes on.
func register[C prometheus.Collector](r prometheus.Registerer, c *C) error {
	err := r.Register(*c)
	if again, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if first, ok := again.ExistingCollector.(C); ok {
			*c, err = first, nil
		}
	}
	return err
}

// committed counts a commit of so many Services.
func (m *metrics) committed(services int, why reasons, began time.Time, err error) {
	m.syncs.Inc()
	m.batches.Observe(float64(services))
	if !why.nodes {
		return
	}
	if err != nil {
		m.nodeErrors.Inc()
		return
	}
	m.hostLatency.Observe(time.Since(began).Seconds())
	m.nodeLatency.Observe(time.Since(why.since).Seconds())
}
