package change

import (
	"testing"
	"time"
)

// TestPace checks that the rest of a change is estimated from steps of the same actions, and not before each was done.
func TestPace(t *testing.T) {
	steps := []Step{{Action: Grow}, {Action: Drain}, {Action: Grow}, {Action: Drain}, {Action: Drain}}
	var p Pace
	lasted := time.Duration(0)
	for i, want := range []string{
		"step 1 of 5",
		"step 2 of 5, after 2m0s",
		"step 3 of 5, after 2m10s, about 2m20s left",
		"step 4 of 5, after 6m10s, about 20s left",
		"step 5 of 5, after 6m40s, about 20s left",
	} {
		if got := p.Text(steps[i:], lasted); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		took := []time.Duration{2 * time.Minute, 10 * time.Second, 4 * time.Minute, 30 * time.Second, 0}[i]
		p.Took(steps[i].Action, took)
		lasted += took
	}
	if left, known := p.Left(nil); known || left != 0 {
		t.Errorf("nothing is left, and takes %s, %t", left, known)
	}
}
