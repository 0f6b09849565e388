package catalog

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestLatencyTable(t *testing.T) {
	table, err := ReadLatencies()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		typ, verb, row string
		nearest        bool
	}{
		{"Microsoft.Network/loadBalancers", "update", "Microsoft.Network/loadBalancers", false},
		{"Microsoft.Network/loadbalancers", "delete", "Microsoft.Network/loadBalancers", false},
		{"Microsoft.Network/applicationGateways", "create", "Microsoft.Network/*", true},
		{"Microsoft.Network/privateDnsZones/AAAA", "create", "Microsoft.Network/privateDnsZones", true},
		{"Microsoft.Unknown/things", "get", "*", true},
		{"Microsoft.Compute/virtualMachines", "deallocate", "Microsoft.Compute/virtualMachines", false},
		{"Microsoft.Compute/disks", "beginGetAccess", "*", true},
	} {
		row := table.Of(c.typ, c.verb)
		if row.Type != c.row || row.Nearest != c.nearest {
			t.Errorf("%s %s: row of %s, nearest %v; want %s, %v", c.typ, c.verb, row.Type, row.Nearest, c.row, c.nearest)
		}
	}
}

// The drawn durations have the median and the 90th percentile of their table row.
func TestDrawsFollowTheTable(t *testing.T) {
	span := Span{Median: 46 * time.Second, P90: 88 * time.Second}
	source := rand.New(rand.NewPCG(1, 1))
	draws := make([]time.Duration, 20000)
	for i := range draws {
		draws[i] = span.Draw(source.NormFloat64())
	}
	slices.Sort(draws)
	near := func(got, want time.Duration) bool {
		return math.Abs(float64(got-want)) < 0.05*float64(want)
	}
	if got := draws[len(draws)/2]; !near(got, span.Median) {
		t.Errorf("median %v, want %v", got, span.Median)
	}
	if got := draws[len(draws)*9/10]; !near(got, span.P90) {
		t.Errorf("90th percentile %v, want %v", got, span.P90)
	}
}

func TestMeanGivesTheMedian(t *testing.T) {
	span := fromMean(5.2, 7)
	if span.Median >= seconds(5.2) || span.Median < seconds(4.5) {
		t.Errorf("median of mean 5.2 and p90 7: %v", span.Median)
	}
	mean := float64(span.Median) * math.Exp(span.sigma()*span.sigma()/2)
	if math.Abs(mean-float64(seconds(5.2))) > float64(10*time.Millisecond) {
		t.Errorf("mean comes out as %v", time.Duration(mean))
	}
}
