package watch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kaz/internal/cluster/change"
	"kaz/internal/cluster/forecast"
	"kaz/internal/cluster/record"
	"kaz/internal/host/live"
)

var began = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// text is what lines show. A colour is its first letter.
func text(lines []live.Line) string {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%s%s|%s\n", []string{" ", "g", "a", "b"}[l.Mood], l.Text, l.Time)
	}
	return b.String()
}

// same compares what lines show with a text that begins with a line end.
func same(t *testing.T, what string, lines []live.Line, want string) {
	t.Helper()
	if got := "\n" + text(lines); got != want {
		t.Errorf("%s: %s\nwant %s", what, got, want)
	}
}

func TestDeployment(t *testing.T) {
	p := record.Progress{
		Status: record.Status{Cluster: "prod", State: "Running", Since: "now", Units: []record.UnitStatus{
			{Name: "network", State: "Succeeded"}, {Name: "vault", State: "Running", Began: began.Add(time.Minute)}, {Name: "cp-0", State: "Failed"},
			{Name: "old", State: "Succeeded"}, // which the definition no longer has
		}},
		Began: began, Expected: []string{"network", "vault", "cp-0", "pool-general"},
		Machines: []record.Machine{{Name: "prod-cp-0", State: "Creating"}, {Name: "prod-cp-1", State: "Succeeded"}},
	}
	same(t, "a deployment that runs", Lines(p, nil, began.Add(90*time.Second)), `
acluster prod: deployment running|1m30s
aunits     [######------------------] 1 of 4, 1 have not begun|
a  vault                    running|30s
b  cp-0                     failed|
amachines  [############------------] 1 of 2|
a  prod-cp-0                creating|
`)
	p.Forecast = []forecast.Unit{{Name: "network", Kind: "n", Ended: true, Took: time.Minute},
		{Name: "vault", Kind: "n", Began: began.Add(time.Minute)}}
	if got := Lines(p, nil, began.Add(90*time.Second))[1]; got.Time != "about 30s" {
		t.Errorf("a deployment of which the rest is known: %+v", got)
	}
	p.State, p.Units, p.Expected = "Succeeded", p.Units[:1], p.Expected[:1]
	p.Machines = nil
	same(t, "one that has ended", Lines(p, nil, began.Add(time.Hour)), `
gcluster prod: deployment succeeded now|
gunits     [########################] 1 of 1|
`)
	p.State, p.Began, p.Expected = "Running", time.Time{}, nil
	same(t, "one of which Azure says little", Lines(p, nil, began), `
acluster prod: deployment running|
`)
	for i := range 30 {
		p.Machines = append(p.Machines, record.Machine{Name: fmt.Sprint("m", i), State: "Creating"})
	}
	if all := Lines(p, nil, began); len(all) != 1+1+mostMachines+1 || all[len(all)-1].Text != "  and 10 more machines" {
		t.Errorf("many machines:\n%s", text(all))
	}
}

// TestSteps follows the steps of a change, and checks that the rest is estimated once each kind of step was seen from its begin.
func TestSteps(t *testing.T) {
	p := record.Progress{Status: record.Status{Cluster: "prod", State: "Succeeded", Change: "to version 1.37.1"}, Began: began, Open: &record.Change{}}
	at := func(s *Steps, d time.Duration) []live.Line { return Lines(p, s, began.Add(d)) }
	same(t, "unknown", at(nil, time.Minute), `
acluster prod: change to version 1.37.1|1m0s
 steps     unknown: --kubeconfig shows them|
`)
	all := []change.Step{{Action: change.Grow, Pool: "p", Count: 3}, {Action: change.Drain, Node: "a"}, {Action: change.Drain, Node: "b"},
		{Action: change.Grow, Pool: "p", Count: 4}, {Action: change.Drain, Node: "c"}}
	var s Steps
	for _, look := range []struct {
		after, shown time.Duration
		left         []change.Step
		want         string
	}{
		{0, 0, all, "a5 left|\na  grow pool p to 3|\n"},
		{time.Minute, time.Minute, all, "a5 left|\na  grow pool p to 3|\n"},
		{2 * time.Minute, 3 * time.Minute, all[1:], "a4 left|\na  drain node a|1m0s\n"},
		{4 * time.Minute, 4 * time.Minute, all[2:], "a3 left|\na  drain node b|0s\n"},
		{5 * time.Minute, 6 * time.Minute, all[3:], "a2 left|\na  grow pool p to 4|1m0s\n"},
		{9 * time.Minute, 9*time.Minute + 30*time.Second, all[4:], "a1 left|about 1m0s\na  drain node c|30s\n"},
		{11 * time.Minute, 11 * time.Minute, nil, "gall done: the change is being ended|\n"},
	} {
		s.Saw(look.left, began.Add(look.after))
		if got := text(at(&s, look.shown)[1:]); got != strings.Replace(look.want, look.want[:1], look.want[:1]+"steps     ", 1) {
			t.Errorf("after %s:\n%swant\n%s", look.after, got, look.want)
		}
	}
	s.Missed(errors.New("the API server does not answer\nfor long"))
	if got := text(at(&s, time.Hour)[1:]); got != " steps     not known now: the API server does not answer|\n" {
		t.Errorf("a look that saw nothing: %s", got)
	}
	s.Saw(all[:2], began.Add(time.Hour)) // another change: what was seen of kinds of steps still counts
	if got := text(at(&s, time.Hour)[1:]); got != "asteps     2 left|about 5m40s\na  grow pool p to 3|\n" {
		t.Errorf("another change: %s", got)
	}
}
