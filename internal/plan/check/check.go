// Package check judges a cluster and its Azure by what was read of both: what is right, what is not, why, and what mends it.
// Layer L1: pure.
package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// State is the verdict of a finding.
type State string

// The states of findings. Unknown means that something could not be read or compared: it says nothing about the cluster.
const (
	OK      State = "ok"
	Warning State = "warning"
	Problem State = "problem"
	Unknown State = "unknown"
)

// Finding is one line of the check.
type Finding struct {
	Area    string `json:"area"`
	Subject string `json:"subject"`
	State   State  `json:"state"`
	Why     string `json:"why"`
	// Mend is the command or action that helps; empty if nothing has to be done.
	Mend string `json:"mend,omitempty"`
}

// Report is the result of a check.
type Report struct {
	// Before is the occasion that selected the areas, "" for all of them.
	Before   string    `json:"before,omitempty"`
	Findings []Finding `json:"findings"`
}

// Has reports whether a finding has one of the states.
func (r Report) Has(states ...State) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return slices.Contains(states, f.State) })
}

// String returns the report as text: the areas, below each its findings, and what mends them.
func (r Report) String() string {
	var b strings.Builder
	count := map[State]int{}
	for i, f := range r.Findings {
		if i == 0 || r.Findings[i-1].Area != f.Area {
			fmt.Fprintf(&b, "%s\n", f.Area)
		}
		count[f.State]++
		fmt.Fprintf(&b, "  %-8s %s: %s\n", f.State, f.Subject, f.Why)
		if f.Mend != "" {
			fmt.Fprintf(&b, "           mend: %s\n", f.Mend)
		}
	}
	fmt.Fprintf(&b, "\nproblems: %d, warnings: %d, unknown: %d\n", count[Problem], count[Warning], count[Unknown])
	return b.String()
}

// Judge returns the findings of the areas of an occasion, "" for all areas, in the order of the table. An area without a fault has one
// finding, which is ok. An area of which a read failed is unknown.
func Judge(f *Facts, before string) Report {
	report := Report{Before: before}
	for _, a := range selected(before) {
		found := list{area: a.name}
		if failed := a.unread(f); len(failed) > 0 {
			found.all = failed
		} else {
			a.judge(f, &found)
		}
		if len(found.all) == 0 {
			found.add("all", OK, a.healthy, "")
		}
		slices.SortStableFunc(found.all, func(a, b Finding) int { return cmp.Compare(a.Subject, b.Subject) })
		report.Findings = append(report.Findings, found.all...)
	}
	return report
}

// unread returns a finding for each read that the area needs and that was not made or failed.
func (a area) unread(f *Facts) []Finding {
	found := list{area: a.name}
	for _, name := range a.needs {
		if fault, failed := f.fault(name); failed {
			found.add(string(name), Unknown, "not read: "+cmp.Or(fault, "the read was not made"), "repeat kaz check when this can be read")
		}
	}
	return found.all
}

// list collects the findings of an area.
type list struct {
	area string
	all  []Finding
}

func (l *list) add(subject string, state State, why, mend string) {
	l.all = append(l.all, Finding{Area: l.area, Subject: subject, State: state, Why: why, Mend: mend})
}
