package healthproxy

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Values of the label result.
const (
	healthy     = "healthy"
	unhealthy   = "unhealthy"
	unreachable = "unreachable" // the health server did not answer
	abandoned   = "abandoned"   // the client did not wait for the response
	refused     = "refused"     // a method or a body, which probes do not have
)

// Metrics counts probes. A nil Metrics counts nothing.
type Metrics struct {
	probes    *prometheus.CounterVec
	malformed prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kaz_health_probe_proxy_probes_total",
			Help: "Health probes, by PROXY header (none, v1, v2) and result.",
		}, []string{"header", "result"}),
		malformed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kaz_health_probe_proxy_malformed_headers_total",
			Help: "Connections closed because of an invalid PROXY header.",
		}),
	}
	for _, c := range []prometheus.Collector{m.probes, m.malformed} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) probe(header, result string) {
	if m != nil {
		m.probes.WithLabelValues(header, result).Inc()
	}
}

func (m *Metrics) malformedHeader() {
	if m != nil {
		m.malformed.Inc()
	}
}

// verdict keeps the last result, so that only changes are logged.
type verdict struct {
	mu   sync.Mutex
	last string
}

// turns records a result and reports whether it differs from the last one.
func (v *verdict) turns(result string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	turned := v.last != result
	v.last = result
	return turned
}
