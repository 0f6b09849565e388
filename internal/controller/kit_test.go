package controller_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	"kaz/internal/azure"
	"kaz/internal/controller"
	"kaz/internal/plan"
	"kaz/internal/reconcile"
)

// why is the reasons of a sample controller.
type why struct {
	changed bool
	nodes   int
}

func (w why) And(other why) why { return why{w.changed || other.changed, w.nodes + other.nodes} }

func TestReasonsAreKeptUntilTheyAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := controller.NewQueue[string, why]("")
		defer q.ShutDown()
		q.Mark("a", why{changed: true})
		q.Mark("a", why{nodes: 1})
		q.MarkAfter("b", why{nodes: 2}, time.Minute)
		q.Note("b", why{nodes: 3})
		start := time.Now()
		for _, want := range []struct {
			key    string
			why    why
			waited time.Duration
		}{{"a", why{true, 1}, 0}, {"b", why{false, 5}, time.Minute}} {
			k, down := q.Get()
			got := q.Take(k)
			if down || k != want.key || got != want.why || time.Since(start) != want.waited {
				t.Errorf("after %v %s for %+v, want %+v", time.Since(start), k, got, want)
			}
			if again := q.Take(k); again != (why{}) {
				t.Errorf("%s has %+v still", k, again)
			}
			q.Done(k)
		}
	})
}

func TestWatch(t *testing.T) {
	var got []string
	h := controller.Watch[*why]{
		Added:   func(w *why, atStart bool) { got = append(got, fmt.Sprint("added ", w.nodes, atStart)) },
		Changed: func(old, now *why) { got = append(got, fmt.Sprint("changed ", old.nodes, now.nodes)) },
		Deleted: func(w *why) { got = append(got, fmt.Sprint("deleted ", w.nodes)) },
	}.Handler()
	h.OnAdd(&why{nodes: 1}, true)
	h.OnUpdate(&why{nodes: 1}, &why{nodes: 2})
	h.OnDelete(&why{nodes: 2})
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "x", Obj: &why{nodes: 3}})
	h.OnAdd("of another type", false)
	if want := []string{"added 1 true", "changed 1 2", "deleted 2", "deleted 3"}; !slices.Equal(got, want) {
		t.Errorf("reported %q, want %q", got, want)
	}
	controller.Watch[*why]{}.Handler().OnAdd(&why{}, false) // nothing is done
}

func TestDelay(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want []time.Duration
	}{
		"busy": {&azure.Error{Kind: azure.Busy}, []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second}},
		"Azure asks for time": {&azure.Error{Kind: azure.Throttled, RetryAfter: 17 * time.Second},
			[]time.Duration{17 * time.Second, 17 * time.Second, 20 * time.Second}},
		"a quota":        {&azure.Error{Kind: azure.Quota}, []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute}},
		"a wrong object": {fmt.Errorf("commit: %w", lasting{}), []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []time.Duration
			for i := range tc.want {
				got = append(got, controller.Delay(tc.err, i+1))
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	if got := controller.Delay(&azure.Error{Kind: azure.Unavailable}, 1000); got != 5*time.Minute {
		t.Errorf("after very many failures %v", got)
	}
	// Two keys that began to wait at different times are tried at the same one.
	early, late := controller.Beat(3*time.Second, 10*time.Second, nil), controller.Beat(8*time.Second, 10*time.Second, nil)
	if 3*time.Second+early != 10*time.Second || 8*time.Second+late != 10*time.Second {
		t.Errorf("beats after %v and %v", early, late)
	}
}

type lasting struct{}

func (lasting) Error() string { return "the name is wrong" }
func (lasting) Lasting() bool { return true }

func TestTheSameIsReportedOnce(t *testing.T) {
	var reported controller.Deduplicator[string]
	for i, step := range []struct{ now, want []string }{
		{[]string{"a", "a", "b"}, []string{"a", "b"}},
		{[]string{"b", "a"}, nil},
		{[]string{"b"}, nil},
		{[]string{"a", "b"}, []string{"a"}},
	} {
		if got := reported.New(step.now); !slices.Equal(got, step.want) {
			t.Errorf("step %d: reported %q, want %q", i, got, step.want)
		}
	}
	reported = controller.Deduplicator[string]{}
	if got := reported.New([]string{"b"}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("of a new object reported %q", got)
	}
}

func TestBusyIsReportedWhenItLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f controller.BusyFilter
		busy := &azure.Error{Kind: azure.Busy}
		var reported []time.Duration
		start := time.Now()
		for range 10 {
			if f.Passes(busy) {
				reported = append(reported, time.Since(start))
			} else if len(reported) == 0 && !f.Holds() {
				t.Error("nothing is held back")
			}
			<-time.After(20 * time.Second)
		}
		if !slices.Equal(reported, []time.Duration{time.Minute}) {
			t.Errorf("reported after %v, want once after a minute", reported)
		}
		if !f.Passes(errors.New("other")) || f.Holds() || f.Passes(busy) {
			t.Error("another failure does not begin anew")
		}
	})
}

func TestBlame(t *testing.T) {
	failed := errors.New("failed")
	step := func(why string, err error) reconcile.Result {
		return reconcile.Result{Step: plan.Step{Why: why}, Err: err}
	}
	// Each suspicion names a step and the requests that it is about.
	type suspicion struct {
		step     string
		requests []int
	}
	is := func(step string, requests ...int) suspicion { return suspicion{step, requests} }
	for name, tc := range map[string]struct {
		results    []reconcile.Result
		suspicions []suspicion
		want       []int
	}{
		"the narrowest suspicion": {[]reconcile.Result{step("x", failed)},
			[]suspicion{is("x", 1), is("x", 0, 1)}, []int{1}},
		"a wider one": {[]reconcile.Result{step("x", failed)}, []suspicion{is("y", 1), is("x", 0, 2)},
			[]int{0, 2}},
		"none":             {[]reconcile.Result{step("x", failed)}, []suspicion{is("y", 1)}, nil},
		"one of two steps": {[]reconcile.Result{step("x", failed), step("y", failed)}, []suspicion{is("y", 1)}, nil},
		"all":              {[]reconcile.Result{step("x", failed)}, []suspicion{is("x", 0, 1, 2)}, nil},
		"not tried":        {[]reconcile.Result{step("x", reconcile.ErrNotAttempted)}, []suspicion{is("x", 1)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := controller.Blame(failed, reconcile.Report{Results: tc.results}.Failed(), 3,
				func(failed reconcile.Result) (suspicions []controller.Suspicion) {
					for _, s := range tc.suspicions {
						suspicions = append(suspicions, func(i int) bool {
							return failed.Step.Why == s.step && slices.Contains(s.requests, i)
						})
					}
					return suspicions
				})
			var got []int
			if r, ok := errors.AsType[*reconcile.Refusal](err); ok {
				got = slices.Sorted(maps.Keys(r.Culprits))
			} else if !errors.Is(err, failed) {
				t.Errorf("error %v", err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("culprits (-want +got):\n%s", d)
			}
		})
	}
	for text, want := range map[string]bool{"ip web-1 is gone": true, "ip web-12": false, "my-web-1": false, "": false, "'web-1'.": true} {
		if got := controller.Mentions(text, "web-1"); got != want {
			t.Errorf("%q mentions it: %v", text, got)
		}
	}
}

const group = azure.ID("/subscriptions/s/resourceGroups/g")

// zone is an Azure with documents that it marks as failed until they are written again.
type zone struct {
	docs  map[string]azure.Document
	puts  []string
	fails error
}

func (z *zone) Fresh() azure.Reader { return z }

func (z *zone) Get(_ context.Context, id azure.ID) (azure.Document, error) {
	if d, ok := z.docs[id.Key()]; ok {
		return d, nil
	}
	return nil, &azure.Error{Kind: azure.NotFound, ID: id}
}

func (z *zone) Begin(_ context.Context, r azure.Request) (*azure.Operation, error) {
	if z.fails != nil {
		return nil, z.fails
	}
	z.puts = append(z.puts, r.ID.Name())
	z.docs[r.ID.Key()] = azure.Document(strings.Replace(string(r.Body), "Failed", "Succeeded", 1))
	return azure.Done(z.docs[r.ID.Key()]), nil
}

func (z *zone) List(context.Context, azure.Query) ([]azure.Document, error) { return nil, nil }

func TestFailedWritesAreRepeated(t *testing.T) {
	type link struct {
		Zone *azure.Reference `json:"zone,omitempty"`
	}
	zoneID, linkID := group.Resource("N/zones", "z"), group.Resource("N/links", "l")
	doc := func(id azure.ID, more string) azure.Document {
		return azure.Document(fmt.Sprintf(`{"id":%q,"etag":"1","properties":{%s"provisioningState":"Failed"}}`, id, more))
	}
	z := &zone{docs: map[string]azure.Document{
		zoneID.Key(): doc(zoneID, ""), linkID.Key(): doc(linkID, fmt.Sprintf(`"zone":{"id":%q},`, zoneID)),
	}}
	f := controller.FailedWrites{
		Types:  []string{"N/zones", "N/links"},
		Refers: map[string]func(azure.Document) []azure.ID{"N/links": controller.ReferencesOf[link]},
	}
	refused := &azure.Error{Kind: azure.Invalid, ID: linkID}
	out := reconcile.Outcome{
		Have: plan.NewSnapshot(z.docs[zoneID.Key()], z.docs[linkID.Key()]),
		Reports: []reconcile.Report{{Results: []reconcile.Result{
			{Step: plan.Step{ID: linkID, Body: z.docs[linkID.Key()]}, Err: refused},
		}}},
	}
	unblocked, err := f.Unblock(t.Context(), z, out)
	if err != nil || !unblocked || !slices.Equal(z.puts, []string{"z"}) {
		t.Errorf("written is %v: %v, %v; want what the link refers to", z.puts, unblocked, err)
	}
	f.Note(out, func(azure.ID) bool { return true })
	z.fails = &azure.Error{Kind: azure.Unavailable}
	if err := f.Retry(t.Context(), z); err == nil {
		t.Error("a write that fails again is not reported")
	}
	z.fails = nil
	for range 2 { // the second time nothing is left
		if err := f.Retry(t.Context(), z); err != nil || !slices.Equal(z.puts, []string{"z", "l"}) {
			t.Errorf("written is %v: %v", z.puts, err)
		}
	}
	f.Note(out, func(azure.ID) bool { return false })
	if err := f.Retry(t.Context(), z); err != nil || len(z.puts) != 2 {
		t.Errorf("a document that is not shared is written again: %v, %v", z.puts, err)
	}
}
