package change

import (
	"fmt"
	"time"
)

// Pace is how long the steps of a change took.
type Pace struct {
	done int
	took map[Action]average
}

// average is that of times.
type average struct {
	count int
	total time.Duration
}

// Took counts a step that is done.
func (p *Pace) Took(a Action, d time.Duration) {
	if p.took == nil {
		p.took = map[Action]average{}
	}
	t := p.took[a]
	p.took[a] = average{t.count + 1, t.total + d}
	p.done++
}

// Left estimates how long steps will take: as long as those that were done. It is unknown while one of them is of an action that was not
// done yet.
func (p *Pace) Left(steps []Step) (left time.Duration, known bool) {
	for _, s := range steps {
		t := p.took[s.Action]
		if t.count == 0 {
			return 0, false
		}
		left += t.total / time.Duration(t.count)
	}
	return left, len(steps) > 0
}

// Text says how far a change has come that has lasted for some time: which step begins, of those that are known, and how long the rest
// takes, if that is known.
func (p *Pace) Text(steps []Step, lasted time.Duration) string {
	text := fmt.Sprintf("step %d of %d", p.done+1, p.done+len(steps))
	if p.done > 0 {
		text += ", after " + Short(lasted)
	}
	if left, known := p.Left(steps); known {
		text += fmt.Sprintf(", about %s left", Short(left))
	}
	return text
}

// Short is a duration for people, in seconds.
func Short(d time.Duration) string { return max(0, d).Round(time.Second).String() }
