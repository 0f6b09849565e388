package health

import "testing"

// TestThreshold checks after which answers the health of a backend changes: g is a good answer, b a bad one. The health after each is
// h for healthy and - for not.
func TestThreshold(t *testing.T) {
	for _, c := range []struct {
		threshold     int
		answers, want string
	}{
		{1, "gbgb", "h-h-"},
		{2, "bgbgg", "-hhhh"},
		{2, "gbbgg", "hh--h"},
		{2, "bbbg", "---h"},
		{3, "gbbgbbbggbggg", "hhhhhh------h"},
	} {
		var h history
		healthy, was, got := false, false, ""
		for _, answer := range c.answers {
			well := answer == 'g'
			if h.settles(well, was, c.threshold) {
				healthy, was = well, was || well
			}
			if healthy {
				got += "h"
			} else {
				got += "-"
			}
		}
		if got != c.want {
			t.Errorf("threshold %d, answers %s: %s, want %s", c.threshold, c.answers, got, c.want)
		}
	}
}
