package verify_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
	"kaz/internal/verify"
	"kaz/internal/verify/probe"
)

// ofRun matches the deletion of the resource group of a run.
func ofRun(r *http.Request, _ string) bool {
	return r.Method == http.MethodDelete && strings.HasSuffix(strings.ToLower(r.URL.Path), "/resourcegroups/kaz-verify-test1234")
}

// TestInterrupted interrupts a run at a request of a probe, in each area: the group goes, and the report says what was not run.
func TestInterrupted(t *testing.T) {
	for _, area := range probe.Areas() {
		probes, err := probe.Select([]string{area})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var sent atomic.Int64
		var w target
		w = newTarget(t, func(r *http.Request, azure http.RoundTripper) (*http.Response, error) {
			if r.Method != http.MethodDelete && w.said.has(probes[0].Name) && sent.Add(1) == 2 {
				cancel()
			}
			return azure.RoundTrip(r)
		}, area)
		report, err := verify.Run(ctx, w.options)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if report.NotRun == 0 || report.Differ > 0 || len(report.Results) != len(probes) {
			t.Errorf("%s: %d agree, %d differ, %d not run", area, report.Agree, report.Differ, report.NotRun)
		}
		if last := report.Results[len(probes)-1]; last.Reason != "the run was interrupted" {
			t.Errorf("%s: %s: %s", area, last.Verdict, last.Reason)
		}
		if left := w.groups(t); len(left) > 0 || len(report.Left) > 0 {
			t.Errorf("%s left: %v, %v", area, left, report.Left)
		}
	}
}

// TestRemovalFails checks that a deletion is tried again, and that what stays is reported.
func TestRemovalFails(t *testing.T) {
	for _, test := range []struct {
		failures int64
		left     int
	}{{1, 0}, {2, 0}, {100, 1}} {
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int64
			w := newTarget(t, when(func(r *http.Request, body string) bool {
				return ofRun(r, body) && n.Add(1) <= test.failures
			}, refusing(http.StatusConflict, "ResourceGroupDeletionBlocked")), "date")
			report := w.run(t)
			if len(report.Left) != test.left || len(w.groups(t)) != test.left {
				t.Errorf("%d failures: left %v, %v", test.failures, report.Left, w.groups(t))
			}
			if test.left > 0 && !strings.Contains(report.Left[0], "resource group kaz-verify-test1234") {
				t.Errorf("left: %v", report.Left)
			}
		})
	}
}

// crashed is a target in which a run was killed before it could remove its group.
func crashed(t *testing.T, only string) target {
	w := newTarget(t, straight, only)
	w.options.Removing = func() (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return ctx, cancel
	}
	if report := w.run(t); len(report.Left) != 1 {
		t.Fatalf("left: %v", report.Left)
	}
	return w
}

// TestClean removes the group of a killed run when it has expired, and no group of another owner.
func TestClean(t *testing.T) {
	w := crashed(t, "vault-names")
	subscription := w.options.Subscription
	for name, tags := range map[string]string{
		"kaz-verify-mine":  `{"kaz-verify":"of another program"}`,
		"kaz-verify-plain": `{}`,
		"mine":             `{"kaz-verify":"temporary","kaz-verify-expires":"2000-01-01T00:00:00Z"}`,
		"kaz-verify-odd":   `{"kaz-verify":"temporary","kaz-verify-expires":"soon"}`,
	} {
		body := azure.Document(`{"location":"westeurope","tags":` + tags + `}`)
		if _, err := azure.Do(t.Context(), w.options.Azure, azure.Request{
			Verb: azure.Put, ID: azure.GroupID(subscription, name), Body: body,
		}); err != nil {
			t.Fatal(err)
		}
	}
	exists := func(name string) bool {
		_, err := w.options.Azure.Get(t.Context(), azure.GroupID(subscription, name))
		return err == nil
	}
	clean := func(now time.Time, all bool) (removed []string) {
		found, err := verify.Find(t.Context(), w.options.Azure, subscription, now)
		if err != nil {
			t.Fatal(err)
		}
		verify.Remove(t.Context(), w.options.Azure, subscription, found, all)
		for _, f := range found {
			if f.Removed {
				removed = append(removed, f.Group)
			}
		}
		return removed
	}
	if removed := clean(time.Now(), false); len(removed) > 0 || !exists("kaz-verify-test1234") {
		t.Errorf("before it expired, these were removed: %v", removed)
	}
	if removed := clean(time.Now().Add(2*time.Hour), false); len(removed) != 1 || removed[0] != "kaz-verify-test1234" {
		t.Errorf("these were removed: %v", removed)
	}
	if removed := clean(time.Now(), true); len(removed) != 1 || removed[0] != "kaz-verify-odd" {
		t.Errorf("with --all these were removed: %v", removed)
	}
	for _, name := range []string{"kaz-verify-mine", "kaz-verify-plain", "mine"} {
		if !exists(name) {
			t.Errorf("group %s of another owner is gone", name)
		}
	}
}

// TestVaultsArePurged checks that no deleted key vault of the run keeps its name, and that one of another group stays, whatever its name.
func TestVaultsArePurged(t *testing.T) {
	w := newTarget(t, straight, "secret-absent")
	other := azure.GroupID(w.options.Subscription, "theirs")
	vault := other.Resource("Microsoft.KeyVault/vaults", "kazv"+w.options.Random+"theirs")
	for _, r := range []azure.Request{
		{Verb: azure.Put, ID: other, Body: azure.Document(`{"location":"westeurope"}`)},
		{Verb: azure.Put, ID: vault, Body: azure.Document(`{"location":"westeurope","properties":{"tenantId":"` + core.DefaultTenant +
			`","sku":{"family":"A","name":"standard"},"accessPolicies":[]}}`)},
		{Verb: azure.Delete, ID: vault},
	} {
		if _, err := azure.Do(t.Context(), w.options.Azure, r); err != nil {
			t.Fatal(err)
		}
	}
	w.run(t)
	docs, err := w.options.Azure.List(t.Context(), azure.Query{
		Scope: azure.SubscriptionID(w.options.Subscription), Type: "Microsoft.KeyVault/deletedVaults",
	})
	if err != nil || len(docs) != 1 || docs[0].ID().Name() != vault.Name() {
		t.Errorf("deleted vaults: %s, %v", docs, err)
	}
}

// TestForeignGroup checks that a run neither uses nor removes a group that it did not make.
func TestForeignGroup(t *testing.T) {
	w := crashed(t, "date")
	if _, err := verify.Run(t.Context(), w.options); err == nil || !strings.Contains(err.Error(), "not of this run") {
		t.Errorf("run in a group that is there: %v", err)
	}
	if len(w.groups(t)) != 1 {
		t.Error("the group of another run is gone")
	}
}

// TestBadInput checks what a run says of a wrong location and subscription, of missing rights and of used-up quotas.
func TestBadInput(t *testing.T) {
	w := newTarget(t, straight, "date")
	w.options.Location = "nowhere"
	if _, err := verify.Run(t.Context(), w.options); err == nil || !strings.Contains(err.Error(),
		"--location nowhere: the subscription has no such") {
		t.Errorf("location: %v", err)
	}
	w.options.Location, w.options.Subscription = "westeurope", "99999999-9999-9999-9999-999999999999"
	if _, err := verify.Run(t.Context(), w.options); err == nil || !strings.Contains(err.Error(), w.options.Subscription) {
		t.Errorf("subscription: %v", err)
	}
	if _, err := probe.Select([]string{"disk"}); err == nil || !strings.Contains(err.Error(), "network, disks") {
		t.Errorf("area: %v", err)
	}
	for code, status := range map[string]int{"AuthorizationFailed": http.StatusForbidden, "QuotaExceeded": http.StatusConflict} {
		w := newTarget(t, when(to(http.MethodPut, "/routeTables/"), refusing(status, code)), "create-only", "route-count", "date")
		report := w.run(t)
		if report.NotRun != 2 || report.Agree != 1 {
			t.Errorf("%s: %d agree, %d not run: %+v", code, report.Agree, report.NotRun, report.Results)
		}
		if reason := report.Results[1].Reason; !strings.Contains(reason, code) {
			t.Errorf("%s: reason %q", code, reason)
		}
	}
	if core.DefaultSubscription == w.options.Subscription {
		t.Error("the subscription was not wrong")
	}
}

// TestFixtureFails checks that probes whose fixture cannot be made are not run, and the others are.
func TestFixtureFails(t *testing.T) {
	w := newTarget(t, when(to(http.MethodPut, "/virtualMachines/shared-vm"), refusing(http.StatusConflict, "SkuNotAvailable")),
		"disk-attach", "disk-attached-twice", "disk-written-back")
	report := w.run(t)
	if report.NotRun != 2 || report.Agree != 1 || !strings.Contains(report.Results[0].Reason, "machine, which it needs") &&
		!strings.Contains(report.Results[1].Reason, "machine, which it needs") {
		t.Errorf("%+v", report.Results)
	}
	made := 0
	for _, e := range w.options.Recorder.From(0) {
		if e.Method == http.MethodPut && strings.Contains(e.URL, "shared-vm") {
			made++
		}
	}
	if made != 1 {
		t.Errorf("the fixture was tried %d times", made)
	}
}
