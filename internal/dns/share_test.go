package dns_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/dns"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/records"
)

// member is a cluster that shares names with others: an ExternalDNS with its provider and keeper.
type member struct {
	*externalDNS
	name string
	cut  *atomic.Bool // from Azure
	odd  *atomic.Bool // the next list of a zone is empty
	stop context.CancelFunc
}

// line is the way to Azure, which can be cut.
type line struct {
	http.RoundTripper
	cut, odd *atomic.Bool
}

func (l line) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.cut.Load() {
		return nil, errors.New("connection refused")
	}
	if strings.HasSuffix(r.URL.Path, "/recordsets") && l.odd.Swap(false) {
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"value":[]}`)), Request: r,
		}, nil
	}
	return l.RoundTripper.RoundTrip(r)
}

// join starts a cluster that wants names with its own address. ready may be nil.
func (w *zonedAzure) join(name string, ready dns.Readiness, want ...records.Endpoint) *member {
	w.t.Helper()
	one := *w
	m := &member{name: name, cut: &atomic.Bool{}, odd: &atomic.Bool{}}
	one.config.Azure = client(w.t, line{w.Transport(), m.cut, m.odd})
	one.config.Cluster = name
	one.restart()
	m.externalDNS = &externalDNS{w: &one, owner: name, want: want}
	ctx, cancel := context.WithCancel(w.t.Context())
	m.stop = cancel
	keeper := one.provider.NewKeeper(ready)
	go func() { _ = keeper.Run(ctx) }()
	return m
}

// shared is an address at a name that clusters share.
func shared(cluster, name string, targets ...string) records.Endpoint {
	return records.Endpoint{Name: name + ".example.com", Type: "A", Targets: targets, SetIdentifier: cluster}
}

// rounds has clusters make a round each minute, spread over the minute.
func rounds(minutes int, all ...*member) {
	for range minutes {
		for _, m := range all {
			m.loop()
			pass(time.Minute / time.Duration(len(all)))
		}
	}
}

// settle has clusters make rounds until none of them has anything to change.
func settle(t *testing.T, all ...*member) {
	t.Helper()
	for range 10 {
		busy := false
		for _, m := range all {
			status := m.loop()
			busy = busy || status != 0
		}
		if !busy {
			return
		}
		pass(time.Minute)
	}
	t.Error("clusters do not come to rest")
}

// TestShared has clusters that share names.
func TestShared(t *testing.T) {
	scenario(t, "D27 two clusters", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		a := w.join("a", nil, shared("a", "app", "1.1.1.1"))
		b := w.join("b", nil, shared("b", "app", "2.2.2.2"))
		settle(t, a, b)
		want(t, "both", w.value(public, "A", "app"), "1.1.1.1|2.2.2.2")
		b.want[0].Targets = []string{"2.2.2.3"}
		settle(t, a, b)
		want(t, "another address", w.value(public, "A", "app"), "1.1.1.1|2.2.2.3")
		a.want = nil
		settle(t, a, b)
		want(t, "without the first", w.value(public, "A", "app"), "2.2.2.3")
		want(t, "its claim", w.value(public, "TXT", "a-app"), b.text())
		b.want = nil
		settle(t, a, b)
		want(t, "without both", w.value(public, "A", "app")+w.value(public, "TXT", "a-app"), "")
		pass(30 * time.Minute) // two reads of the zone
		want(t, "their leases", w.value(public, "TXT", "a._kaz-lease")+w.value(public, "TXT", "b._kaz-lease"), "")
		a.stop()
		b.stop()
	})
	scenario(t, "D28 all at once", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		var all []*member
		var targets []string
		for n := range 5 {
			target := fmt.Sprintf("1.1.1.%d", n)
			targets = append(targets, target)
			all = append(all, w.join(fmt.Sprintf("c%d", n), nil, shared(fmt.Sprintf("c%d", n), "app", target)))
		}
		for range 3 {
			var done sync.WaitGroup
			for _, m := range all {
				done.Go(func() { m.loop() })
			}
			done.Wait()
			pass(time.Minute)
		}
		settle(t, all...)
		want(t, "all", w.value(public, "A", "app"), strings.Join(targets, "|"))
		for _, m := range all {
			m.stop()
		}
	})
	scenario(t, "D32 one leaves while another one changes", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		a := w.join("a", nil, shared("a", "app", "1.1.1.1"))
		b := w.join("b", nil, shared("b", "app", "2.2.2.2"))
		settle(t, a, b)
		a.want[0].Targets, b.want = []string{"1.1.1.2"}, nil
		var done sync.WaitGroup
		done.Go(func() { a.loop() })
		done.Go(func() { b.loop() })
		done.Wait()
		settle(t, a, b)
		want(t, "app", w.value(public, "A", "app"), "1.1.1.2")
		a.stop()
		b.stop()
	})
	scenario(t, "D33 more clusters than addresses", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		var all []*member
		for n := range 21 {
			name := fmt.Sprintf("c%02d", n)
			all = append(all, w.join(name, nil, shared(name, "app", fmt.Sprintf("1.1.1.%d", n))))
		}
		settle(t, all...)
		want(t, "addresses", len(strings.Split(w.value(public, "A", "app"), "|")), 20)
		for _, m := range all {
			m.stop()
		}
	})
}

// TestZoneAnew has a zone deleted and made again, empty.
func TestZoneAnew(t *testing.T) {
	scenario(t, "D65 a zone is made again", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		a := w.join("a", nil, shared("a", "app", "1.1.1.1"), routed("a", "t", "20.0.0.1", "weighted", "webhook/weight", "1"))
		b := w.join("b", nil, shared("b", "app", "2.2.2.2"), routed("b", "t", "20.0.0.2", "weighted", "webhook/weight", "1"))
		rounds(10, a, b)
		before := w.profiles()
		if err := w.Client.Delete(t.Context(), public); err != nil {
			t.Fatal(err)
		}
		w.Put(public, object{"location": "global"})
		rounds(25, a, b)
		want(t, "both", w.value(public, "A", "app"), "1.1.1.1|2.2.2.2")
		want(t, "claims", w.value(public, "TXT", "a-app"), a.text()+"|"+b.text())
		want(t, "leases", w.value(public, "TXT", "a._kaz-lease") != "" && w.value(public, "TXT", "b._kaz-lease") != "", true)
		_, there := w.have(public, "A", "t")
		want(t, "the alias", there, true)
		want(t, "profiles", w.profiles(), before)
		settle(t, a, b)
		a.stop()
		b.stop()
	})
}

// TestLeases has clusters that die, are cut off and come back.
func TestLeases(t *testing.T) {
	const settled = 10 // minutes
	begin := func(t *testing.T) (w *zonedAzure, a, b *member) {
		w = newZonedAzure(t, core.Options{})
		a = w.join("a", nil, shared("a", "app", "1.1.1.1"), shared("a", "alone", "1.1.1.1"))
		b = w.join("b", nil, shared("b", "app", "2.2.2.2"), shared("b", "last", "2.2.2.2"))
		rounds(settled, a, b)
		want(t, "both", w.value(public, "A", "app"), "1.1.1.1|2.2.2.2")
		return w, a, b
	}
	scenario(t, "D29 a cluster dies", func(t *testing.T) {
		w, a, b := begin(t)
		b.stop()
		died := time.Now()
		for w.value(public, "A", "app") != "1.1.1.1" && time.Since(died) < time.Hour {
			rounds(1, a)
		}
		took := time.Since(died)
		t.Logf("out of DNS after %v", took)
		if took < dns.Lease || took > 2*dns.Lease {
			t.Errorf("out of DNS after %v, want from one to two leases of %v", took, dns.Lease)
		}
		want(t, "its own name", w.value(public, "A", "last"), "2.2.2.2")
		want(t, "its claim", w.value(public, "TXT", "a-app"), a.text()+"|"+b.text())
		a.want = a.want[1:]
		rounds(1, a)
		want(t, "the last one that is left", w.value(public, "A", "app"), "2.2.2.2")
		a.stop()
	})
	scenario(t, "a cluster dies that the others have not read yet", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		a := w.join("a", nil, shared("a", "app", "1.1.1.1"))
		pass(time.Second)
		want(t, "first round", a.loop(), http.StatusNoContent)
		b := w.join("b", nil, shared("b", "app", "2.2.2.2"))
		want(t, "first round of the other", b.loop(), http.StatusNoContent)
		pass(5 * time.Minute)
		b.stop()
		died := time.Now()
		for w.value(public, "A", "app") != "1.1.1.1" && time.Since(died) < time.Hour {
			pass(time.Minute)
		}
		if took := time.Since(died); took > 2*dns.Lease {
			t.Errorf("out of DNS after %v, want two leases at most", took)
		}
		a.stop()
	})
	scenario(t, "D30 a cluster is cut off and comes back", func(t *testing.T) {
		w, a, b := begin(t)
		b.cut.Store(true)
		rounds(25, a, b)
		want(t, "cut off", w.value(public, "A", "app"), "1.1.1.1")
		w.Forget()
		b.cut.Store(false)
		back := time.Now()
		for w.value(public, "A", "app") == "1.1.1.1" && time.Since(back) < time.Hour {
			rounds(1, a, b)
		}
		t.Logf("back in DNS after %v", time.Since(back))
		want(t, "back", w.value(public, "A", "app"), "1.1.1.1|2.2.2.2")
		if took := time.Since(back); took > dns.Lease {
			t.Errorf("back after %v, want two renewals", took)
		}
		rounds(60, a, b)
		want(t, "an hour later", w.value(public, "A", "app"), "1.1.1.1|2.2.2.2")
		changes := slices.DeleteFunc(w.methods(), func(one string) bool { return strings.Contains(one, "_kaz-lease") })
		want(t, "writes beside leases", strings.Join(changes, ", "), "PUT app 200")
		a.stop()
		b.stop()
	})
	scenario(t, "a cluster is cut off for less time than it keeps what it read", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		w.config.Lease = time.Minute
		a := w.join("a", nil, shared("a", "app", "1.1.1.1"))
		b := w.join("b", nil, shared("b", "app", "2.2.2.2"))
		rounds(5, a, b)
		b.cut.Store(true)
		rounds(3, a, b)
		want(t, "cut off", w.value(public, "A", "app"), "1.1.1.1")
		b.cut.Store(false)
		rounds(2, a, b)
		want(t, "back", w.value(public, "A", "app"), "1.1.1.1|2.2.2.2")
		a.stop()
		b.stop()
	})
	scenario(t, "one list of a zone is empty", func(t *testing.T) {
		w, a, b := begin(t)
		w.Forget()
		b.odd.Store(true)
		for range 90 {
			pass(time.Minute) // without rounds of ExternalDNS, which would make its records anew
			want(t, "both", w.value(public, "A", "app"), "1.1.1.1|2.2.2.2")
			want(t, "its claim", w.value(public, "TXT", "a-app"), a.text()+"|"+b.text())
		}
		want(t, "the empty list was read", b.odd.Load(), false)
		changes := slices.DeleteFunc(w.methods(), func(one string) bool { return strings.HasPrefix(one, "PUT ") && strings.Contains(one, "_kaz-lease") })
		want(t, "writes beside renewals", strings.Join(changes, ", "), "")
		rounds(3, a, b)
		want(t, "later", w.value(public, "A", "app"), "1.1.1.1|2.2.2.2")
		a.stop()
		b.stop()
	})
	scenario(t, "a claim without a record goes while ExternalDNS makes its changes", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		a := w.join("a", nil, shared("a", "app", "1.1.1.1"))
		w.fault(core.Fault{Method: "PUT", Type: network.DNSZones + "/A", Fault: "error", Status: 500})
		want(t, "a record that cannot be written", a.loop(), http.StatusServiceUnavailable)
		want(t, "its claim", w.value(public, "TXT", "a-app"), a.text())
		w.fault()
		changes, _ := a.look()
		want(t, "what ExternalDNS saw", len(changes.Create), 1)
		for range 90 {
			if w.value(public, "TXT", "a-app") == "" {
				break
			}
			pass(time.Minute)
		}
		want(t, "the claim is gone", w.value(public, "TXT", "a-app"), "")
		want(t, "changes that lack the claim", a.w.apply(changes), http.StatusServiceUnavailable)
		want(t, "the record", w.value(public, "A", "app"), "")
		settle(t, a)
		want(t, "later", w.value(public, "A", "app")+w.value(public, "TXT", "a-app"), "1.1.1.1"+a.text())
		a.stop()
	})
	scenario(t, "all are cut off", func(t *testing.T) {
		w, a, b := begin(t)
		a.cut.Store(true)
		b.cut.Store(true)
		rounds(60, a, b)
		a.cut.Store(false)
		b.cut.Store(false)
		rounds(30, a, b)
		want(t, "later", w.value(public, "A", "app"), "1.1.1.1|2.2.2.2")
		a.stop()
		b.stop()
	})
	scenario(t, "a lease that was deleted by hand", func(t *testing.T) {
		w, a, b := begin(t)
		lease := azure.Request{Verb: azure.Delete, ID: public.Child("TXT", "b._kaz-lease")}
		if _, err := azure.Do(context.WithoutCancel(t.Context()), w.Client, lease); err != nil {
			t.Fatal(err)
		}
		rounds(40, a, b)
		want(t, "later", w.value(public, "A", "app"), "1.1.1.1|2.2.2.2")
		a.stop()
		b.stop()
	})
	scenario(t, "Azure refuses all leases for a while", func(t *testing.T) {
		w, a, b := begin(t)
		w.fault(core.Fault{Method: "PUT", Type: "Microsoft.Network/dnsZones/TXT", Fault: "error", Status: 503})
		rounds(60, a, b)
		w.fault()
		rounds(30, a, b)
		want(t, "later", w.value(public, "A", "app"), "1.1.1.1|2.2.2.2")
		a.stop()
		b.stop()
	})
}

// readiness says what is ready.
type readiness struct {
	mu      sync.Mutex
	all     map[string]bool
	changed chan struct{}
}

func (r *readiness) Ready() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

func (r *readiness) Changed() <-chan struct{} { return r.changed }

func (r *readiness) set(all map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = all
	r.changed <- struct{}{}
}

// TestReady takes a cluster out of a name while it has no ready endpoint.
func TestReady(t *testing.T) {
	scenario(t, "D41 no endpoint is ready", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		ready := &readiness{all: map[string]bool{"ingress/default/web": true}, changed: make(chan struct{}, 1)}
		a := w.join("a", nil, shared("a", "app", "1.1.1.1"))
		b := w.join("b", ready, shared("b", "app", "2.2.2.2"), shared("b", "last", "2.2.2.2"))
		rounds(10, a, b)
		want(t, "both", w.value(public, "A", "app"), "1.1.1.1|2.2.2.2")
		ready.set(map[string]bool{"ingress/default/web": false})
		pass(time.Second)
		want(t, "not ready", w.value(public, "A", "app"), "1.1.1.1")
		want(t, "the last one", w.value(public, "A", "last"), "2.2.2.2")
		rounds(10, a, b)
		want(t, "still not ready", w.value(public, "A", "app"), "1.1.1.1")
		ready.set(map[string]bool{"ingress/default/web": true})
		pass(time.Second)
		want(t, "ready", w.value(public, "A", "app"), "1.1.1.1|2.2.2.2")
		a.stop()
		b.stop()
	})
	scenario(t, "another cluster came since the zone was read", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		ready := &readiness{all: map[string]bool{"ingress/default/web": true}, changed: make(chan struct{}, 1)}
		b := w.join("b", ready, shared("b", "app", "2.2.2.2"))
		want(t, "first round", b.loop(), http.StatusNoContent)
		a := w.join("a", nil, shared("a", "app", "1.1.1.1"))
		want(t, "first round of the other", a.loop(), http.StatusNoContent)
		ready.set(map[string]bool{"ingress/default/web": false})
		pass(time.Second)
		want(t, "not ready", w.value(public, "A", "app"), "1.1.1.1")
		a.stop()
		b.stop()
	})
}

// TestSharedRest has six clusters that share 500 names, at rest for an hour. With -short it is 20 names.
func TestSharedRest(t *testing.T) {
	count, minutes := 500, 60
	if testing.Short() {
		count, minutes = 20, 20
	}
	scenario(t, "six clusters", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{Throttle: true})
		var all []*member
		for n := range 6 {
			name := fmt.Sprintf("c%d", n)
			var names []records.Endpoint
			for i := range count {
				names = append(names, shared(name, fmt.Sprintf("h%d", i), fmt.Sprintf("1.1.1.%d", n)))
			}
			all = append(all, w.join(name, nil, names...))
		}
		rounds(minutes, all...)
		settle(t, all...)
		w.Forget()
		rounds(60, all...)
		var lists, leases, others int
		for _, r := range w.Requests() {
			switch {
			case r.Method == http.MethodGet && r.Name() == "recordsets":
				lists++
			case r.Method == http.MethodPut && strings.HasSuffix(r.Name(), "._kaz-lease"):
				leases++
			case r.Method == http.MethodPut:
				others++
			}
		}
		t.Logf("in an hour: %d pages, %d leases, %d other writes", lists, leases, others)
		want(t, "other writes", others, 0)
		sets := 2*count + len(all) + 2 // with the leases, and what each zone has
		if most := len(all) * 60 / 10 * (sets/100 + 1); lists > most {
			t.Errorf("%d pages of the zone were read in an hour, want %d: one list in 10 minutes and cluster", lists, most)
		}
		want(t, "answers 429", w.count(http.StatusTooManyRequests), 0)
		if most := 60 * 15 / 10; leases > most {
			t.Errorf("%d leases were written in an hour, want %d", leases, most)
		}
		for _, m := range all {
			m.stop()
		}
	})
}

// TestWithdraw takes a cluster that is gone out of names.
func TestWithdraw(t *testing.T) {
	scenario(t, "D64 a cluster is gone", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		a := w.join("a", nil, shared("a", "app", "1.1.1.1"), routed("a", "t", "20.0.0.1", "weighted", "webhook/weight", "1"))
		b := w.join("b", nil, shared("b", "app", "2.2.2.2"), shared("b", "last", "2.2.2.2"), routed("b", "t", "20.0.0.2", "weighted", "webhook/weight", "1"))
		rounds(10, a, b)
		one := *w
		one.config.Cluster, one.config.MostDeleted = "b", 0
		one.restart()
		_, err := one.provider.Withdraw(t.Context(), false, false)
		if _, ok := errors.AsType[*dns.LiveError](err); !ok {
			t.Errorf("a cluster that lives: %v", err)
		}
		b.stop()
		pass(time.Hour)
		one.config.DryRun = true
		one.restart()
		left, err := one.provider.Withdraw(t.Context(), false, false)
		want(t, "a dry run", fmt.Sprint(left, err), "{[app.example.com t.example.com] [last.example.com]} <nil>")
		want(t, "after it", strings.Contains(w.profiles(), " b="), true)
		one.config.DryRun = false
		one.restart()
		left, err = one.provider.Withdraw(t.Context(), false, false)
		want(t, "what it left", fmt.Sprint(left, err), "{[app.example.com t.example.com] [last.example.com]} <nil>")
		want(t, "answers", w.value(public, "A", "app")+" "+w.value(public, "A", "last"), "1.1.1.1 2.2.2.2")
		want(t, "profiles", w.profiles(), "Weighted a=20.0.0.1*1")
		want(t, "claims", w.value(public, "TXT", "a-app")+w.value(public, "TXT", "a-last"), a.text()+b.text())
		want(t, "its lease", w.value(public, "TXT", "b._kaz-lease") != "", true)
		left, err = one.provider.Withdraw(t.Context(), true, false)
		want(t, "the last one", fmt.Sprint(left, err), "{[last.example.com] []} <nil>")
		want(t, "nothing", w.value(public, "A", "last")+w.value(public, "TXT", "a-last")+w.value(public, "TXT", "b._kaz-lease"), "")
		settle(t, a)
		a.stop()
	})
}
