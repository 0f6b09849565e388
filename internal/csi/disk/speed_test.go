package disk_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi/disk"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

var runs = flag.Uint64("runs", 20, "runs of TestSpeedOfOneDisk")

// These tests compare the driver with what Azure's own operations take, by the latencies recorded of Azure, in simulated
// time. docs/performance.md has the figures.

// cost is what something took.
type cost struct {
	took                 time.Duration
	reads, polls, writes int
	refused              int // as too many
}

func (c cost) String() string {
	return fmt.Sprintf("%.1f s, %d writes, %d reads, %d polls, %d refused as too many", c.took.Seconds(), c.writes, c.reads, c.polls, c.refused)
}

// measured runs what and returns its cost.
func (w *driverCluster) measured(what func()) (c cost) {
	w.Forget()
	began := time.Now()
	what()
	c.took = time.Since(began)
	for _, r := range w.Requests() {
		switch {
		case r.Status == http.StatusTooManyRequests:
			c.refused++
		case r.IsPoll():
			c.polls++
		case r.IsRead():
			c.reads++
		default:
			c.writes++
		}
	}
	return c
}

// azures runs what and returns how long it took, and how long Azure itself worked on each machine.
func (w *driverCluster) azures(what func()) (took time.Duration, own map[string]time.Duration) {
	took, works := w.works(what)
	own = map[string]time.Duration{}
	for machine, all := range works {
		for _, d := range all {
			own[machine] += d
		}
	}
	return took, own
}

// works runs what and returns how long it took, and how long each of Azure's own operations on each machine took, in their
// order. An operation lasts from the arrival of a write to the end.
func (w *driverCluster) works(what func()) (took time.Duration, own map[string][]time.Duration) {
	began, since := time.Now(), map[string]time.Time{}
	own = map[string][]time.Duration{}
	ctx, end := context.WithCancel(w.t.Context())
	changes, watched := w.Subscribe(), make(chan struct{})
	go func() {
		defer close(watched)
		changes(ctx, func(batch []core.Change) {
			for _, c := range batch {
				key := c.ID.Key()
				begun, already := since[key]
				switch busy := isBusyMachine(c); {
				case already && !busy:
					own[key] = append(own[key], time.Since(begun))
					delete(since, key)
				case !already && busy:
					since[key] = time.Now()
				}
			}
		})
	}()
	what()
	took = time.Since(began)
	end()
	<-watched
	return took, own
}

// isBusyMachine reports whether Azure works on a machine since a change.
func isBusyMachine(c core.Change) bool {
	return strings.HasSuffix(strings.ToLower(c.ID.Type()), "virtualmachines") &&
		behaviour.Text(c.New, "properties.provisioningState") == "Updating"
}

// beyond runs what, which changes one machine. It returns how long it took, and how much of that Azure did not work on the
// machine.
func (w *driverCluster) beyond(what func()) (took, over time.Duration) {
	took, own := w.azures(what)
	if len(own) != 1 {
		w.t.Errorf("Azure worked on %d machines, want 1", len(own))
	}
	for _, d := range own {
		over = took - d
	}
	return took, over
}

// atMost fails the test if more than the given part of durations is over a bound. It returns the value at that part.
func atMost(t *testing.T, what string, all []time.Duration, part float64, bound time.Duration) time.Duration {
	t.Helper()
	slices.Sort(all)
	at := all[min(int(float64(len(all))*part), len(all)-1)]
	if at > bound {
		t.Errorf("%s: %.1f s at %.0f %%, want at most %s", what, at.Seconds(), part*100, bound)
	}
	return at
}

// TestSpeedOfOneDisk checks rows 188 and 189. One disk is attached and detached in the time of Azure's own operation and the
// wait for the next poll. The same holds for the first disk of a machine since the controller's start. `-runs` sets how many
// are measured.
func TestSpeedOfOneDisk(t *testing.T) {
	var first, attach, detach, whole []time.Duration
	var calls cost
	for seed := range *runs {
		synctest.Test(t, func(t *testing.T) {
			w := newDriverCluster(t, core.Options{Latency: 1, Seed: seed})
			w.kubernetes()
			other, v := w.volume("other"), w.volume("v")
			publish := func(volume string) (took, over time.Duration) {
				return w.beyond(func() {
					if _, err := w.publish(w.Controller, volume, "a"); err != nil {
						t.Error(err)
					}
				})
			}
			var over time.Duration
			calls = w.measured(func() { _, over = publish(other) })
			if first = append(first, over); calls.writes != 1 || calls.reads != 0 {
				t.Errorf("attach a machine's first disk: %s, want 1 write and no read", calls)
			}
			took, over := publish(v)
			attach, whole = append(attach, over), append(whole, took)
			_, over = w.beyond(func() { calls = w.measured(func() { _ = w.unpublish(w.Controller, v, "a") }) })
			detach = append(detach, over)
			if calls.writes != 1 || calls.reads != 0 {
				t.Errorf("detach: %s, want 1 write and no read", calls)
			}
		})
	}
	// Polls are half a second apart, so that bursts of disks stay below Azure's limits. Half of that is the wait for a poll on
	// average, and the poll itself takes 0.2 s.
	for _, c := range []struct {
		what         string
		over         []time.Duration
		median, most time.Duration
	}{
		{"attach", attach, 600 * time.Millisecond, 1500 * time.Millisecond},
		{"detach", detach, 600 * time.Millisecond, 1500 * time.Millisecond},
		{"attach a machine's first disk", first, 600 * time.Millisecond, 1500 * time.Millisecond},
	} {
		half := atMost(t, c.what, c.over, 0.5, c.median)
		most := atMost(t, c.what, c.over, 0.99, c.most)
		t.Logf("%s: Azure's own operation and %.2f s (median), %.2f s (99 %%)", c.what, half.Seconds(), most.Seconds())
	}
	t.Logf("attach: %.1f s in all (median); detach, the last: %s", atMost(t, "attach", whole, 0.5, 15*time.Second).Seconds(), calls)
}

// TestSpeedOfMany checks rows 190 to 192, 194 and 199.
func TestSpeedOfMany(t *testing.T) {
	for _, c := range []struct {
		name            string
		machines, disks int // disks of each machine
		stagger         time.Duration
		writes          int  // of each machine
		leave           bool // the machine has as many disks, which leave at the same time
	}{
		{"20 disks to 1 machine", 1, 20, 0, 1, false},
		{"191: 30 disks to 1 machine", 1, 30, 0, 1, false},
		{"190: 10 disks to 1 machine, one every 0.5 s", 1, 10, 500 * time.Millisecond, 2, false},
		{"192: 5 disks go and 5 come", 1, 5, 0, 1, true},
		{"1 disk goes and 1 comes", 1, 1, 0, 1, true},
		{"100 disks to 10 machines", 10, 10, 0, 1, false},
		{"199: 1,000 disks to 100 machines", 100, 10, 0, 1, false},
	} {
		if testing.Short() && c.machines > 10 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newDriverCluster(t, core.Options{Latency: 1, Seed: 11, Throttle: true})
				big := w.roomy()
				defer big.Close()
				nodes := w.many(c.machines)
				var coming, leaving []placed
				for j := range c.disks {
					for i, node := range nodes {
						coming = append(coming, placed{w.direct(fmt.Sprintf("come-%d-%d", i, j)), node})
						if c.leave {
							leaving = append(leaving, placed{w.direct(fmt.Sprintf("leave-%d-%d", i, j)), node})
						}
					}
				}
				attach := func(p placed) error { _, err := w.publish(big, p.volume, p.node); return err }
				noErrors(t, together(leaving, attach))
				<-time.After(5 * time.Minute) // Azure's limits are full again
				steps := make([]func() error, 0, len(coming)+len(leaving))
				for _, p := range coming {
					steps = append(steps, func() error { return attach(p) })
				}
				for _, p := range leaving {
					steps = append(steps, func() error { return w.unpublish(big, p.volume, p.node) })
				}
				apart := cmp.Or(c.stagger, min(burst/time.Duration(len(steps)), closest))
				var got cost
				_, own := w.azures(func() {
					got = w.measured(func() { noErrors(t, spread(steps, apart, func(f func() error) error { return f() })) })
				})
				azures := slices.Max(slices.Collect(maps.Values(own)))
				t.Logf("%s; Azure's own operations: %.1f s", got, azures.Seconds())
				// Beyond Azure's time: a read of the machine and the wait for a poll, which is longer late in long operations.
				if bound := azures + azures/8 + 4*time.Second; got.writes > c.writes*c.machines || got.took > bound || got.refused > 0 {
					t.Errorf("%s, want at most %d writes and %s", got, c.writes*c.machines, bound)
				}
				for _, node := range nodes {
					if at := w.attached(node); len(at) != c.disks {
						t.Errorf("%s has %d disks, want %d", node, len(at), c.disks)
					}
				}
			})
		})
	}
}

// burst is the time over which the calls of a burst come. Few calls come within the time closest of each other.
const burst, closest = 50 * time.Millisecond, 10 * time.Millisecond

// spread calls f for all, with a time between the beginnings of two calls, and returns their errors.
func spread[T any](all []T, apart time.Duration, f func(T) error) []error {
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, x := range all {
		group.Go(func() { errs[i] = f(x) })
		<-time.After(apart)
	}
	group.Wait()
	return errs
}

// placed is a volume that belongs to a node.
type placed struct{ volume, node string }

func noErrors(t *testing.T, errs []error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestSpeedOfAReplacement checks the move of 30 disks, each from a machine of its own to a new machine. A move takes one
// detachment and one attachment, and nothing is attached twice.
func TestSpeedOfAReplacement(t *testing.T) {
	const disks = 30
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1, Seed: 12, Throttle: true})
		nodes := w.many(2 * disks)
		w.kubernetes()
		var all []placed
		for i := range disks {
			all = append(all, placed{w.direct(fmt.Sprintf("v%d", i)), nodes[i]})
		}
		noErrors(t, together(all, func(p placed) error { _, err := w.publish(w.Controller, p.volume, p.node); return err }))
		<-time.After(5 * time.Minute)
		var mu sync.Mutex
		took := map[string]time.Duration{} // by the old node
		var got cost
		move := func(p placed) error {
			began := time.Now()
			if err := w.unpublish(w.Controller, p.volume, p.node); err != nil {
				return err
			}
			_, err := w.publish(w.Controller, p.volume, nodes[disks+slices.Index(nodes, p.node)])
			mu.Lock()
			defer mu.Unlock()
			took[p.node] = time.Since(began)
			return err
		}
		_, own := w.azures(func() { got = w.measured(func() { noErrors(t, spread(all, burst/disks, move)) }) })
		var over []time.Duration
		for i := range disks {
			over = append(over, took[nodes[i]]-own[w.nodes.of[nodes[i]].Key()]-own[w.nodes.of[nodes[disks+i]].Key()])
		}
		for _, r := range w.Requests() {
			if strings.HasSuffix(r.Path, "/attachDetachDataDisks") && r.Status >= http.StatusBadRequest {
				t.Errorf("%s was refused: %d", r.Path, r.Status)
			}
		}
		half, most := atMost(t, "move", over, 0.5, 4*time.Second), atMost(t, "move", over, 0.99, 10*time.Second)
		t.Logf("%s; each: Azure's two operations and %.1f s (median), %.1f s (at most)", got, half.Seconds(), most.Seconds())
		if got.writes != 2*disks {
			t.Errorf("%s, want %d writes", got, 2*disks)
		}
	})
}

// TestSpeedBesideCreations checks that detachments and attachments are as fast as ever while more disks are created than
// Azure's limits allow. Their requests do not wait for the requests of the creations.
func TestSpeedBesideCreations(t *testing.T) {
	const disks = 400
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1, Seed: 13, Throttle: true})
		leaving, coming := w.direct("leaving"), w.direct("coming")
		if _, err := w.publish(w.Controller, leaving, "a"); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Minute)
		creations := make([]int, disks)
		for i := range creations {
			creations[i] = i
		}
		began := time.Now()
		var created time.Duration
		var done sync.WaitGroup
		done.Go(func() {
			noErrors(t, together(creations, func(i int) error {
				_, err := w.CreateVolume(t.Context(), request(fmt.Sprintf("v%d", i)))
				return err
			}))
			created = time.Since(began)
		})
		<-time.After(2 * time.Second) // the first requests have used up the limits
		var over []time.Duration
		for _, step := range []func() error{
			func() error { return w.unpublish(w.Controller, leaving, "a") },
			func() error { _, err := w.publish(w.Controller, coming, "b"); return err },
		} {
			_, beyond := w.beyond(func() { noErrors(t, []error{step()}) })
			over = append(over, beyond)
		}
		until := time.Since(began)
		done.Wait()
		t.Logf("detach and attach: Azure's own operations and %.1f s, %.1f s; %d disks were created in %.1f s", over[0].Seconds(),
			over[1].Seconds(), disks, created.Seconds())
		if until > created {
			t.Errorf("all %d disks were created before, within %s: they waited for no limit", disks, created)
		}
		for _, beyond := range over {
			if beyond > 5*time.Second {
				t.Errorf("%.1f s beyond Azure's own operation, want at most 5", beyond.Seconds())
			}
		}
	})
}

// TestIdleVolumes checks that volumes at rest cost no requests.
func TestIdleVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1})
		w.kubernetes(pv("pv", w.volume("v")))
		got := w.measured(func() { <-time.After(time.Hour) })
		if got.writes+got.reads+got.polls > 0 {
			t.Errorf("an hour at rest: %s", got)
		}
	})
}

// room is the number of data disks that the machines of [driverCluster.many] can have.
const room = 32

// many adds machines for many disks and returns the names of their nodes.
func (w *driverCluster) many(n int) (names []string) {
	w.t.Helper()
	set := w.AddScaleSet("many", testkit.Uniform, 0)
	if _, err := azure.Do(w.t.Context(), w.Client, azure.Request{Verb: azure.Patch, ID: set,
		Body: fmt.Appendf(nil, `{"sku":{"name":"Standard_D32s_v5","tier":"Standard","capacity":%d}}`, n)}); err != nil {
		w.t.Fatal(err)
	}
	for i, vm := range testkit.List[compute.Instance](w.Azure, set, compute.ScaleSetInstances) {
		name := fmt.Sprintf("n%d", i)
		w.nodes.of[name], names = vm.ID, append(names, name)
	}
	return names
}

// roomy returns a controller that knows how many disks the machines of [driverCluster.many] can have.
func (w *driverCluster) roomy() *disk.Controller {
	return disk.NewController(disk.Config{
		Name: disk.DefaultName, Azure: fresh{w.Client.Fresh(), w.Client}, Nodes: &w.nodes, Cluster: cluster(),
		Limit: func(context.Context, string) int { return room }, Log: slog.New(slog.DiscardHandler),
	})
}

// direct creates a disk without the driver.
func (w *driverCluster) direct(name string) string {
	w.t.Helper()
	id := testkit.Group.Resource("Microsoft.Compute/disks", name)
	w.Put(id, map[string]any{"location": testkit.Location, "sku": map[string]any{"name": "StandardSSD_LRS"},
		"properties": map[string]any{"diskSizeGB": 10, "creationData": map[string]any{"createOption": "Empty"}}})
	return string(id)
}
