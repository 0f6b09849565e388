package core_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/localazure/core"
)

// TestSettingsChangeUnderRequests changes everything that can change while requests run.
func TestSettingsChangeUnderRequests(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	const rounds = 50
	var others sync.WaitGroup
	others.Go(func() {
		for i := range rounds {
			a.SetLatency(0)
			a.SetThrottle(i%2 == 0)
			if err := a.SetQuotas(map[string]int{"cores": i}); err != nil {
				t.Error(err)
			}
			rule, err := a.Faults.Add(core.Fault{Method: "GET", Fault: core.FaultError, Status: 503})
			if err != nil || !a.Faults.Remove(rule.ID) || a.Faults.Remove(rule.ID) {
				t.Errorf("rule %d: %v", rule.ID, err)
			}
		}
	})
	for range rounds {
		if got := a.do("GET", group, ""); got.status != 200 && got.status != 503 {
			t.Errorf("status %d", got.status)
		}
		a.Settings()
		a.Stored()
	}
	others.Wait()
	if err := a.SetQuotas(map[string]int{"CORES": 5}); err != nil {
		t.Error(err)
	}
	if s := a.Settings(); len(s.Quotas) != 1 || s.Quotas["CORES"] != 5 || s.Throttle || s.Latency != 0 {
		t.Errorf("settings at the end: %+v", s)
	}
}

// TestSwitchedThrottle checks that a limit begins anew when rate limits are turned on.
func TestSwitchedThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, core.Options{})
		a.group()
		const bucket = 250
		for step, on := range []bool{false, true, false, true} {
			a.SetThrottle(on)
			for i := range bucket {
				if got := a.do("GET", group, ""); got.status != 200 {
					t.Fatalf("step %d: read %d has status %d", step, i, got.status)
				}
			}
			if got := a.do("GET", group, ""); (got.status == 429) != on {
				t.Errorf("step %d: one read more has status %d", step, got.status)
			}
		}
	})
}

// TestClear checks that operations that run do not bring resources back, and that latencies of then are those that were set.
func TestClear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, core.Options{})
		a.group()
		a.SetLatency(1)
		began := time.Now()
		created := a.must("PUT", machine, `{"location":"eastus"}`)
		if time.Since(began) == 0 || state(created) != "Creating" {
			t.Errorf("with latency, after %s: %v", time.Since(began), created.body)
		}
		if count, err := a.Clear(); err != nil || count != 2 {
			t.Errorf("%d, %v", count, err)
		}
		<-time.After(time.Hour)
		a.SetLatency(0)
		if got := a.do("GET", group, ""); got.status != 404 || a.Stored() != 0 {
			t.Errorf("the group: %d; %d are stored", got.status, a.Stored())
		}
		if got := a.poll(created, "Azure-AsyncOperation"); got.body["status"] != "Canceled" {
			t.Errorf("the operation: %d %v", got.status, got.body)
		}
		if got := a.do("PUT", group, `{"location":"westus"}`); got.status != 201 {
			t.Errorf("a new group in another region: %d %v", got.status, got.body)
		}
	})
}
