package autoscale_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"kaz/internal/azure/compute"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// TestIncrease has the scenarios of growing groups.
func TestIncrease(t *testing.T) {
	scenario(t, "S1 from zero", func(t *testing.T) {
		w := newFleet(t, core.Options{Latency: 1}, 0, "0:10:pool")
		defer w.stop()
		if err := w.increase(pool, 1); err != nil {
			t.Fatal(err)
		}
		want(t, "target", w.target(pool), 1)
		pass(3 * time.Minute)
		wantWrites(t, w, "PATCH pool")
		want(t, "states", w.states(pool), "running 1")
		want(t, "capacity in Azure", w.azureCapacity(pool), 1)
	})
	scenario(t, "S7 over the greatest size", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 9, "0:10:pool")
		defer w.stop()
		err := w.increase(pool, 2)
		if err == nil || !strings.Contains(err.Error(), "size increase too large - desired:11 max:10") {
			t.Errorf("error %v", err)
		}
		wantCode(t, "not positive", w.increase(pool, 0), codes.InvalidArgument)
		wantCode(t, "another group", w.increase("other", 1), codes.NotFound)
		pass(time.Minute)
		wantWrites(t, w)
	})
	scenario(t, "S8 ten at once", func(t *testing.T) {
		w := newFleet(t, core.Options{Latency: 1}, 0, "0:10:pool")
		defer w.stop()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if err := w.increase(pool, 1); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		want(t, "target at once", w.target(pool), 10)
		pass(5 * time.Minute)
		wantWrites(t, w, "PATCH pool")
		want(t, "states", w.states(pool), "running 10")
		want(t, "target", w.target(pool), 10)
	})
	scenario(t, "S9 somebody else grows the scale set", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 1, "0:10:pool")
		defer w.stop()
		w.patch(pool, map[string]any{"sku": map[string]any{"capacity": 3}})
		if err := w.increase(pool, 3); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		want(t, "capacity in Azure", w.azureCapacity(pool), 6)
		want(t, "target", w.target(pool), 6)
	})
	scenario(t, "S45 two providers", func(t *testing.T) {
		w := newFleet(t, core.Options{Latency: 1}, 1, "0:10:pool")
		defer w.stop()
		other := &fleet{Azure: w.Azure, t: t}
		other.start("0:10:pool")
		defer other.stop()
		if err := w.increase(pool, 3); err != nil {
			t.Fatal(err)
		}
		if err := other.increase(pool, 2); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		want(t, "capacity in Azure", w.azureCapacity(pool), 6)
		want(t, "target", w.target(pool), 6)
		want(t, "target of the other", other.target(pool), 6)
	})
}

// TestRefusal has the scenarios in which Azure makes fewer machines than asked for.
func TestRefusal(t *testing.T) {
	refusal := func(code, message string) core.Fault {
		return core.Fault{Method: "PATCH", Type: compute.ScaleSets, Fault: "error", Status: 409, Code: code, Message: message, Times: 1}
	}
	scenario(t, "S10 a quota is used up", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 2, "0:10:pool")
		defer w.stop()
		faults(t, w, refusal("OperationNotAllowed", "Operation could not be completed as it results in exceeding approved quota."))
		if err := w.increase(pool, 3); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		want(t, "states", w.states(pool), "QuotaExceeded 3, running 2")
		want(t, "target", w.target(pool), 5)
		for _, i := range w.instances(pool) {
			if e := i.Status.ErrorInfo; e != nil && e.InstanceErrorClass != 1 {
				t.Errorf("class %d", e.InstanceErrorClass)
			}
		}
		w.Forget()
		if err := w.delete(pool, w.failed(pool)...); err != nil {
			t.Fatal(err)
		}
		want(t, "target after the placeholders were deleted", w.target(pool), 2)
		pass(time.Minute)
		wantWrites(t, w)
	})
	scenario(t, "S47 a policy forbids it", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 0, "0:10:pool")
		defer w.stop()
		faults(t, w, core.Fault{Method: "PATCH", Type: compute.ScaleSets, Fault: "error", Status: 403,
			Code: "RequestDisallowedByPolicy", Message: "Resource 'pool' was disallowed by policy 'no-machines'."})
		if err := w.increase(pool, 1); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		want(t, "states", w.states(pool), "RequestDisallowedByPolicy 1")
		e := w.instances(pool)[0].Status.ErrorInfo
		if e.InstanceErrorClass != 99 || !strings.Contains(e.ErrorMessage, "no-machines") {
			t.Errorf("error %v", e)
		}
		pass(10 * time.Minute)
		want(t, "writes", len(w.Writes()), 1)
	})
}

func faults(t *testing.T, w *fleet, rules ...core.Fault) {
	t.Helper()
	if err := w.SetFaults(rules); err != nil {
		t.Fatal(err)
	}
}

// TestDelete has the scenarios of shrinking groups.
func TestDelete(t *testing.T) {
	scenario(t, "S16 the least size", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 5, "3:10:pool")
		defer w.stop()
		w.join(pool)
		ids := w.well(pool)
		wantCode(t, "three", w.delete(pool, ids[:3]...), codes.FailedPrecondition)
		want(t, "target", w.target(pool), 5)
		if err := w.delete(pool, ids[:2]...); err != nil {
			t.Error(err)
		}
		want(t, "target", w.target(pool), 3)
		pass(time.Minute)
		want(t, "capacity in Azure", w.azureCapacity(pool), 3)
		want(t, "states", w.states(pool), "running 3")
	})
	scenario(t, "S17 ten at once, S18 twice", func(t *testing.T) {
		w := newFleet(t, core.Options{Latency: 1}, 12, "1:20:pool")
		defer w.stop()
		w.join(pool)
		ids := w.well(pool)[:10]
		var all sync.WaitGroup
		for _, id := range ids {
			all.Go(func() {
				if err := w.delete(pool, id); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		want(t, "target at once", w.target(pool), 2)
		want(t, "states at once", w.states(pool), "deleting 10, running 2")
		pass(5 * time.Second)
		if err := w.delete(pool, ids...); err != nil {
			t.Error("S18:", err)
		}
		pass(5 * time.Minute)
		wantWrites(t, w, "POST delete")
		want(t, "states", w.states(pool), "running 2")
		want(t, "capacity in Azure", w.azureCapacity(pool), 2)
		if err := w.delete(pool, ids...); err != nil {
			t.Error("machines that are gone:", err)
		}
	})
	scenario(t, "wrong group", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 2, "0:10:pool", "0:5:"+testkit.ScaleSet)
		defer w.stop()
		ids := w.well(pool)
		wantCode(t, "of another group", w.delete(testkit.ScaleSet, ids[0]), codes.FailedPrecondition)
		wantCode(t, "no machine", w.delete(pool, "aws:///i-1"), codes.InvalidArgument)
		pass(time.Minute)
		wantWrites(t, w)
	})
}
