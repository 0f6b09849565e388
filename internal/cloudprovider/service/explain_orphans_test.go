package service_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/localazure/core"
)

// leave has Services served and then vanish while no controller runs.
func (w *serviceCluster) leave(names ...string) {
	w.t.Helper()
	stop := w.start(config())
	for _, name := range names { // one after another, so that each has the same address in every run
		w.addKind(name)
		w.allHaveAddresses([]string{name})
		w.settle()
	}
	stop()
	for _, name := range names {
		w.vanish(name)
	}
}

func (w *serviceCluster) explainAll() explain.Explanation {
	w.t.Helper()
	e, err := w.look().ExplainAll(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// TestExplanationsOfLeftovers checks the report of leftovers: testdata/leftovers.txtar has it in text,
// json and yaml.
func TestExplanationsOfLeftovers(t *testing.T) {
	const file = "testdata/leftovers.txtar"
	var got txtar.Archive
	tell := func(name string, e explain.Explanation) {
		got.Files = append(got.Files, txtar.File{Name: name, Data: []byte(printed(t, name, e))})
	}
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{Seed: 1})
		w.leave("plain")
		tell("one.json", w.explainAll())
		tell("one.yaml", w.explainAll())
		w.leave("internal", "shared-one")
		tell("alone.txt", w.explainAll())
		stop := w.start(config())
		w.addKind("two-ports")
		w.served("two-ports")
		w.settle()
		stop()
		tell("beside.txt", w.explainAll())
		if e := w.explain("two-ports"); len(e.Leftovers) > 0 || e.Pending() {
			t.Errorf("one Service alone:\n%s", e)
		}
	})
	golden(t, file, &got)
}

// TestExplanationsOfLeftoversAgreeWithDriftRepair checks that the report of leftovers of all kinds is
// what drift repair does with them, and that the report is empty afterwards.
func TestExplanationsOfLeftoversAgreeWithDriftRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{})
		if e := w.explainAll(); e.Pending() || len(e.Leftovers) > 0 {
			t.Errorf("at the start:\n%s", e)
		}
		var names []string
		for name := range kinds {
			if name != "linked" { // its private link service goes first, and the rest is decided then
				names = append(names, name)
			}
		}
		slices.Sort(names)
		w.leave(names...)
		w.Forget()
		e := w.explainAll()
		if !e.Pending() || len(w.Writes()) > 0 {
			t.Fatalf("pending %v, written %v", e.Pending(), w.Writes())
		}
		var reported []string
		for _, s := range e.Steps {
			reported = append(reported, strings.ToLower(s.ID.Name()))
		}
		w.start(repairing())
		<-time.After(31 * time.Minute)
		w.settle()
		for _, line := range w.Writes() {
			if name := strings.ToLower(strings.Fields(line)[1]); !slices.Contains(reported, name) {
				t.Errorf("drift repair did %s, of which nothing was reported: %v", line, reported)
			}
		}
		if e := w.explainAll(); e.Pending() || len(e.Leftovers) > 0 {
			t.Errorf("after drift repair:\n%s", e)
		}
	})
}

// TestExplanationOfRulesThatLeadNowhere checks that security rules without a destination are reported,
// because they are removed.
func TestExplanationOfRulesThatLeadNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		w.addRule(rulesToNowhere)
		e := w.explainAll()
		if len(e.Steps) != 1 || len(e.Leftovers) != 1 || !strings.Contains(e.String(), "security rules that lead nowhere") {
			t.Errorf("alone:\n%s", e)
		}
	})
}

// TestDryRunOfOrphans checks that a dry run reports leftovers once, and again when there are others.
func TestDryRunOfOrphans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{})
		w.leave("plain")
		w.Forget()
		reported := w.dryRun(config())
		if got := reported(); len(got) != 1 || len(got[0].Leftovers) != 1 || len(got[0].Steps) == 0 {
			t.Fatalf("at the start: %v", got)
		}
		<-time.After(repairPeriod)
		if got := reported(); len(got) != 1 {
			t.Errorf("reported again what did not change: %v", got[1:])
		}
		if got := w.Writes(); len(got) > 0 {
			t.Errorf("written to Azure: %v", got)
		}
	})
}
