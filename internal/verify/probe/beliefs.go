package probe

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// Page is the source of docs/reference/unproven.md. The last cell of each row names the probes, or says why there is none.
//
//go:embed beliefs.md.txt
var Page string

// Belief is a row of the page.
type Belief struct {
	Text string
	// Probes are names of probes. None says why there is no probe.
	Probes []string
	None   string
}

// none begins the cell of a belief without a probe.
const none = "none: "

// Beliefs lists the rows of the page.
func Beliefs() []Belief {
	var all []Belief
	for line := range strings.Lines(Page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) < 3 || strings.TrimSpace(cells[0]) == "behaviour" {
			continue
		}
		b := Belief{Text: strings.TrimSpace(cells[0])}
		last := strings.TrimSpace(cells[len(cells)-1])
		if reason, ok := strings.CutPrefix(last, none); ok {
			b.None = reason
		} else {
			for name := range strings.SplitSeq(last, ", ") {
				b.Probes = append(b.Probes, strings.Trim(name, "`"))
			}
		}
		all = append(all, b)
	}
	return all
}

// BeliefOf returns the belief that a probe tries, "" for an unknown probe.
func BeliefOf(name string) string {
	for _, b := range Beliefs() {
		if slices.Contains(b.Probes, name) {
			return b.Text
		}
	}
	return ""
}

// PageText is the text of docs/reference/unproven.md: the beliefs, and a table of the probes.
func PageText() string {
	var b strings.Builder
	b.WriteString("| area | probe | what it does | US dollars | minutes |\n|---|---|---|---|---|\n")
	const cents = 100
	for _, p := range Table() {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %d.%02d | %d |\n", p.Area, p.Name, p.Tries, p.Cents/cents, p.Cents%cents, p.Minutes)
	}
	b.WriteString("\nWhat several probes use costs more, once for a run:\n\n| made once | US dollars | minutes |\n|---|---|---|\n")
	for _, f := range fixtures() {
		fmt.Fprintf(&b, "| %s | %d.%02d | %d |\n", f.Name, f.Cents/cents, f.Cents%cents, f.Minutes)
	}
	return strings.Replace(Page, "{{probes}}\n", b.String(), 1)
}
