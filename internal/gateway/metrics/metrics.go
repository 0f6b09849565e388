// Package metrics is what a controller of application gateways counts. Layer L3.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/azure"
)

// Metrics are the metrics of a controller. A nil one counts nothing.
type Metrics struct {
	writes  *prometheus.CounterVec
	took    prometheus.Histogram
	last    prometheus.Gauge
	began   *prometheus.GaugeVec
	ingress *prometheus.GaugeVec
}

// New returns metrics that are registered.
func New(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kaz_gateway_writes_total", Help: "Writes of the application gateway, by result: succeeded, or the kind of the error.",
		}, []string{"result"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kaz_gateway_write_duration_seconds", Help: "Time from the read of the application gateway to the end of its write.",
			Buckets: []float64{.1, .5, 1, 5, 15, 30, 60, 120, 300, 600, 1800},
		}),
		ingress: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kaz_gateway_ingresses", Help: "Ingresses by state: served, unserved, or refused by Azure.",
		}, []string{"state"}),
	}
	m.last = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kaz_gateway_last_write_duration_seconds",
		Help: "Time from the read of the application gateway to the end of its write, of the last write.",
	})
	m.began = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kaz_gateway_write_began_timestamp_seconds",
		Help: "Unix time at which the write of an application gateway that is in flight began, 0 without one.",
	}, []string{"gateway"})
	r.MustRegister(m.writes, m.took, m.last, m.ingress, m.began)
	return m
}

// Writing notes whether a write of an application gateway is in flight.
func (m *Metrics) Writing(gateway azure.ID, now bool) {
	if m == nil {
		return
	}
	began := 0.0
	if now {
		began = float64(time.Now().Unix())
	}
	m.began.WithLabelValues(gateway.Name()).Set(began)
}

// Wrote counts writes of an application gateway that took a time together, and ended with err. No write counts as nothing.
func (m *Metrics) Wrote(writes int, took time.Duration, err error) {
	if m == nil || writes == 0 {
		return
	}
	result := "succeeded"
	if err != nil {
		result = azure.KindOf(err).String()
	}
	m.writes.WithLabelValues(result).Add(float64(writes))
	m.took.Observe(took.Seconds())
	m.last.Set(took.Seconds())
}

// Objects notes how many Ingresses are served, not served, and refused by Azure.
func (m *Metrics) Objects(served, unserved, refused int) {
	if m == nil {
		return
	}
	m.ingress.WithLabelValues("served").Set(float64(served))
	m.ingress.WithLabelValues("unserved").Set(float64(unserved))
	m.ingress.WithLabelValues("refused").Set(float64(refused))
}
