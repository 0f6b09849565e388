package autoscale_test

import (
	"fmt"
	"testing"
	"time"

	"kaz/internal/azure/compute"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// TestFaults checks that every change reaches its end through each fault that passes, once and no more: Azure, the target
// and the instances agree afterwards.
func TestFaults(t *testing.T) {
	passing := map[string]core.Fault{
		"lost": {Fault: "lost"}, "409": {Fault: "error", Status: 409}, "412": {Fault: "error", Status: 412},
		"429": {Fault: "error", Status: 429, RetryAfter: 5}, "500": {Fault: "error", Status: 500},
		"preempted": {Fault: "operation", Code: "OperationPreempted"},
	}
	changes := []struct {
		name, method, action string
		before, after        int // running machines
		off                  int // deallocated ones afterwards
		make                 func(w *fleet) error
	}{
		{"grow", "PATCH", "", 2, 4, 0, func(w *fleet) error { return w.increase(pool, 2) }},
		{"delete", "POST", "delete", 4, 2, 0, func(w *fleet) error { return w.delete(pool, w.well(pool)[:2]...) }},
		{"deallocate", "POST", "deallocate", 4, 2, 2, func(w *fleet) error { return w.delete(pool, w.well(pool)[:2]...) }},
	}
	for _, c := range changes {
		for name, fault := range passing {
			if c.name == "grow" && name == "preempted" {
				continue // the machines exist, in the state Failed: TestFailedIncrease
			}
			scenario(t, c.name+" "+name, func(t *testing.T) {
				w := &fleet{Azure: testkit.NewAzure(t, core.Options{Latency: 1}, 0), t: t}
				w.AddScaleSet(pool, testkit.Uniform, c.before)
				if c.name == "deallocate" {
					w.tag(pool, map[string]string{optionTag + "scaledownmode": "deallocate"})
				}
				w.start("0:10:pool")
				defer w.stop()
				w.join(pool)
				fault.Method, fault.Type, fault.Action, fault.Times = c.method, compute.ScaleSets, c.action, 1
				faults(t, w, fault)
				if err := c.make(w); err != nil {
					t.Fatal(err)
				}
				pass(20 * time.Minute)
				w.agree(c.after, c.off)
			})
		}
	}
}

// TestCrash checks that a provider can end at any moment of a change. The next provider puts right what it left: the change
// is made, or it is not made at all.
func TestCrash(t *testing.T) {
	for _, after := range []time.Duration{0, 300 * time.Millisecond, time.Second, 5 * time.Second, 30 * time.Second, 3 * time.Minute} {
		scenario(t, fmt.Sprintf("grow, after %v", after), func(t *testing.T) {
			w := newFleet(t, core.Options{Latency: 1}, 2, "0:10:pool")
			if err := w.increase(pool, 2); err != nil {
				t.Fatal(err)
			}
			pass(after)
			w.stop()
			w.start("0:10:pool")
			defer w.stop()
			pass(10 * time.Minute)
			if n := w.azureCapacity(pool); n != 2 && n != 4 {
				t.Errorf("capacity %d", n)
			}
			w.agree(w.azureCapacity(pool), 0)
		})
	}
}

// agree checks that Azure, the target and the instances say the same.
func (w *fleet) agree(running, off int) {
	w.t.Helper()
	if capacity := w.azureCapacity(pool); capacity != running+off {
		w.t.Errorf("capacity in Azure %d, want %d", capacity, running+off)
	}
	if target := w.target(pool); target != running {
		w.t.Errorf("target %d, want %d", target, running)
	}
	if states := w.states(pool); states != fmt.Sprintf("running %d", running) {
		w.t.Errorf("states %s, want running %d", states, running)
	}
}
