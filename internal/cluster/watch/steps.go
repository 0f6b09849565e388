package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kaz/internal/cluster/change"
	"kaz/internal/host/live"
)

// Steps are the steps that an open change has left, as they were seen. They are timed, so that the rest can be estimated.
type Steps struct {
	left  []change.Step
	since time.Time // when the first of them became the first
	pace  change.Pace
	seen  bool // a step has begun since the first look: only then it is known when it began
	// problem is why the last look saw nothing, "" if it did. A change interrupts the ways to the inside of a cluster.
	problem string
}

// Missed notes that a look saw nothing.
func (s *Steps) Missed(err error) { s.problem, _, _ = strings.Cut(err.Error(), "\n") }

// Saw notes what is left of a change at a time.
func (s *Steps) Saw(left []change.Step, now time.Time) {
	s.problem = ""
	done := len(s.left) - len(left)
	if s.since.IsZero() || done < 0 || !slices.Equal(names(s.left[done:]), names(left)) {
		*s = Steps{left: left, since: now, pace: s.pace}
		return
	}
	if done == 0 {
		return
	}
	if s.seen {
		for _, step := range s.left[:done] {
			s.pace.Took(step.Action, now.Sub(s.since)/time.Duration(done))
		}
	}
	s.left, s.since, s.seen = left, now, true
}

func names(steps []change.Step) (all []string) {
	for _, s := range steps {
		all = append(all, s.String())
	}
	return all
}

// lines are the step that is under way and the number of all that are left, with the time that they will take if that is known.
func (s *Steps) lines(now time.Time) []live.Line {
	if s == nil {
		return []live.Line{{Text: "steps     unknown: --kubeconfig shows them"}}
	}
	if s.problem != "" {
		return []live.Line{{Text: "steps     not known now: " + s.problem}}
	}
	if len(s.left) == 0 {
		return []live.Line{{Text: "steps     all done: the change is being ended", Mood: live.Good}}
	}
	count := live.Line{Text: fmt.Sprintf("steps     %d left", len(s.left)), Mood: live.Active}
	if left, known := s.pace.Left(s.left); known {
		first, _ := s.pace.Left(s.left[:1])
		count.Time = "about " + change.Short(left-min(first, now.Sub(s.since)))
	}
	step := live.Line{Text: "  " + s.left[0].String(), Mood: live.Active}
	if s.seen {
		step.Time = elapsed(s.since, now)
	}
	return []live.Line{count, step}
}
