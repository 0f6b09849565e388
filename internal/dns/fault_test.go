package dns_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kaz/internal/localazure/core"
	"kaz/internal/plan/records"
	"kaz/internal/testkit"
)

// TestWriteFaults has each write of a story fail in each way. In the end all is as wanted, what others have stays, and a name that stays
// is only gone during the writes that replace its CNAME.
func TestWriteFaults(t *testing.T) {
	faults := testkit.WriteFaults()
	delete(faults, "not applied")      // needs a transport of its own
	delete(faults, "failed operation") // record sets have no operations
	delete(faults, "crash")            // see TestCrash
	for name, f := range faults {
		for nth := 1; nth <= 6; nth++ {
			scenario(t, fmt.Sprintf("write %d %s", nth, name), func(t *testing.T) {
				w := newZonedAzure(t, core.Options{})
				x := started(t, w)
				f.Nth, f.Times = nth, 1
				for _, method := range []string{"PUT", "DELETE"} {
					f.Method = method
					w.fault(f)
					x.change(t, method == "PUT")
				}
			})
		}
	}
}

// TestCrash ends the provider between two writes: the next one knows nothing and brings all to its end.
func TestCrash(t *testing.T) {
	for nth := 1; nth <= 6; nth++ {
		scenario(t, fmt.Sprintf("after write %d", nth), func(t *testing.T) {
			w := newZonedAzure(t, core.Options{})
			x := started(t, w)
			w.config.Azure = client(t, counted{w.Transport(), new(atomic.Int64), int64(nth)})
			w.restart()
			x.want[0].Targets, x.want[1] = []string{"2.2.2.2"}, records.Endpoint{Name: "b.example.com", Type: "A", Targets: []string{"1.1.1.1"}}
			x.loop()
			w.config.Azure = client(t, w.Transport())
			w.restart()
			x.settle(t)
		})
	}
}

// counted lets some writes through, and no request after them.
type counted struct {
	http.RoundTripper
	writes *atomic.Int64
	most   int64
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	n := c.writes.Load()
	if r.Method != http.MethodGet {
		n = c.writes.Add(1)
	}
	if n > c.most {
		return nil, fmt.Errorf("the program has ended")
	}
	return c.RoundTripper.RoundTrip(r)
}

// started returns an ExternalDNS with three records, in a zone with records of others.
func started(t *testing.T, w *zonedAzure) *externalDNS {
	t.Helper()
	w.set(public, "A", "human", object{"TTL": 60, "ARecords": []object{{"ipv4Address": "9.9.9.9"}}})
	w.set(public, "TXT", "@", object{"TTL": 60, "TXTRecords": []object{{"value": []string{"v=spf1 -all"}}}})
	x := &externalDNS{w: w, owner: "me", want: []records.Endpoint{
		{Name: "a.example.com", Type: "A", Targets: []string{"1.1.1.1"}},
		{Name: "b.example.com", Type: "CNAME", Targets: []string{"lb.example.net"}},
		{Name: "c.example.com", Type: "A", Targets: []string{"1.1.1.1"}},
	}}
	want(t, "first round", x.loop(), http.StatusNoContent)
	return x
}

// change wants other records, and waits until they are there.
func (x *externalDNS) change(t *testing.T, first bool) {
	t.Helper()
	if first {
		x.want = []records.Endpoint{
			{Name: "a.example.com", Type: "A", Targets: []string{"2.2.2.2"}},
			{Name: "b.example.com", Type: "A", Targets: []string{"1.1.1.1"}},
			{Name: "d.example.com", Type: "A", Targets: []string{"1.1.1.1"}},
		}
	} else {
		x.want = []records.Endpoint{
			{Name: "a.example.com", Type: "CNAME", Targets: []string{"lb.example.net"}},
			{Name: "b.example.com", Type: "A", Targets: []string{"1.1.1.1"}},
		}
	}
	x.settle(t)
}

// settle runs rounds until nothing is to change, and checks the zone.
func (x *externalDNS) settle(t *testing.T) {
	t.Helper()
	x.until(t, 10)
	x.w.restart()
	want(t, "round of another process", x.loop(), 0)
	var expected []string
	for _, e := range x.want {
		expected = append(expected, e.Name+" "+e.Type+" "+strings.Join(e.Targets, "|"))
	}
	expected = append(expected, "human.example.com A 9.9.9.9", "example.com TXT v=spf1 -all")
	var got []string
	for _, e := range x.w.records() {
		if e.Type != "TXT" || e.Name == "example.com" {
			got = append(got, e.Name+" "+e.Type+" "+strings.Join(e.Targets, "|"))
		}
	}
	slices.Sort(expected)
	slices.Sort(got)
	want(t, "records", strings.Join(got, "\n"), strings.Join(expected, "\n"))
	for _, e := range x.want {
		want(t, "owner of "+e.Name, x.w.value(public, "TXT", strings.TrimSuffix(txtName(e), ".example.com")), x.text())
	}
}

// TestSlowAzure has an Azure that answers after 20 s: ExternalDNS gets its answer in time.
func TestSlowAzure(t *testing.T) {
	scenario(t, "D11 a list that takes longer than a request", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		w.config.Azure = client(t, slow{w.Transport(), 20 * time.Second})
		w.restart()
		for range 4 {
			start := time.Now()
			code := w.call(http.MethodGet, "/records", nil).Code
			if took := time.Since(start); took > 13*time.Second {
				t.Fatalf("the answer took %v", took)
			}
			if code == http.StatusOK {
				break
			}
			want(t, "status", code, http.StatusServiceUnavailable)
			pass(time.Minute - time.Since(start))
		}
		want(t, "status in the end", w.call(http.MethodGet, "/records", nil).Code, http.StatusOK)
	})
}

// slow delays requests.
type slow struct {
	http.RoundTripper
	by time.Duration
}

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(s.by):
		return s.RoundTripper.RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}
