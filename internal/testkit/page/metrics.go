package page

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics is a Registerer that records metrics by name, for a table of them.
type Metrics map[string]Metric

// Metric is a metric as a table shows it.
type Metric struct {
	Name, Kind, Help string
	Labels           []string
}

var descriptor = regexp.MustCompile(
	`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)

// Register implements [prometheus.Registerer].
func (m Metrics) Register(c prometheus.Collector) error {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	for d := range descs {
		parts := descriptor.FindStringSubmatch(d.String())
		if parts == nil {
			return fmt.Errorf("%s cannot be read", d)
		}
		found := Metric{Name: parts[1], Kind: kindOf(c), Help: strings.ReplaceAll(parts[2], `\"`, `"`)}
		if parts[3] != "" {
			found.Labels = strings.Split(parts[3], ",")
		}
		m[found.Name] = found
	}
	return nil
}

// MustRegister implements [prometheus.Registerer].
func (m Metrics) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := m.Register(c); err != nil {
			panic(err)
		}
	}
}

// Unregister implements [prometheus.Registerer]. A recorded metric stays.
func (Metrics) Unregister(prometheus.Collector) bool { return false }

func kindOf(c prometheus.Collector) string {
	switch c.(type) {
	case prometheus.Gauge: // it has all methods of a counter, too
		return "gauge"
	case *prometheus.CounterVec, prometheus.Counter:
		return "counter"
	case *prometheus.HistogramVec, prometheus.Histogram:
		return "histogram"
	}
	return "gauge"
}

// Table returns the metrics as a table, in the order of their names.
func (m Metrics) Table() string {
	var b strings.Builder
	b.WriteString("\n| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(m)) {
		one := m[name]
		labels := make([]string, len(one.Labels))
		for i, l := range one.Labels {
			labels[i] = "`" + l + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", one.Name, one.Kind, strings.Join(labels, ", "), one.Help)
	}
	b.WriteString("\n")
	return b.String()
}
