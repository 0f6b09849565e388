package autoscale

import (
	"context"
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// Metrics are the metrics of a provider. A nil one counts nothing.
type Metrics struct {
	calls    *prometheus.HistogramVec
	failures *prometheus.CounterVec
	kept     *prometheus.CounterVec
	doubtful *prometheus.CounterVec
}

// NewMetrics returns metrics that are registered.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kaz_autoscaler_call_duration_seconds", Help: "Time of calls of cluster-autoscaler, by method and code.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, 1},
		}, []string{"method", "code"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kaz_autoscaler_machines_refused_total", Help: "Machines that were asked for and not made, by Azure's error code.",
		}, []string{"code"}),
		kept: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kaz_autoscaler_machines_not_deleted_total", Help: "Machines that Azure did not delete or deallocate, by node group.",
		}, []string{"node_group"}),
		doubtful: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kaz_autoscaler_doubtful_lists_total",
			Help: "Answers with too few instances or a contradicted capacity, which waited for another answer, by node group.",
		}, []string{"node_group"}),
	}
	r.MustRegister(m.calls, m.failures, m.kept, m.doubtful)
	return m
}

func (m *Metrics) refused(code string, n int) {
	if m != nil && n > 0 {
		m.failures.WithLabelValues(code).Add(float64(n))
	}
}

func (m *Metrics) stayed(group string, n int) {
	if m != nil {
		m.kept.WithLabelValues(group).Add(float64(n))
	}
}

func (m *Metrics) doubt(group string) {
	if m != nil {
		m.doubtful.WithLabelValues(group).Inc()
	}
}

// Intercept measures calls.
func (m *Metrics) Intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	begin := time.Now()
	answer, err := handle(ctx, request)
	m.calls.WithLabelValues(path.Base(info.FullMethod), status.Code(err).String()).Observe(time.Since(begin).Seconds())
	return answer, err
}

// The gauges of node groups.
var (
	targetSize = prometheus.NewDesc("kaz_autoscaler_target_size", "Size that a node group is to have.", []string{"node_group"}, nil)
	capacity   = prometheus.NewDesc("kaz_autoscaler_capacity", "Capacity of the scale set of a node group.", []string{"node_group"}, nil)
	switched   = prometheus.NewDesc("kaz_autoscaler_deallocated", "Deallocated machines of a node group.", []string{"node_group"}, nil)
	cacheAge   = prometheus.NewDesc("kaz_autoscaler_cache_age_seconds", "Age of what is known of a node group.",
		[]string{"node_group"}, nil)
)

// Describe implements [prometheus.Collector].
func (p *Provider) Describe(into chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{targetSize, capacity, switched, cacheAge} {
		into <- d
	}
}

// Collect implements [prometheus.Collector].
func (p *Provider) Collect(into chan<- prometheus.Metric) {
	for _, g := range p.all() {
		gauge := func(d *prometheus.Desc, value float64) {
			into <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, g.name)
		}
		g.known.change(func(l *ledger) {
			gauge(cacheAge, l.age(time.Now()).Seconds())
			gauge(targetSize, float64(l.target()))
			gauge(capacity, float64(l.status.Capacity))
			gauge(switched, float64(l.switchedOff()))
		})
	}
}
