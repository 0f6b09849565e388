package probe

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/reference/unproven.md anew")

const page = "../../../docs/reference/unproven.md"

// TestPage keeps docs/reference/unproven.md in step with the beliefs and the probes:
// go test ./internal/verify/probe -run TestPage -update
func TestPage(t *testing.T) {
	want := PageText()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the page is out of date; run: go test ./internal/verify/probe -run TestPage -update\n%s", diff)
	}
}

// TestBeliefs checks that each belief is there once, and names probes or says why it has none; and that each probe has a belief.
func TestBeliefs(t *testing.T) {
	probes := Table()
	var texts []string
	tried := map[string]bool{}
	for _, b := range Beliefs() {
		if slices.Contains(texts, b.Text) {
			t.Errorf("%q is there twice", b.Text)
		}
		texts = append(texts, b.Text)
		if (b.None == "") == (len(b.Probes) == 0) {
			t.Errorf("%q: probes %q and the reason %q", b.Text, b.Probes, b.None)
		}
		for _, name := range b.Probes {
			tried[name] = true
			if !slices.ContainsFunc(probes, func(p Probe) bool { return p.Name == name }) {
				t.Errorf("%q names the probe %q, which is not there", b.Text, name)
			}
		}
	}
	const known = 95
	if rows := strings.Count(Page, "\n| "); len(texts) < known || len(texts) != rows-2 {
		t.Errorf("%d beliefs of %d rows were read", len(texts), rows)
	}
	for _, p := range probes {
		if !tried[p.Name] || BeliefOf(p.Name) == "" {
			t.Errorf("probe %s has no belief", p.Name)
		}
	}
}

// TestTable checks the rows of the table.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Table() {
		if seen[p.Name] || slices.Contains(Areas(), p.Name) {
			t.Errorf("the name %s is there twice", p.Name)
		}
		seen[p.Name] = true
		if p.Area == "" || p.Tries == "" || p.Minutes < 1 || p.Run == nil {
			t.Errorf("%s: its row is not complete", p.Name)
		}
		if n := len(FixturesOf([]Probe{p})); n != len(p.Needs) {
			t.Errorf("%s needs %q: %d are known", p.Name, p.Needs, n)
		}
		const dollar = 100
		if p.Cents > dollar {
			t.Errorf("%s costs %d cents", p.Name, p.Cents)
		}
	}
	if _, err := Select([]string{"nothing"}); err == nil || !strings.Contains(err.Error(), "want some of network") {
		t.Errorf("unknown area: %v", err)
	}
}
