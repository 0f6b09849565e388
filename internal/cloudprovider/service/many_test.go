package service_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// createMany makes Services at the same moment.
func (w *serviceCluster) createMany(count int) []string {
	w.t.Helper()
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("web-%d", i)
		w.create(w.newService(names[i], 80))
	}
	return names
}

func (w *serviceCluster) allServed(names []string) {
	w.t.Helper()
	w.until("all have an address", func() bool {
		return !slices.ContainsFunc(names, func(n string) bool { return w.address(n) == "" })
	})
}

func (w *serviceCluster) allGone(names []string) {
	w.t.Helper()
	w.until("all are gone", func() bool { return !slices.ContainsFunc(names, func(n string) bool { return !w.gone(n) }) })
}

func TestManyServicesShareTheWritesOfTheirDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const few = 5
		services := 250
		if testing.Short() {
			services = 40
		}
		w := newServiceCluster(t, core.Options{Latency: 1, Seed: 3}, 3)
		w.Forget()
		w.start(config())
		names := w.createMany(services)
		w.allServed(names)
		addresses := map[string]bool{}
		for _, name := range names {
			addresses[w.address(name)] = true
		}
		if len(addresses) != services {
			t.Errorf("%d addresses for %d Services", len(addresses), services)
		}
		got := count(w.Writes())
		t.Logf("%v, %d reads", got, len(w.Reads()))
		if got[testkit.ClusterName] > few || got["nsg"] > few || got["public IP"] != services {
			t.Errorf("writes for %d Services: %v", services, got)
		}

		w.settle()
		w.Forget()
		for _, name := range names {
			w.remove(name)
		}
		w.allGone(names)
		got = count(w.Writes())
		t.Logf("deletion: %v, %d reads", got, len(w.Reads()))
		if got[testkit.ClusterName] > few || got["nsg"] > few {
			t.Errorf("writes to delete %d Services: %v", services, got)
		}
		if left := testkit.List[network.PublicIPAddress](w.Azure, testkit.Group, network.PublicIPAddresses); len(left) > 0 {
			t.Errorf("%d public IPs are left", len(left))
		}
	})
}

// A Service that comes while many are on their way is served by the next write after its address is there.
func TestALateServiceDoesNotWaitForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1, Seed: 3}, 3)
		w.start(config())
		w.create(w.newService("first", 80)) // fills the pool
		w.served("first")
		w.settle()
		w.createMany(100)
		<-time.After(3 * time.Second)
		w.Forget()
		w.create(w.newService("late", 80))
		w.served("late")
		w.joinedNextWrite("late")
	})
}

// joinedNextWrite checks which write of the load balancer served a Service. It must be the write that was under way
// when Azure reported the public IP as made, or the next one.
func (w *serviceCluster) joinedNextWrite(name string) {
	w.t.Helper()
	base := framework.DefaultLoadBalancerName(w.get(name))
	var ready time.Time
	for _, r := range w.Requests() {
		if r.Method == "PUT" && strings.HasSuffix(r.Path, base) {
			ready = r.At.Add(r.Took)
		}
	}
	ready = w.lastPoll(ready)
	writes := 0
	for _, r := range w.Requests() {
		if r.Method == "PUT" && strings.Contains(r.Path, "/loadBalancers/") && r.At.Add(r.Took).After(ready) {
			writes++
		}
	}
	if writes < 1 || writes > 2 || ready.IsZero() {
		w.t.Errorf("%s had its public IP at %v and was served after %d writes of the load balancer, want at most 2", name, ready, writes)
	}
}

// lastPoll returns when the last answer about an operation came. The parameter answered is when the first answer
// came. Polls do not name their operation, but each is sent whole seconds after the previous answer, as Azure asks
// for.
func (w *serviceCluster) lastPoll(answered time.Time) time.Time {
	const patience, exact = 31 * time.Second, 10 * time.Microsecond
	for _, r := range w.Requests() {
		if wait := r.At.Sub(answered); r.IsPoll() && wait > 0 && wait < patience && (wait-wait.Round(time.Second)).Abs() < exact {
			return w.lastPoll(r.At.Add(r.Took))
		}
	}
	return answered
}

// firstWrite is when the first write was sent, zero for never.
func (w *serviceCluster) firstWrite() (at time.Time) {
	for _, r := range w.Requests() {
		if r.Method != http.MethodGet && at.IsZero() {
			at = r.At
		}
	}
	return at
}

func TestNodesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const services = 20
		w := newServiceCluster(t, core.Options{}, 2)
		w.start(config())
		w.allServed(w.createMany(services))
		w.settle()
		w.Forget()
		w.events.forget()

		w.scale(5) // its model is in the pool, so new machines are born into it
		w.settle()
		if writes := w.Writes(); len(writes) > 0 || w.members() != 5 {
			t.Errorf("%d members of the pool and writes %v, want 5 and none", w.members(), writes)
		}
		if reported := w.events.list("web-7"); len(reported) > 0 {
			t.Errorf("nothing was written, and a Service got %v", reported)
		}

		label := func(value string) map[string]int {
			w.Forget()
			began := time.Now()
			for _, name := range []string{"nodes0-000001", "nodes0-000002", "nodes0-000003"} {
				w.exclude(name, value)
			}
			w.settle()
			if first := w.firstWrite().Sub(began); first > 3*time.Second {
				t.Errorf("packets go on to the nodes for %v", first)
			}
			if reported := w.events.reasons("web-7"); !slices.Contains(reported, "UpdatedLoadBalancer") ||
				slices.Contains(reported, "EnsuredLoadBalancer") {
				t.Errorf("a Service got %v", reported)
			}
			w.events.forget()
			return count(w.Writes())
		}
		instances := map[string]int{"1": 1, "2": 1, "3": 1}
		if d := cmp.Diff(instances, label("true")); d != "" || w.members() != 2 {
			t.Errorf("%d members of the pool after three were excluded, want 2; writes:\n%s", w.members(), d)
		}
		if d := cmp.Diff(instances, label("false")); d != "" || w.members() != 5 {
			t.Errorf("%d members of the pool after they came back, want 5; writes:\n%s", w.members(), d)
		}
		w.Forget()
		w.markNotReady("nodes0-000002")
		w.settle()
		if writes, reads := w.Writes(), w.Reads(); len(writes)+len(reads) > 0 {
			t.Errorf("a node that is not ready made for %v %v", writes, reads)
		}
	})
}
