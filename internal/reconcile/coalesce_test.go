package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kaz/internal/azure"
	"kaz/internal/reconcile"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// document is a shared document that takes 4 s to write and refuses some names.
type document struct {
	mu      sync.Mutex
	batches [][]string
	refuses map[string]bool
	writing bool
	overlap bool
	fail    error
}

func (d *document) commit(ctx context.Context, _ string, batch []string) ([]string, error) {
	d.begin(batch)
	defer d.end()
	select {
	case <-time.After(4 * time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d.fail != nil {
		return nil, d.fail
	}
	for _, name := range batch {
		if d.refuses[name] {
			return nil, &azure.Error{Kind: azure.Invalid, Op: "PUT", Code: "InvalidParameter", Message: "something in the batch is wrong"}
		}
	}
	return batch, nil
}

func (d *document) begin(batch []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.overlap = d.overlap || d.writing
	d.writing = true
	d.batches = append(d.batches, slices.Clone(batch))
}

func (d *document) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writing = false
}

// submitAll submits names at once, each from a goroutine of its own, and returns
// what each was answered.
func submitAll(t *testing.T, c *reconcile.Coalescer[string, string], names []string) map[string]error {
	t.Helper()
	var mu sync.Mutex
	var callers sync.WaitGroup
	answers := map[string]error{}
	for _, name := range names {
		callers.Go(func() {
			got, err := c.Submit(t.Context(), "lb", name)
			mu.Lock()
			defer mu.Unlock()
			answers[name] = err
			if err == nil && got != name {
				answers[name] = fmt.Errorf("answered with %q", got)
			}
		})
	}
	callers.Wait()
	return answers
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("service-%03d", i)
	}
	return all
}

func TestFiveHundredCallersCostAHandfulOfWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d document
		c := reconcile.NewCoalescer(d.commit)
		defer c.Close()
		start := time.Now()
		for name, err := range submitAll(t, c, names(500)) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(d.batches) > 4 {
			t.Errorf("%d writes for 500 callers, want at most 4", len(d.batches))
		}
		if d.overlap {
			t.Error("two writes of one document overlapped")
		}
		if took := time.Since(start); took > 16*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestLoneCallerDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d document
		c := reconcile.NewCoalescer(d.commit)
		defer c.Close()
		start := time.Now()
		if _, err := c.Submit(t.Context(), "lb", "alone"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("a lone caller was answered after %v, want one write of 4s", took)
		}
	})
}

// TestObserve checks what the observer of a batch gets: how long each caller has waited.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d document
		c := reconcile.NewCoalescer(d.commit)
		var observed [][]time.Duration
		c.Observe(func(waits []time.Duration) { observed = append(observed, waits) })
		defer c.Close()
		var callers sync.WaitGroup
		for _, name := range names(3) {
			callers.Go(func() {
				if _, err := c.Submit(t.Context(), "lb", name); err != nil {
					t.Error(err)
				}
			})
			<-time.After(time.Second)
		}
		callers.Wait()
		// The first write takes 4 s. The others came 1 s and 2 s after its beginning.
		want := [][]time.Duration{{0}, {3 * time.Second, 2 * time.Second}}
		if !reflect.DeepEqual(observed, want) {
			t.Errorf("%v, want %v", observed, want)
		}
	})
}

// TestGatheringServesABurstTogether checks that gathering serves a burst with one write. A lone caller waits for a
// moment, and an endless stream of callers delays no caller for long.
func TestGatheringServesABurstTogether(t *testing.T) {
	const calm, most, write = 5 * time.Millisecond, 100 * time.Millisecond, 4 * time.Second
	for name, c := range map[string]struct {
		callers, batches int
		apart            time.Duration
		first            time.Duration // until the first one is answered
	}{
		"alone":             {1, 1, 0, write + calm},
		"a burst":           {500, 1, 0, write + calm},
		"one after another": {20, 1, 3 * time.Millisecond, write + 19*3*time.Millisecond + calm},
		"without end":       {500, 2, 3 * time.Millisecond, write + most},
		"not together":      {2, 2, 6 * time.Millisecond, write + calm},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d document
				g := reconcile.NewCoalescer(d.commit)
				g.Gather(calm, most)
				defer g.Close()
				var callers sync.WaitGroup
				start := time.Now()
				for i, name := range names(c.callers) {
					callers.Go(func() {
						if _, err := g.Submit(t.Context(), "lb", name); err != nil {
							t.Error(err)
						}
						if took := time.Since(start); i == 0 && took != c.first {
							t.Errorf("the first one was answered after %v, want %v", took, c.first)
						}
					})
					if c.apart > 0 {
						<-time.After(c.apart)
					}
				}
				callers.Wait()
				if len(d.batches) != c.batches {
					t.Errorf("%d writes, want %d", len(d.batches), c.batches)
				}
			})
		})
	}
}

// TestPostponedRequestsAreCommittedNext checks that a postponed request is committed when the others
// are answered, and not postponed for ever.
func TestPostponedRequestsAreCommittedNext(t *testing.T) {
	for name, c := range map[string]struct {
		times   int // that all but the first of a batch are postponed
		writes  int
		refuses bool
	}{
		"once":              {1, 2, false},
		"one after another": {3, 4, false},
		"alone it is not":   {1000, 5, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d document
				left := c.times
				g := reconcile.NewCoalescer(func(ctx context.Context, key string, batch []string) ([]string, error) {
					answers, err := d.commit(ctx, key, batch)
					if left--; left < 0 || err != nil {
						return answers, err
					}
					all := map[int]bool{}
					for i := 1; i < len(batch); i++ {
						all[i] = true
					}
					if len(batch) == 1 { // an error: no request is left to be served first
						all[0] = true
					}
					return answers, &reconcile.Postponed{Requests: all}
				})
				g.Gather(time.Millisecond, time.Second)
				defer g.Close()
				failed := 0
				for _, err := range submitAll(t, g, names(5)) {
					if err != nil {
						failed++
					}
				}
				if len(d.batches) != c.writes || failed > 0 != c.refuses {
					t.Errorf("%d writes, %d failed; want %d writes", len(d.batches), failed, c.writes)
				}
			})
		})
	}
}

func TestRefusedMembersAreIsolatedAndTheOthersCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := document{refuses: map[string]bool{"service-017": true, "service-042": true}}
		c := reconcile.NewCoalescer(d.commit)
		defer c.Close()
		for name, err := range submitAll(t, c, names(64)) {
			switch {
			case d.refuses[name] && azure.KindOf(err) != azure.Invalid:
				t.Errorf("%s is at fault and was answered with %v", name, err)
			case !d.refuses[name] && err != nil:
				t.Errorf("%s is innocent and was answered with %v", name, err)
			}
		}
		if most := 1 + 1 + 2*2*6; len(d.batches) > most {
			t.Errorf("%d writes to find 2 culprits among 64, want at most %d", len(d.batches), most)
		}
	})
}

// TestTheSearchForCulpritsIsBounded checks that the search ends, however many requests are at fault,
// and when no single request is.
func TestTheSearchForCulpritsIsBounded(t *testing.T) {
	for name, guilty := range map[string]func(batch []string) error{
		"all": func([]string) error { return &azure.Error{Kind: azure.NotFound, Code: "NotFound"} },
		"every second": func(batch []string) error {
			if i := slices.IndexFunc(batch, func(n string) bool { return (n[len(n)-1]-'0')%2 == 1 }); i >= 0 {
				return &azure.Error{Kind: azure.Invalid}
			}
			return nil
		},
		"named, one by one": func(batch []string) error {
			if len(batch) == 1 {
				return nil
			}
			return &reconcile.Refusal{Culprits: map[int]error{0: &azure.Error{Kind: azure.Invalid}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// The bound is that of one batch. All requests come while another request is being written, so they
				// are in one batch.
				const callers, most = 500, 1 + 2*2*9 + 4
				writes := 0
				c := reconcile.NewCoalescer(func(ctx context.Context, _ string, batch []string) ([]string, error) {
					writes++
					<-time.After(time.Second)
					return batch, guilty(batch)
				})
				defer c.Close()
				go func() { _, _ = c.Submit(t.Context(), "lb", "first-0") }() // keeps the worker busy
				synctest.Wait()
				if answers := submitAll(t, c, names(callers)); len(answers) != callers {
					t.Errorf("%d answers for %d callers", len(answers), callers)
				}
				if writes > most {
					t.Errorf("%d writes, want at most %d", writes, most)
				}
			})
		})
	}
}

// TestSift checks that many culprits keep no other request from being committed, and that the search ends where all are refused.
func TestSift(t *testing.T) {
	const bad, good = 30, 40
	for name, c := range map[string]struct {
		guilty func(n int) bool
		most   int // commits
	}{
		"the first ones":    {func(n int) bool { return n < bad }, 100},
		"the last ones":     {func(n int) bool { return n >= good }, 100},
		"one among another": {func(n int) bool { return n%2 == 0 && n < 2*bad }, 150},
		"all":               {func(int) bool { return true }, 80},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &document{refuses: map[string]bool{}}
				for n, request := range names(bad + good) {
					d.refuses[request] = c.guilty(n)
				}
				coalescer := reconcile.NewCoalescer(d.commit)
				defer coalescer.Close()
				coalescer.Gather(10*time.Millisecond, 100*time.Millisecond)
				coalescer.Order(strings.Compare)
				coalescer.Sift(func(string) int { return 0 })
				for request, err := range submitAll(t, coalescer, names(bad+good)) {
					if (err != nil) != d.refuses[request] {
						t.Errorf("%s: %v", request, err)
					}
				}
				t.Logf("%d commits", len(d.batches))
				if len(d.batches) > c.most {
					t.Errorf("%d commits, want at most %d", len(d.batches), c.most)
				}
			})
		})
	}
}

// TestSiftByRank checks that no culprit passes in a commit without a request that it needs: of 40 pairs of a base and a user, 20 users are
// refused beside their base, and not without it. Five of the other bases are refused, too.
func TestSiftByRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pairs, bad = 40, 20
		bases, guilty := map[string]bool{}, map[string]bool{}
		for n, name := range names(pairs) {
			bases[name] = n >= pairs-bad // the user of the base is at fault
			guilty[name] = n < 5
		}
		written := map[string]bool{}
		commits := 0
		c := reconcile.NewCoalescer(func(_ context.Context, _ string, batch []string) ([]string, error) {
			commits++
			next := maps.Clone(written)
			for _, name := range batch {
				next[name] = true
			}
			for name := range next {
				if base, isUser := strings.CutPrefix(name, "user of "); guilty[name] || isUser && bases[base] && next[base] {
					return nil, &azure.Error{Kind: azure.Invalid, Op: "PUT", Code: "InvalidParameter", Message: "something in the batch is wrong"}
				}
			}
			written = next
			return batch, nil
		})
		defer c.Close()
		c.Gather(10*time.Millisecond, 100*time.Millisecond)
		c.Order(strings.Compare)
		c.Sift(func(name string) int { return strings.Count(name, "user of ") })
		all := names(pairs)
		for _, name := range names(pairs) {
			all = append(all, "user of "+name)
		}
		for name, err := range submitAll(t, c, all) {
			base, isUser := strings.CutPrefix(name, "user of ")
			if (err != nil) != (guilty[name] || isUser && bases[base]) {
				t.Errorf("%s: %v", name, err)
			}
		}
		t.Logf("%d commits", commits)
		if commits > 2*pairs+40 {
			t.Errorf("%d commits for %d requests", commits, 2*pairs)
		}
	})
}

// TestOrder checks that the batches of a search are in the order that was set, also after a culprit was found.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &document{refuses: map[string]bool{"a2": true, "b3": true}}
		c := reconcile.NewCoalescer(d.commit)
		defer c.Close()
		c.Gather(10*time.Millisecond, 100*time.Millisecond)
		c.Order(strings.Compare)
		answers := submitAll(t, c, []string{"b3", "a1", "b1", "a2", "b2", "a3", "b4", "a4"})
		for name, err := range answers {
			if (err != nil) != d.refuses[name] {
				t.Errorf("%s: %v", name, err)
			}
		}
		for n, batch := range d.batches {
			if !slices.IsSorted(batch) {
				t.Errorf("commit %d: %q", n, batch)
			}
		}
	})
}

// TestARefusalOfEverybodyIsNotSearched checks that a caller that may not write a document at all gets
// an error at once.
func TestARefusalOfEverybodyIsNotSearched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := 0
		c := reconcile.NewCoalescer(func(ctx context.Context, _ string, batch []string) ([]string, error) {
			writes++
			<-time.After(time.Second)
			return nil, &azure.Error{Kind: azure.Denied, Code: "AuthorizationFailed"}
		})
		defer c.Close()
		for name, err := range submitAll(t, c, names(100)) {
			if azure.KindOf(err) != azure.Denied {
				t.Errorf("%s: %v", name, err)
			}
		}
		if writes > 2 {
			t.Errorf("%d writes, want one for the first caller and one for the others", writes)
		}
	})
}

func TestNamedCulpritsCostOneMoreWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := 0
		denied := &azure.Error{Kind: azure.Quota, Message: "no more addresses"}
		release := make(chan struct{})
		c := reconcile.NewCoalescer(func(_ context.Context, _ string, batch []string) ([]string, error) {
			if batch[0] == "first" {
				<-release
				return batch, nil
			}
			writes++
			if i := slices.Index(batch, "service-003"); i >= 0 {
				return nil, fmt.Errorf("commit: %w", &reconcile.Refusal{Culprits: map[int]error{i: denied}})
			}
			return batch, nil
		})
		defer c.Close()
		go func() { _, _ = c.Submit(t.Context(), "lb", "first") }() // keeps the worker busy
		synctest.Wait()
		time.AfterFunc(time.Second, func() { close(release) })
		answers := submitAll(t, c, names(10))
		if !errors.Is(answers["service-003"], denied) {
			t.Errorf("the culprit was answered with %v", answers["service-003"])
		}
		delete(answers, "service-003")
		for name, err := range answers {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if writes != 2 {
			t.Errorf("%d writes, want 2: one refused, one without the culprit", writes)
		}
	})
}

func TestCancelledCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d document
		c := reconcile.NewCoalescer(d.commit)
		defer c.Close()
		inFlight, cancelInFlight := context.WithCancel(t.Context())
		waiting, cancelWaiting := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { _, err := c.Submit(inFlight, "lb", "in flight"); first <- err }()
		synctest.Wait()
		go func() { _, err := c.Submit(waiting, "lb", "waiting"); second <- err }()
		synctest.Wait()
		cancelInFlight()
		cancelWaiting()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("in flight: %v", err)
		}
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("waiting: %v", err)
		}
		if _, err := c.Submit(t.Context(), "lb", "third"); err != nil {
			t.Fatal(err)
		}
		if want := [][]string{{"in flight"}, {"third"}}; !slices.EqualFunc(d.batches, want, slices.Equal) {
			t.Errorf("commits %v, want %v: what flies goes on, what waits is withdrawn", d.batches, want)
		}
	})
}

func TestWriterThatFailsAnswersEverybodyWithoutSearchingForACulprit(t *testing.T) {
	for _, kind := range []azure.Kind{azure.Unavailable, azure.Throttled, azure.Changed, azure.Busy, azure.Internal} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := document{fail: &azure.Error{Kind: kind}}
				c := reconcile.NewCoalescer(d.commit)
				defer c.Close()
				for name, err := range submitAll(t, c, names(20)) {
					if azure.KindOf(err) != kind {
						t.Errorf("%s: %v", name, err)
					}
				}
				if len(d.batches) > 2 {
					t.Errorf("%d writes against an Azure that cannot answer", len(d.batches))
				}
			})
		})
	}
}

func TestKeysDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var both sync.WaitGroup
		both.Add(2)
		c := reconcile.NewCoalescer(func(_ context.Context, _ string, batch []string) ([]string, error) {
			both.Done()
			both.Wait() // ends only when both keys commit at the same time
			return batch, nil
		})
		defer c.Close()
		var callers sync.WaitGroup
		for _, key := range []string{"lb-a", "lb-b"} {
			callers.Go(func() { _, _ = c.Submit(t.Context(), key, "x") }) // the bubble reports a deadlock
		}
		callers.Wait()
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d document
		c := reconcile.NewCoalescer(d.commit)
		answers := make(chan map[string]error)
		go func() { answers <- submitAll(t, c, []string{"a", "b"}) }()
		synctest.Wait()
		c.Close()
		for name, err := range <-answers {
			if !errors.Is(err, context.Canceled) && !errors.Is(err, reconcile.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := c.Submit(t.Context(), "lb", "late"); !errors.Is(err, reconcile.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// BenchmarkCoalescer reports how many writes of 4 s (simulated) 500 concurrent callers at one document
// cost. The bound is 2: one for the first caller and one for all others.
func BenchmarkCoalescer(b *testing.B) {
	for b.Loop() {
		var d document
		d.instant(b)
	}
}

func (d *document) instant(b *testing.B) {
	b.Helper()
	gate := make(chan struct{})
	c := reconcile.NewCoalescer(func(_ context.Context, _ string, batch []string) ([]string, error) {
		d.begin(batch)
		defer d.end()
		<-gate
		return batch, nil
	})
	defer c.Close()
	var callers, submitted sync.WaitGroup
	submitted.Add(500)
	for _, name := range names(500) {
		callers.Go(func() {
			submitted.Done()
			if _, err := c.Submit(b.Context(), "lb", name); err != nil {
				b.Error(err)
			}
		})
	}
	submitted.Wait()
	close(gate)
	callers.Wait()
	b.ReportMetric(float64(len(d.batches)), "writes")
}
