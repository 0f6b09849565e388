package healthproxy

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Values of the label result.
const (
	healthy     = "healthy"
	unhealthy   = "unhealthy"
	unreachable = "unreachable" // the health server does not answer
	abandoned   = "abandoned"   // the prober did not wait for the answer
	refused     = "refused"     // a method that no probe has
)

// Metrics count probes. A nil one counts nothing.
type Metrics struct {
	probes    *prometheus.CounterVec
	malformed prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kaz_health_probe_proxy_probes_total",
			Help: "Health probes, by the PROXY header they came with (none, v1, v2) and by what came of them.",
		}, []string{"header", "result"}),
		malformed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kaz_health_probe_proxy_malformed_headers_total",
			Help: "Connections that were closed because their PROXY header cannot be read.",
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

// verdict remembers what came of the last probe, so that only changes are told.
type verdict struct {
	mu   sync.Mutex
	last string
}

// turns says whether a result is another one than before.
func (v *verdict) turns(result string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	turned := v.last != result
	v.last = result
	return turned
}
