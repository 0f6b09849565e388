package ipam

import (
	"errors"
	"fmt"
	"math"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/observe"
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
	err := errors.Join(observe.Register(registerer, &m.allocations), observe.Register(registerer, &m.releases),
		observe.Register(registerer, &m.usage), observe.Register(registerer, &m.most))
	if err != nil {
		return nil, fmt.Errorf("metrics of node ipam: %w", err)
	}
	return m, nil
}

func (m *metrics) size(r netip.Prefix, bits int) {
	m.most.WithLabelValues(r.String()).Set(math.Exp2(float64(bits - r.Bits())))
}
