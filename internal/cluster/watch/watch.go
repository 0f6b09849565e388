// Package watch says in words how far Azure has come with a cluster. Layer L4: it reads nothing.
package watch

import (
	"fmt"
	"strings"
	"time"

	"kaz/internal/cluster/change"
	"kaz/internal/cluster/forecast"
	"kaz/internal/cluster/record"
	"kaz/internal/host/live"
)

const (
	// mostUnits and mostMachines are how many of each are shown by name.
	mostUnits    = 20
	mostMachines = 20
	// barWidth is the number of characters of a bar.
	barWidth = 24

	succeeded = "Succeeded"
)

// Lines are what is shown at a time. steps is nil if the steps of an open change are not known.
func Lines(p record.Progress, steps *Steps, now time.Time) []live.Line {
	all := []live.Line{head(p, now)}
	if p.Open != nil {
		all = append(all, steps.lines(now)...)
	}
	all = append(all, unitLines(p, now)...)
	return append(all, machineLines(p)...)
}

// head says what is under way, or was last, and for how long.
func head(p record.Progress, now time.Time) live.Line {
	line := live.Line{Text: fmt.Sprintf("cluster %s: deployment %s", p.Cluster, strings.ToLower(p.State)), Mood: moodOf(p.State)}
	switch {
	case p.Open != nil:
		line.Text, line.Mood = fmt.Sprintf("cluster %s: change %s", p.Cluster, p.Change), live.Active
	case !p.UnderWay():
		line.Text = strings.TrimSpace(line.Text + " " + p.Since)
		return line
	}
	line.Time = elapsed(p.Began, now)
	return line
}

func elapsed(began, now time.Time) string {
	if began.IsZero() {
		return ""
	}
	return change.Short(now.Sub(began))
}

// unitLines are the number of units that are deployed, of all of the definition, and those that are not. How long the rest takes is said
// if it is known.
func unitLines(p record.Progress, now time.Time) (all []live.Line) {
	has := map[string]record.UnitStatus{}
	for _, u := range p.Units {
		has[u.Name] = u
	}
	done, waiting := 0, 0
	for _, name := range p.Expected {
		u, begun := has[name]
		switch {
		case !begun:
			waiting++
		case u.State == succeeded:
			done++
		default:
			line := live.Line{Text: fmt.Sprintf("  %-24s %s", name, strings.ToLower(u.State)), Mood: moodOf(u.State)}
			if line.Mood == live.Active {
				line.Time = elapsed(u.Began, now)
			}
			all = append(all, line)
		}
	}
	all = shortened(all, mostUnits, "units")
	if len(p.Expected) == 0 {
		return all
	}
	text := fmt.Sprintf("units     %s %d of %d", bar(done, len(p.Expected)), done, len(p.Expected))
	if waiting > 0 {
		text += fmt.Sprintf(", %d have not begun", waiting)
	}
	count := live.Line{Text: text, Mood: complete(done, len(p.Expected))}
	if left, known := forecast.Left(p.Forecast, now); known && p.Open == nil && p.UnderWay() {
		count.Time = "about " + change.Short(left)
	}
	return append([]live.Line{count}, all...)
}

// machineLines are the number of machines that are made, and those that are not.
func machineLines(p record.Progress) (all []live.Line) {
	if len(p.Machines) == 0 {
		return nil
	}
	done := 0
	for _, m := range p.Machines {
		if m.State == succeeded {
			done++
			continue
		}
		all = append(all, live.Line{Text: fmt.Sprintf("  %-24s %s", m.Name, strings.ToLower(m.State)), Mood: moodOf(m.State)})
	}
	all = shortened(all, mostMachines, "machines")
	text := fmt.Sprintf("machines  %s %d of %d", bar(done, len(p.Machines)), done, len(p.Machines))
	return append([]live.Line{{Text: text, Mood: complete(done, len(p.Machines))}}, all...)
}

func shortened(all []live.Line, most int, what string) []live.Line {
	if len(all) <= most {
		return all
	}
	return append(all[:most:most], live.Line{Text: fmt.Sprintf("  and %d more %s", len(all)-most, what)})
}

func bar(done, all int) string {
	full := barWidth * done / max(1, all)
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "]"
}

func complete(done, all int) live.Mood {
	if done == all {
		return live.Good
	}
	return live.Active
}

func moodOf(state string) live.Mood {
	switch state {
	case succeeded:
		return live.Good
	case "Failed", "Canceled":
		return live.Bad
	case "", record.Absent, record.Forgotten:
		return live.Plain
	}
	return live.Active
}
