package arm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/arm/budget"
	"kaz/internal/arm/dashboards"
	"kaz/internal/azure"
	"kaz/internal/observe"
)

// metrics are shared by all ARM clients of a Registerer. Their only labels of many values
// are resource types, of which a program uses some dozen.
type metrics struct {
	requests   *prometheus.HistogramVec
	operations *prometheus.HistogramVec
	waits      *prometheus.HistogramVec
	retries    *prometheus.CounterVec
	known      dashboards.Metrics
}

func newMetrics(r prometheus.Registerer) (metrics, error) {
	m := metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kaz_arm_request_duration_seconds",
			Help:    "Time from sending a request to Azure Resource Manager to the end of its answer.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"type", "verb", "status"}),
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kaz_arm_operation_duration_seconds",
			Help:    "Time from sending a write to the end of its long-running operation, with all retries.",
			Buckets: []float64{.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640, 1280},
		}, []string{"type", "verb", "result"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kaz_arm_budget_wait_seconds",
			Help:    "Time that requests waited for the request budget before they were sent.",
			Buckets: []float64{.001, .01, .1, .5, 1, 5, 15, 60, 300},
		}, []string{"type", "verb"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kaz_arm_retries_total",
			Help: "Requests that were sent again, by the kind of failure.",
		}, []string{"type", "verb", "reason"}),
		known: dashboards.New(),
	}
	return m, errors.Join(observe.Register(r, &m.requests), observe.Register(r, &m.operations), observe.Register(r, &m.waits),
		observe.Register(r, &m.retries), m.known.Register(r))
}

// shown is the call as users' dashboards show it.
func (c call) shown() dashboards.Call {
	return dashboards.Call{Op: c.op, ID: c.id, FullType: c.subject.FullType, Spelled: c.spelled, Subscription: c.subject.Subscription}
}

func (m metrics) waited(c call, t budget.Turn) {
	m.waits.WithLabelValues(c.subject.FullType, c.subject.Verb).Observe(t.Waited.Seconds())
	if t.Limited {
		m.known.Limited(c.shown())
	}
}

func (m metrics) retried(s budget.Subject, reason azure.Kind) {
	m.retries.WithLabelValues(s.FullType, s.Verb, reason.String()).Inc()
}

func (m metrics) finished(s budget.Subject, err error, d time.Duration) {
	result := "ok"
	if err != nil {
		result = azure.KindOf(err).String()
	}
	m.operations.WithLabelValues(s.FullType, s.Verb, result).Observe(d.Seconds())
}

// observe counts a request and writes its one line. Neither bodies nor URLs are
// in it: polling URLs are signed.
func (d *Client) observe(ctx context.Context, c call, r reply, f *failure, took time.Duration) {
	class := "none"
	if r.status > 0 {
		class = fmt.Sprintf("%dxx", r.status/100)
	}
	d.metrics.requests.WithLabelValues(c.subject.FullType, c.subject.Verb, class).Observe(took.Seconds())
	if r.status == http.StatusTooManyRequests {
		d.metrics.known.Throttled(c.shown())
	}
	if !d.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", c.method), slog.String("op", c.op), slog.String("verb", c.subject.Verb),
		slog.String("id", string(c.id)), slog.Int("status", r.status), slog.Duration("duration", took),
		slog.String("request_id", r.header.Get("X-Ms-Request-Id")), slog.String("correlation_id", c.correlation),
	}
	if f != nil {
		attrs = append(attrs, slog.String("kind", f.Kind.String()), slog.String("code", f.Code))
	}
	d.log.LogAttrs(ctx, slog.LevelDebug, "azure request", attrs...)
}
