package dns

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/azure"
	"kaz/internal/plan/records"
)

// Metrics are the metrics of a provider. A nil one counts nothing.
type Metrics struct {
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	writes   *prometheus.CounterVec
	lists    *prometheus.CounterVec
	problems *prometheus.CounterVec
	deletes  prometheus.Counter
	leases   *prometheus.CounterVec
	routes   *prometheus.CounterVec
	silent   *prometheus.GaugeVec
}

// NewMetrics returns metrics that are registered.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kaz_dns_requests_total", Help: "Requests of ExternalDNS, by call and HTTP status.",
		}, []string{"call", "status"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kaz_dns_request_duration_seconds", Help: "Time that requests of ExternalDNS took, by call.",
			Buckets: []float64{.01, .1, .5, 1, 2, 5, 8, 12, 15},
		}, []string{"call"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kaz_dns_writes_total",
			Help: "Writes of record sets, by kind of zone, type, verb, and result: succeeded, or the kind of the error.",
		}, []string{"zone", "type", "verb", "result"}),
		lists: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kaz_dns_zone_reads_total", Help: "Reads of all record sets of a zone, by result: succeeded, or the kind of the error.",
		}, []string{"result"}),
		problems: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kaz_dns_problems_total",
			Help: "Records that were not written as ExternalDNS wants them, by reason, counted at each request.",
		}, []string{"reason"}),
		deletes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kaz_dns_deletions_held_total",
			Help: "Deletions that were held back because they were too many at once, counted at each request.",
		}),
		leases: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kaz_dns_lease_renewals_total",
			Help: "Renewals of the leases of this cluster for names that it shares, by result: succeeded, or the kind of the error.",
		}, []string{"result"}),
		routes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kaz_dns_traffic_manager_writes_total",
			Help: "Writes of Traffic Manager profiles and their endpoints, by verb and result: succeeded, or the kind of the error.",
		}, []string{"verb", "result"}),
		silent: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kaz_dns_silent_clusters", Help: "Clusters that share names and have not renewed their leases, by zone.",
		}, []string{"zone"}),
	}
	r.MustRegister(m.requests, m.took, m.writes, m.lists, m.problems, m.deletes, m.leases, m.routes, m.silent)
	return m
}

func result(err error) string {
	if err == nil {
		return "succeeded"
	}
	return azure.KindOf(err).String()
}

func (m *Metrics) answered(call string, status int, took time.Duration) {
	if m != nil {
		m.requests.WithLabelValues(call, strconv.Itoa(status)).Inc()
		m.took.WithLabelValues(call).Observe(took.Seconds())
	}
}

func (m *Metrics) wrote(s records.Step, err error) {
	if m == nil {
		return
	}
	zone := "public"
	if s.Zone.Private {
		zone = "private"
	}
	m.writes.WithLabelValues(zone, s.Key.Type, string(s.Verb), result(err)).Inc()
}

func (m *Metrics) listed(err error) {
	if m != nil {
		m.lists.WithLabelValues(result(err)).Inc()
	}
}

func (m *Metrics) problem(reason records.Reason) {
	if m != nil {
		m.problems.WithLabelValues(string(reason)).Inc()
	}
}

func (m *Metrics) held(n int) {
	if m != nil {
		m.deletes.Add(float64(n))
	}
}

func (m *Metrics) renewed(err error) {
	if m != nil {
		m.leases.WithLabelValues(result(err)).Inc()
	}
}

func (m *Metrics) silentIn(z records.Zone, n int) {
	if m != nil {
		m.silent.WithLabelValues(z.Name).Set(float64(n))
	}
}

func (m *Metrics) routed(w records.Write, err error) {
	if m != nil {
		m.routes.WithLabelValues(string(w.Verb), result(err)).Inc()
	}
}
