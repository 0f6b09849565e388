package dns_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/dns"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/records"
)

// names returns addresses at names of a zone.
func names(zone string, count int) (all []records.Endpoint) {
	for n := range count {
		all = append(all, records.Endpoint{Name: fmt.Sprintf("h%d.%s", n, zone), Type: "A", Targets: []string{"10.0.0.1"}})
	}
	return all
}

// until runs rounds of a minute until nothing is to change. No answer may take longer than ExternalDNS waits.
func (x *externalDNS) until(t *testing.T, most int) {
	t.Helper()
	for range most {
		begin := time.Now()
		status := x.loop()
		took := time.Since(begin)
		if took > 2*dns.Deadline || status != 0 && status != http.StatusNoContent && status != http.StatusServiceUnavailable {
			t.Fatalf("a round took %v and ended with %d", took, status)
		}
		if status == 0 {
			return
		}
		pass(time.Minute - took)
	}
	t.Fatalf("not at rest after %d rounds", most)
}

// TestLimits fills zones from nothing with the limits of Azure, in rounds of a minute.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name, zone string
		count      int
		most       time.Duration
	}{
		// 1000 writes at 200 in a minute are 5 minutes.
		{"500 names in a public zone", "example.com", 500, 5*time.Minute + 15*time.Second},
		// 300 writes at 60 in a minute are 5 minutes.
		{"D12 150 names in a private zone", "corp.internal", 150, 5*time.Minute + 15*time.Second},
	} {
		scenario(t, c.name, func(t *testing.T) {
			w := newZonedAzure(t, core.Options{Throttle: true})
			x := &externalDNS{w: w, owner: "me", want: names(c.zone, c.count)}
			start := time.Now()
			x.until(t, 30)
			var last time.Time
			for _, r := range w.Requests() {
				if r.Method == http.MethodPut {
					last = r.At
				}
			}
			t.Logf("all are written after %v", last.Sub(start))
			if took := last.Sub(start); took > c.most {
				t.Errorf("all are written after %v, want %v", took, c.most)
			}
			want(t, "answers 429", w.count(http.StatusTooManyRequests), 0)
			want(t, "records", len(w.records()), 2*c.count)
		})
	}
}

// TestRest has six clusters at rest for an hour in one zone.
func TestRest(t *testing.T) {
	scenario(t, "six clusters", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{Throttle: true})
		var clusters []*externalDNS
		for n := range 6 {
			one := *w
			one.config.Azure = client(t, w.Transport())
			one.restart()
			x := &externalDNS{w: &one, owner: fmt.Sprintf("cluster%d", n)}
			for _, e := range names("example.com", 5) {
				e.Name = fmt.Sprintf("c%d%s", n, e.Name)
				x.want = append(x.want, e)
			}
			clusters = append(clusters, x)
			want(t, "first round", x.loop(), http.StatusNoContent)
		}
		w.Forget()
		for range 60 {
			pass(time.Minute)
			for _, x := range clusters {
				want(t, "round", x.loop(), 0)
			}
		}
		want(t, "writes", len(w.methods()), 0)
		want(t, "answers 429", w.count(http.StatusTooManyRequests), 0)
		reads := 0
		for _, r := range w.Requests() {
			if r.Method == http.MethodGet && r.Name() == "recordsets" {
				reads++
			}
		}
		// 62 record sets are a page. The private zone is not counted.
		if most := 6 * 6; reads > most {
			t.Errorf("%d pages were read in an hour, want %d", reads, most)
		}
	})
}

// TestLargeZone reads a zone with more pages than Azure lists in a minute.
func TestLargeZone(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 6,050 record sets")
	}
	scenario(t, "6,050 record sets", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{Throttle: true})
		const sets = 6050 // 61 pages; Azure lists 60 in a minute
		for n := range sets {
			if n%dns.PublicWrites == 0 {
				pass(time.Minute)
			}
			w.set(public, "A", fmt.Sprintf("h%d", n), object{"TTL": 60, "ARecords": []object{{"ipv4Address": "1.1.1.1"}}})
		}
		w.Forget()
		start := time.Now()
		var clusters sync.WaitGroup
		for range 4 {
			one := *w
			one.config.Azure = client(t, w.Transport())
			one.restart()
			clusters.Go(func() {
				for one.call(http.MethodGet, "/records", nil).Code != http.StatusOK && time.Since(start) < time.Hour {
					<-time.After(time.Minute)
				}
				want(t, "records", len(one.records()), sets)
			})
		}
		clusters.Wait()
		took := time.Since(start)
		t.Logf("four clusters have read %d record sets after %v, with %d answers 429", sets, took, w.count(http.StatusTooManyRequests))
		if most := 4 * time.Minute; took > most {
			t.Errorf("the zone was read after %v, want %v", took, most)
		}
	})
}

// TestFullZone has a zone that takes no more record sets.
func TestFullZone(t *testing.T) {
	scenario(t, "D13 a full zone", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		w.fault(core.Fault{Method: "PUT", Type: aRecords, Fault: "error", Status: 400, Code: "BadRequest",
			Message: "The record set cannot be created: the zone has 10000 record sets, the most that it can have."})
		x := &externalDNS{w: w, owner: "me", want: names("example.com", 3)}
		want(t, "first round", x.loop(), http.StatusNoContent)
		want(t, "records", lines(w.records()), "")
		want(t, "unseen zones", w.provider.Ready(t.Context()), error(nil))
	})
	scenario(t, "a hidden zone", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		w.config.Zones = dns.Zones{IDs: []azure.ID{public + "x"}}
		w.restart()
		want(t, "status", w.call(http.MethodGet, "/records", nil).Code, http.StatusServiceUnavailable)
	})
}
