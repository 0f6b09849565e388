package autoscale_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

const deleteAction = "delete"

// TestDeletion has the scenarios of deletions that Azure refuses or does in another way.
func TestDeletion(t *testing.T) {
	refused := core.Fault{Method: "POST", Type: compute.ScaleSets, Action: deleteAction, Times: 1, Fault: "error", Status: 409,
		Code: "OperationNotAllowed", Message: "Force deletion is not supported for this size."}
	scenario(t, "S19 not by force", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 4, "0:10:pool")
		w.stop()
		w.config.ForceDelete = true
		w.start("0:10:pool")
		defer w.stop()
		faults(t, w, refused)
		w.join(pool)
		ids := w.well(pool)
		if err := w.delete(pool, ids[0]); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		wantWrites(t, w, "POST delete", "POST delete")
		want(t, "states", w.states(pool), "running 3")
		w.Forget()
		if err := w.delete(pool, ids[1]); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		wantWrites(t, w, "POST delete")
	})
	scenario(t, "S20 preempted", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 2, "0:10:pool")
		defer w.stop()
		w.join(pool)
		preempted := core.Fault{Method: "POST", Type: compute.ScaleSets, Action: deleteAction, Fault: "operation", Times: 1,
			Code: "OperationPreempted", Message: "Operation execution has been preempted by a more recent operation."}
		faults(t, w, preempted)
		if err := w.delete(pool, w.well(pool)[0]); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		want(t, "states after one preemption", w.states(pool), "running 1")
		preempted.Times = 0
		faults(t, w, preempted)
		if err := w.delete(pool, w.well(pool)[0]); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		want(t, "writes", len(w.Writes()), 4)
		want(t, "target after two preemptions", w.target(pool), 1)
	})
	scenario(t, "S48 locked", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 2, "0:10:pool")
		defer w.stop()
		w.join(pool)
		faults(t, w, core.Fault{Method: "POST", Action: deleteAction, Fault: "error", Status: 409, Code: "ScopeLocked", Message: "locked"})
		if err := w.delete(pool, w.well(pool)[0]); err != nil {
			t.Fatal(err)
		}
		want(t, "target at once", w.target(pool), 1)
		pass(time.Minute)
		want(t, "target", w.target(pool), 2)
		want(t, "states", w.states(pool), "running 2")
		want(t, "writes", len(w.Writes()), 1)
	})
	scenario(t, "S31 flexible", func(t *testing.T) {
		w := &fleet{Azure: testkit.NewAzure(t, core.Options{Latency: 1}, 0), t: t}
		w.AddScaleSet("flex", testkit.Flexible, 3)
		w.start("0:10:flex")
		defer w.stop()
		w.join("flex")
		want(t, "states", w.states("flex"), "running 3")
		for _, id := range w.well("flex") {
			if !machineOf(t, id).Is(compute.VirtualMachines) {
				t.Errorf("provider id %s", id)
			}
		}
		if err := w.delete("flex", w.well("flex")[0]); err != nil {
			t.Fatal(err)
		}
		if err := w.increase("flex", 3); err != nil {
			t.Fatal(err)
		}
		want(t, "target at once", w.target("flex"), 5)
		pass(10 * time.Minute)
		want(t, "states", w.states("flex"), "running 5")
		want(t, "capacity in Azure", w.azureCapacity("flex"), 5)
	})
}

// TestDecrease has the scenarios S21 and S22.
func TestDecrease(t *testing.T) {
	scenario(t, "S21", func(t *testing.T) {
		w := newFleet(t, core.Options{Latency: 1}, 8, "0:20:pool")
		w.stop()
		missing := true
		w.hide(func(_ azure.Query, doc azure.Document) bool {
			return missing && (strings.Contains(string(doc), `"instanceId":"9"`) || strings.Contains(string(doc), `"instanceId":"8"`))
		}, "0:20:pool")
		defer w.stop()
		wantCode(t, "existing", w.decrease(pool, -1), codes.FailedPrecondition)
		wantCode(t, "positive", w.decrease(pool, 1), codes.InvalidArgument)
		if err := w.increase(pool, 2); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		want(t, "target", w.target(pool), 10)
		w.Forget()
		if err := w.decrease(pool, -2); err != nil {
			t.Fatal(err)
		}
		want(t, "target at once", w.target(pool), 8)
		pass(2 * time.Minute)
		wantWrites(t, w, "PATCH pool")
		want(t, "capacity in Azure", w.azureCapacity(pool), 8)
	})
	scenario(t, "S22 while machines are made", func(t *testing.T) {
		w := newFleet(t, core.Options{Latency: 1}, 2, "0:20:pool")
		defer w.stop()
		if err := w.increase(pool, 3); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		if err := w.decrease(pool, -1); err != nil {
			t.Fatal(err)
		}
		want(t, "target at once", w.target(pool), 4)
		pass(10 * time.Minute)
		want(t, "the machine came, so it stays", w.target(pool), 5)
		want(t, "states", w.states(pool), "running 5")
		wantWrites(t, w, "PATCH pool")
	})
	scenario(t, "while the request is made", func(t *testing.T) {
		w := newFleet(t, core.Options{Latency: 1}, 2, "0:20:pool")
		defer w.stop()
		if err := w.increase(pool, 3); err != nil {
			t.Fatal(err)
		}
		pass(210 * time.Millisecond) // the changes are gathered, and Azure has not answered
		wantCode(t, "too late, and too early", w.decrease(pool, -3), codes.FailedPrecondition)
		pass(5 * time.Minute)
		want(t, "states", w.states(pool), "running 5")
		want(t, "target", w.target(pool), 5)
		if err := w.increase(pool, 1); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		want(t, "target after another increase", w.target(pool), 6)
		want(t, "capacity in Azure", w.azureCapacity(pool), 6)
	})
	scenario(t, "before it is asked for", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 2, "0:20:pool")
		defer w.stop()
		if err := w.increase(pool, 3); err != nil {
			t.Fatal(err)
		}
		if err := w.decrease(pool, -3); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		wantWrites(t, w)
		want(t, "target", w.target(pool), 2)
	})
}

const optionTag = "k8s.io_cluster-autoscaler_node-template_autoscaling-options_"

// TestDeallocate has the scenarios S23, S24 and S25.
func TestDeallocate(t *testing.T) {
	deallocating := func(t *testing.T, n int, tags map[string]string) *fleet {
		w := &fleet{Azure: testkit.NewAzure(t, core.Options{Latency: 1}, 0), t: t}
		w.AddScaleSet(pool, testkit.Uniform, n)
		tags[optionTag+"scaledownmode"] = "deallocate"
		w.tag(pool, tags)
		w.start("0:10:pool")
		w.join(pool)
		return w
	}
	scenario(t, "S23 and back", func(t *testing.T) {
		w := deallocating(t, 4, map[string]string{})
		defer w.stop()
		ids := w.well(pool)
		if err := w.delete(pool, ids[:2]...); err != nil {
			t.Fatal(err)
		}
		want(t, "target at once", w.target(pool), 2)
		pass(5 * time.Minute)
		wantWrites(t, w, "POST deallocate")
		want(t, "states", w.states(pool), "running 2")
		want(t, "target", w.target(pool), 2)
		want(t, "capacity in Azure", w.azureCapacity(pool), 4)
		r, err := w.NodeGroupForNode(t.Context(), &externalgrpc.NodeGroupForNodeRequest{Node: &externalgrpc.ExternalGrpcNode{ProviderID: ids[0]}})
		if err != nil || r.NodeGroup.Id != "" {
			t.Errorf("the node of a deallocated machine: %v, %v", r, err)
		}
		w.Forget()
		if err := w.increase(pool, 3); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		want(t, "target while they start", w.target(pool), 5)
		pass(5 * time.Minute)
		wantWrites(t, w, "PATCH pool", "POST start")
		want(t, "states", w.states(pool), "running 5")
		want(t, "capacity in Azure", w.azureCapacity(pool), 5)
	})
	scenario(t, "S24 a limit", func(t *testing.T) {
		w := deallocating(t, 5, map[string]string{optionTag + "maxdeallocated": "2"})
		defer w.stop()
		if err := w.delete(pool, w.well(pool)[:3]...); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		wantWrites(t, w, "POST deallocate", "POST delete")
		want(t, "capacity in Azure", w.azureCapacity(pool), 4)
		want(t, "target", w.target(pool), 2)
	})
	scenario(t, "S25 it does not start", func(t *testing.T) {
		w := deallocating(t, 3, map[string]string{})
		defer w.stop()
		if err := w.delete(pool, w.well(pool)[0]); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		faults(t, w, core.Fault{Method: "POST", Action: "start", Fault: "error", Status: 409, Code: "AllocationFailed", Message: "no room"})
		if err := w.increase(pool, 1); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		want(t, "states", w.states(pool), "AllocationFailed 1, running 2")
		want(t, "target", w.target(pool), 3)
		if err := w.delete(pool, w.failed(pool)...); err != nil {
			t.Fatal(err)
		}
		want(t, "target", w.target(pool), 2)
	})
}

// TestSpot has the scenario S26.
func TestSpot(t *testing.T) {
	for _, policy := range []string{"Delete", "Deallocate"} {
		scenario(t, "S26 "+policy, func(t *testing.T) {
			w := &fleet{Azure: testkit.NewAzure(t, core.Options{Latency: 1}, 0), t: t}
			w.AddScaleSet(pool, testkit.Uniform, 0)
			w.replace(pool, map[string]any{"properties": map[string]any{"virtualMachineProfile": map[string]any{
				"priority": "Spot", "evictionPolicy": policy,
			}}, "sku": map[string]any{"capacity": 4}})
			w.start("0:10:pool")
			defer w.stop()
			w.join(pool)
			for _, id := range w.well(pool)[:2] {
				_, err := azure.Do(t.Context(), w.OtherClient(),
					azure.Request{Verb: azure.Post, ID: machineOf(t, id), Action: "simulateEviction"})
				if err != nil {
					t.Fatal(err)
				}
			}
			pass(5 * time.Minute)
			want(t, "states", w.states(pool), "running 2")
			want(t, "target", w.target(pool), 2)
		})
	}
}
