package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// BenchmarkServices measures, in Azure's time, how long many Services take from
// nothing and to nothing, and how many requests they cost. The pool is filled
// before. Reads are counted without polls and without the read that ends the
// creation of each public IP.
func BenchmarkServices(b *testing.B) {
	for _, bm := range []struct {
		name     string
		services int
	}{{"100", 100}, {"250", 250}} {
		b.Run(bm.name, func(b *testing.B) {
			for b.Loop() {
				inBubble(b, func(t *testing.T) { measureServices(t, b, bm.services) })
			}
		})
	}
}

func measureServices(t *testing.T, b *testing.B, services int) {
	const full = 10 * time.Minute // until Azure's counts of requests are full again
	w := newServiceCluster(t, core.Options{Latency: 1, Throttle: true, Seed: 3}, 3)
	w.start(config())
	w.create(w.newService("first", 80))
	w.served("first")
	<-time.After(full)
	w.Forget()

	began := time.Now()
	names := w.createMany(services)
	w.allServed(names)
	b.ReportMetric(time.Since(began).Seconds(), "azure-s")
	writes := count(w.Writes())
	b.ReportMetric(float64(writes[testkit.ClusterName]), "lb-writes")
	b.ReportMetric(float64(writes["nsg"]), "nsg-writes")
	b.ReportMetric(float64(len(w.Reads())-services), "reads")

	<-time.After(full)
	began = time.Now()
	for _, name := range names {
		w.remove(name)
	}
	w.allGone(names)
	b.ReportMetric(time.Since(began).Seconds(), "azure-s-to-delete")
}

// inBubble runs f with simulated time, which takes a test: a benchmark alone has none.
func inBubble(b *testing.B, f func(t *testing.T)) {
	b.Helper()
	all := func(string, string) (bool, error) { return true, nil }
	test := testing.InternalTest{Name: b.Name(), F: func(t *testing.T) { synctest.Test(t, f) }}
	if !testing.RunTests(all, []testing.InternalTest{test}) {
		b.Fatal("failed")
	}
}
