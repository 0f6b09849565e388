package fabric_test

import (
	"testing"
)

func TestMachinesReachEachOther(t *testing.T) {
	w := start(t)
	a, b := w.machine("a", nodes, nil, nil), w.machine("b", nodes, nil, nil)
	b.serve(":80")
	for _, to := range []string{at(b.v4, 80), at(b.v6, 80)} {
		if g := a.reaches(to); g.server != "b" {
			t.Errorf("at %s: %+v", to, g)
		}
	}
}
