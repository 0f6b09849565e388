package nodemanager

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/azure"
)

// Values of the label operation.
const (
	initialization = "initialize"
	addressUpdate  = "update_addresses"
)

// Metrics counts the operations on nodes. A nil Metrics counts nothing.
type Metrics struct {
	operations *prometheus.CounterVec
	asked      *prometheus.HistogramVec
}

// NewMetrics registers the metrics, or returns the registered ones.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	operations, err := register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kaz_node_manager_operations_total",
		Help: "Attempts to initialize nodes and to update their addresses.",
	}, []string{"operation", "result"}))
	if err != nil {
		return nil, err
	}
	asked, err := register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "kaz_node_manager_describe_duration_seconds",
		Help:    "Time to read the metadata of a machine, including retries.",
		Buckets: []float64{.005, .01, .05, .1, .5, 1, 5, 10, 30, 60},
	}, []string{"result"}))
	if err != nil {
		return nil, err
	}
	return &Metrics{operations: operations, asked: asked}, nil
}

func register[C prometheus.Collector](r prometheus.Registerer, c C) (C, error) {
	err := r.Register(c)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing, nil
		}
	}
	return c, err
}

func (m *Metrics) count(operation string, ok bool) {
	if m == nil {
		return
	}
	result := "ok"
	if !ok {
		result = "failed"
	}
	m.operations.WithLabelValues(operation, result).Inc()
}

func (m *Metrics) described(took time.Duration, err error) {
	if m == nil {
		return
	}
	result := "ok"
	if err != nil {
		result = azure.KindOf(err).String()
	}
	m.asked.WithLabelValues(result).Observe(took.Seconds())
}
