package autoscale_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// hidden is Azure that leaves out of its lists what hide reports.
type hidden struct {
	azure.Reader
	azure.Writer
	hide func(q azure.Query, doc azure.Document) bool
}

func (h hidden) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	docs, err := h.Reader.List(ctx, q)
	var kept []azure.Document
	for _, doc := range docs {
		if !h.hide(q, doc) {
			kept = append(kept, doc)
		}
	}
	return kept, err
}

// TestFailedIncrease has the scenarios of increases that fail in Azure.
func TestFailedIncrease(t *testing.T) {
	failing := core.Fault{Method: "PATCH", Type: compute.ScaleSets, Fault: "operation", Times: 1,
		Code: "AllocationFailed", Message: "Allocation failed. We do not have sufficient capacity for the requested VM size in this region."}
	scenario(t, "S29 failed machines are listed", func(t *testing.T) {
		w := newFleet(t, core.Options{Latency: 1}, 3, "0:10:pool")
		defer w.stop()
		faults(t, w, failing)
		begin := time.Now()
		if err := w.increase(pool, 2); err != nil {
			t.Fatal(err)
		}
		for w.states(pool) != "AllocationFailed 2, running 3" {
			if pass(time.Second); time.Since(begin) > 5*time.Minute {
				t.Fatal(w.states(pool))
			}
		}
		want(t, "target", w.target(pool), 5)
		w.tag(pool, map[string]string{"read": "again"})
		pass(3 * time.Minute)
		want(t, "states after another read", w.states(pool), "AllocationFailed 2, running 3")
		if err := w.delete(pool, w.failed(pool)...); err != nil {
			t.Fatal(err)
		}
		want(t, "target at once", w.target(pool), 3)
		pass(5 * time.Minute)
		want(t, "states", w.states(pool), "running 3")
		want(t, "capacity in Azure", w.azureCapacity(pool), 3)
	})
	scenario(t, "S11 failed machines are missing", func(t *testing.T) {
		w := newFleet(t, core.Options{Latency: 1}, 3, "0:10:pool")
		w.stop()
		w.hide(func(_ azure.Query, doc azure.Document) bool {
			return strings.Contains(string(doc), `"provisioningState":"Failed"`) &&
				strings.Contains(string(doc), `"instanceId"`)
		}, "0:10:pool")
		defer w.stop()
		faults(t, w, failing)
		if err := w.increase(pool, 2); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		want(t, "states", w.states(pool), "AllocationFailed 2, running 3")
		w.Forget()
		if err := w.delete(pool, w.failed(pool)...); err != nil {
			t.Fatal(err)
		}
		want(t, "target at once", w.target(pool), 3)
		pass(time.Minute)
		wantWrites(t, w, "PATCH pool")
		want(t, "capacity in Azure", w.azureCapacity(pool), 3)
	})
	scenario(t, "S12 a part fits into the quota", func(t *testing.T) {
		w := newFleet(t, core.Options{Quotas: map[string]int{"standardDSv5Family": 6}}, 2, "0:20:pool")
		defer w.stop()
		if err := w.increase(pool, 10); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		want(t, "states", w.states(pool), "QuotaExceeded 9, running 3")
		wantWrites(t, w, "PATCH pool")
		for _, r := range w.Requests() {
			if r.Status >= 400 {
				t.Errorf("%s %s: %d", r.Method, r.Path, r.Status)
			}
		}
	})
}

// hide starts a provider that does not see in lists what hide reports.
func (w *fleet) hide(hide func(azure.Query, azure.Document) bool, flags ...string) {
	w.t.Helper()
	w.reader = hidden{w.Client.Fresh(), w.Client, hide}
	w.start(flags...)
}

// TestReads has the scenarios of reads that fail or lie.
func TestReads(t *testing.T) {
	scenario(t, "S13 throttled", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 3, "0:10:pool")
		defer w.stop()
		faults(t, w, core.Fault{Method: "GET", Fault: "error", Status: 429, RetryAfter: 60})
		pass(10 * time.Minute)
		want(t, "states", w.states(pool), "running 3")
		groups, err := w.NodeGroups(t.Context(), &externalgrpc.NodeGroupsRequest{})
		if err != nil || len(groups.NodeGroups) != 1 {
			t.Errorf("groups %v, %v", groups, err)
		}
		if n := len(w.Reads()); n > 15 {
			t.Errorf("%d reads in ten minutes, though each is to wait a minute", n)
		}
	})
	scenario(t, "S14 an empty list", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 5, "0:10:pool")
		defer w.stop()
		w.join(pool)
		faults(t, w, core.Fault{Method: "GET", Type: compute.ScaleSets, Fault: "absent", Times: 1})
		pass(65 * time.Second)
		want(t, "groups after an empty list of scale sets", len(groups(t, w)), 1)
		faults(t, w, core.Fault{Method: "GET", Type: compute.ScaleSetInstances, Fault: "absent", Times: 1})
		w.tag(pool, map[string]string{"changed": "yes"})
		pass(70 * time.Second)
		want(t, "states after an empty list of instances", w.states(pool), "running 5")
		want(t, "target", w.target(pool), 5)
	})
	scenario(t, "S15 one scale set may not be read", func(t *testing.T) {
		w := &fleet{Azure: testkit.NewAzure(t, core.Options{}, 0), t: t}
		w.AddScaleSet("a", testkit.Uniform, 1)
		w.AddScaleSet("b", testkit.Uniform, 2)
		w.reader = hidden{w.Client.Fresh(), w.Client, func(azure.Query, azure.Document) bool { return false }}
		w.reader.Reader = denied{w.Client.Fresh(), setID("a")}
		w.start("0:10:a", "0:10:b")
		defer w.stop()
		_, err := w.NodeGroupTargetSize(t.Context(), &externalgrpc.NodeGroupTargetSizeRequest{Id: "a"})
		wantCode(t, "a", err, codes.Unavailable)
		if !strings.Contains(status.Convert(err).Message(), "not allowed") {
			t.Error(err)
		}
		want(t, "b", w.target("b"), 2)
		if _, err := w.Refresh(t.Context(), &externalgrpc.RefreshRequest{}); err != nil {
			t.Error(err)
		}
	})
	scenario(t, "S32 and S33 the scale set changes and goes", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 1, "label:cluster=c")
		defer w.stop()
		want(t, "groups without tags", len(groups(t, w)), 0)
		w.tag(pool, map[string]string{"cluster": "c", "min": "1", "max": "10"})
		pass(time.Minute)
		want(t, "groups", strings.Join(groups(t, w), " "), "pool 1-10")
		w.join(pool)
		w.tag(pool, map[string]string{"cluster": "c", "min": "1", "max": "20"})
		pass(time.Minute)
		want(t, "groups", strings.Join(groups(t, w), " "), "pool 1-20")
		id := w.well(pool)[0]
		if _, err := azure.Do(t.Context(), w.OtherClient(), azure.Request{Verb: azure.Delete, ID: setID(pool)}); err != nil {
			t.Fatal(err)
		}
		pass(3 * time.Minute)
		want(t, "groups of a scale set that is gone", len(groups(t, w)), 0)
		r, err := w.NodeGroupForNode(t.Context(), &externalgrpc.NodeGroupForNodeRequest{Node: &externalgrpc.ExternalGrpcNode{ProviderID: id}})
		if err != nil || r.NodeGroup.Id != "" {
			t.Errorf("group of its node: %v, %v", r, err)
		}
	})
	scenario(t, "S39 nothing is read yet", func(t *testing.T) {
		w := &fleet{Azure: testkit.NewAzure(t, core.Options{}, 0), t: t}
		faults(t, w, core.Fault{Method: "GET", Type: compute.ScaleSets, Fault: "error", Status: 403, Code: "AuthorizationFailed"})
		w.start("0:10:pool")
		defer w.stop()
		_, err := w.Refresh(t.Context(), &externalgrpc.RefreshRequest{})
		wantCode(t, "Refresh", err, codes.Unavailable)
		_, err = w.NodeGroups(t.Context(), &externalgrpc.NodeGroupsRequest{})
		wantCode(t, "NodeGroups", err, codes.Unavailable)
		if w.Provider.Ready() {
			t.Error("ready")
		}
	})
}

// denied is Azure in which the instances of one scale set may not be read.
type denied struct {
	azure.Reader
	set azure.ID
}

func (d denied) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	if q.Scope.Equal(d.set) {
		return nil, &azure.Error{Kind: azure.Denied, Code: "AuthorizationFailed", Message: "not allowed", ID: d.set}
	}
	return d.Reader.List(ctx, q)
}

// groups returns the node groups as "NAME MIN-MAX".
func groups(t *testing.T, w *fleet) (all []string) {
	t.Helper()
	r, err := w.NodeGroups(t.Context(), &externalgrpc.NodeGroupsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range r.NodeGroups {
		all = append(all, g.Id+" "+itoa(g.MinSize)+"-"+itoa(g.MaxSize))
	}
	return all
}

// TestDoubtfulCapacity checks that no capacity is written from an answer that what is known speaks against. Azure has
// reported a capacity of 0 for a live scale set.
func TestDoubtfulCapacity(t *testing.T) {
	const machines = 9
	answers := map[string]any{"0": 0, "absent": nil, "1": 1}
	for name, capacity := range answers {
		wrong := core.Fault{Method: "GET", Type: compute.ScaleSets, Fault: core.FaultAnswer, Path: "sku.capacity", Value: capacity}
		start := func(t *testing.T) *fleet {
			w := newFleet(t, core.Options{}, machines, "0:20:pool")
			w.join(pool)
			return w
		}
		known := func(t *testing.T, w *fleet) {
			t.Helper()
			want(t, "states", w.states(pool), "running 9")
			want(t, "target", w.target(pool), machines)
		}
		scenario(t, "increase, once "+name, func(t *testing.T) {
			w := start(t)
			defer w.stop()
			wrong.Times = 1
			faults(t, w, wrong)
			pass(time.Minute) // the list of scale sets shows it
			known(t, w)
			if err := w.increase(pool, 1); err != nil {
				t.Fatal(err)
			}
			pass(2 * time.Minute)
			want(t, "states", w.states(pool), "running 10")
			want(t, "capacity in Azure", w.azureCapacity(pool), machines+1)
		})
		scenario(t, "increase, always "+name, func(t *testing.T) {
			w := start(t)
			defer w.stop()
			w.Forget()
			wrong.Times = 0
			faults(t, w, wrong)
			pass(3 * time.Minute)
			known(t, w)
			if err := w.increase(pool, 1); err != nil {
				t.Fatal(err)
			}
			pass(5 * time.Minute)
			wantWrites(t, w)
			faults(t, w)
			want(t, "capacity in Azure", w.azureCapacity(pool), machines)
			want(t, "states", w.states(pool), "running 9, unavailable 1")
			if err := w.delete(pool, w.failed(pool)...); err != nil {
				t.Fatal(err)
			}
			pass(3 * time.Minute)
			known(t, w)
		})
		scenario(t, "delete, "+name, func(t *testing.T) {
			w := start(t)
			defer w.stop()
			wrong.Times = 0
			faults(t, w, wrong)
			pass(3 * time.Minute)
			if err := w.delete(pool, w.well(pool)[0]); err != nil {
				t.Fatal(err)
			}
			want(t, "target at once", w.target(pool), machines-1)
			pass(3 * time.Minute)
			faults(t, w)
			want(t, "target", w.target(pool), machines-1)
			want(t, "states", w.states(pool), "running 8")
			want(t, "capacity in Azure", w.azureCapacity(pool), machines-1)
		})
		scenario(t, "a new process, "+name, func(t *testing.T) {
			w := start(t)
			w.stop()
			wrong.Times = 0
			faults(t, w, wrong)
			w.start("0:20:pool")
			defer w.stop()
			known(t, w)
			if err := w.increase(pool, 1); err != nil {
				t.Fatal(err)
			}
			pass(3 * time.Minute)
			faults(t, w)
			want(t, "capacity in Azure", w.azureCapacity(pool), machines)
		})
	}
	scenario(t, "while machines are made", func(t *testing.T) {
		w := newFleet(t, core.Options{Latency: 1}, 0, "0:20:pool")
		defer w.stop()
		if err := w.increase(pool, 5); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		faults(t, w, core.Fault{Method: "GET", Type: compute.ScaleSets, Fault: core.FaultAnswer, Path: "sku.capacity", Value: 0, Times: 1})
		if err := w.increase(pool, 1); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		want(t, "states", w.states(pool), "running 6")
		want(t, "capacity in Azure", w.azureCapacity(pool), 6)
	})
	scenario(t, "another client shrinks it", func(t *testing.T) {
		w := newFleet(t, core.Options{Latency: 1}, machines, "0:20:pool")
		defer w.stop()
		w.join(pool)
		w.patch(pool, map[string]any{"sku": map[string]any{"capacity": 2}})
		if err := w.increase(pool, 1); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		want(t, "capacity in Azure", w.azureCapacity(pool), 3)
		want(t, "target", w.target(pool), 3)
	})
	scenario(t, "without a sku", func(t *testing.T) {
		w := newFleet(t, core.Options{}, machines, "0:20:pool")
		defer w.stop()
		w.join(pool)
		faults(t, w, core.Fault{Method: "GET", Type: compute.ScaleSets, Fault: core.FaultAnswer, Path: "sku", Times: 1})
		pass(time.Minute)
		want(t, "groups", len(groups(t, w)), 1)
		want(t, "states", w.states(pool), "running 9")
		want(t, "target", w.target(pool), machines)
	})
}
