package reconcile_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/reconcile"
)

// named is a plan for rules that name an address. Azure chooses the address.
func named(t *testing.T, path string) plan.Plan {
	t.Helper()
	var g plan.Graph
	for _, n := range []plan.Node{
		plan.Wanted(azure.Resource[rules]{ID: rulesID, Properties: rules{Allow: []string{plan.Output(ipID("a"), path) + "/32"}}}, "the rules"),
		plan.Wanted(azure.Resource[ip]{ID: ipID("a"), Properties: ip{Zone: "1"}}, "the address of a"),
		plan.Wanted(azure.Resource[ip]{ID: ipID("b"), Properties: ip{Zone: "1"}}, "the address of b"),
	} {
		if err := g.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	p, err := plan.Diff(plan.Snapshot{}, g)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A step takes its outputs from Azure's answer to the step that makes them.
func TestApplyBindsOutputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		report := reconcile.Apply(t.Context(), l, named(t, "properties.address"))
		if err := report.Err(); err != nil {
			t.Fatal(err)
		}
		var got azure.Resource[rules]
		text, _ := json.Marshal(l.docs[rulesID.Key()])
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		address := l.docs[ipID("a").Key()]["properties"].(map[string]any)["address"].(string)
		if len(got.Properties.Allow) != 1 || got.Properties.Allow[0] != address+"/32" {
			t.Errorf("rules %v, want %s/32", got.Properties.Allow, address)
		}
		for _, res := range report.Results {
			if strings.Contains(string(res.Step.Body), "output") {
				t.Errorf("the report has a step without its value: %s", res.Step.Body)
			}
		}
	})
}

// A step with an output that cannot be made is not attempted, and the others go on.
func TestApplyLeavesOutWhatDependsOnAFailedOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.before = func(_ *ledger, _ string, id azure.ID) error {
			if id.Equal(ipID("a")) {
				return &azure.Error{Kind: azure.Quota, ID: id}
			}
			return nil
		}
		report := reconcile.Apply(t.Context(), l, named(t, "properties.address"))
		for _, res := range report.Results {
			switch {
			case res.Step.ID.Equal(ipID("a")) && azure.KindOf(res.Err) != azure.Quota,
				res.Step.ID.Equal(ipID("b")) && res.Err != nil,
				res.Step.ID.Equal(rulesID) && !errors.Is(res.Err, reconcile.ErrNotAttempted):
				t.Errorf("%s: %v", res.Step, res.Err)
			}
		}
		if report.Kind() != azure.Quota {
			t.Errorf("the report is of kind %v", report.Kind())
		}
	})
}

// An answer that lacks the value is an error that says so.
func TestApplySaysWhichOutputIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		err := reconcile.Apply(t.Context(), l, named(t, "properties.dns.name")).Err()
		if err == nil || !strings.Contains(err.Error(), "ips/a has no properties.dns.name") || len(l.log) != 2 {
			t.Errorf("%v after %v", err, l.log)
		}
	})
}
