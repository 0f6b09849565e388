package ipam

import (
	"errors"
	"fmt"
	"math"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics have the names of existing dashboards.
type metrics struct {
	allocations, releases *prometheus.CounterVec
	usage, most           *prometheus.GaugeVec
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	const name = "node_ipam_controller_cidrset_"
	label := []string{"clusterCIDR"}
	m := &metrics{
		allocations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name + "cidrs_allocations_total", Help: "Pod CIDR blocks assigned to nodes.",
		}, label),
		releases: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name + "cidrs_releases_total", Help: "Pod CIDR blocks released.",
		}, label),
		usage: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: name + "usage_cidrs", Help: "Used fraction of the range, 0 to 1.",
		}, label),
		// Kubernetes has the same misspelling.
		most: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "node_ipam_controller_cirdset_max_cidrs", Help: "Number of blocks of the default size in the range.",
		}, label),
	}
	if registerer == nil {
		return m, nil
	}
	err := errors.Join(register(registerer, &m.allocations), register(registerer, &m.releases), register(registerer, &m.usage),
		register(registerer, &m.most))
	if err != nil {
		return nil, fmt.Errorf("metrics of node ipam: %w", err)
	}
	return m, nil
}

// register registers a metric. If an earlier controller registered it, it continues to be used.
func register[C prometheus.Collector](r prometheus.Registerer, c *C) error {
	err := r.Register(*c)
	if again, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if first, ok := again.ExistingCollector.(C); ok {
			*c, err = first, nil
		}
	}
	return err
}

func (m *metrics) size(r netip.Prefix, bits int) {
	m.most.WithLabelValues(r.String()).Set(math.Exp2(float64(bits - r.Bits())))
}
