// Package finding has what checks of clusters find: what is wrong, and what helps. Layer L1: pure.
package finding

import (
	"fmt"
	"slices"
	"strings"
)

// Finding is something that a check found.
type Finding struct {
	// Check is the name of the check.
	Check string `json:"check"`
	// Warning findings need no action at once: they do not stop a deployment, and the cluster works.
	Warning bool   `json:"warning"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
}

func (f Finding) String() string {
	mark := "✘"
	if f.Warning {
		mark = "⚠"
	}
	return fmt.Sprintf("%s %s: %s\n  remedy: %s", mark, f.Check, f.Message, f.Remedy)
}

// List are the findings of all checks.
type List []Finding

// Add adds a finding.
func (l *List) Add(check, remedy, format string, args ...any) {
	*l = append(*l, Finding{Check: check, Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

// Warn adds a warning.
func (l *List) Warn(check, remedy, format string, args ...any) {
	l.Add(check, remedy, format, args...)
	(*l)[len(*l)-1].Warning = true
}

// Stop reports whether a finding is more than a warning.
func (l List) Stop() bool {
	return slices.ContainsFunc(l, func(one Finding) bool { return !one.Warning })
}

func (l List) Error() string {
	lines := make([]string, len(l))
	for i, one := range l {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}
