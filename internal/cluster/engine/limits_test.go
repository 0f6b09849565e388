package engine

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/cluster/change"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/record"
)

// scaler looks after each write at what an autoscaler may do with a scale set while its nodes are replaced.
type scaler struct {
	next   http.RoundTripper
	look   func() (limits change.Limits, machines int)
	wrong  []change.Limits
	most   int
	begun  bool
	within change.Limits // without an upgrade
}

// RoundTrip implements http.RoundTripper.
func (s *scaler) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.next.RoundTrip(r)
	if r.Method == http.MethodGet {
		return answer, err
	}
	limits, machines := s.look()
	s.begun = s.begun || limits != s.within
	if s.begun && limits != s.within && (limits.Least != limits.Most || machines > limits.Least) || !s.begun && machines > 2 {
		s.wrong = append(s.wrong, limits)
	}
	s.most = max(s.most, machines)
	return answer, err
}

// autoscaled is a cluster with an autoscaled pool of two nodes, and a definition that replaces them.
func autoscaled(t *testing.T) (*lab, *simulation, definition.Definition) {
	l, s, d := deployed(t, func(d *definition.Definition) {
		d.Pools[0].Spec.Replicas, d.Pools[0].Spec.Autoscaling = 2, &definition.Autoscaling{Min: 1, Max: 5}
	}, "dev.yaml")
	now := copied(d)
	now.Pools[0].Spec.MaxPods = 50
	return l, s, now
}

// limits reads the limits of the autoscaler of a pool, and the number of its machines.
func (l *lab) limits(s *simulation) (change.Limits, int) {
	l.t.Helper()
	ctx := context.Background()
	state, err := l.Read(ctx, s.names)
	if err != nil {
		l.t.Fatal(err)
	}
	set := s.names.Group().Resource(record.ScaleSetType, "dev-general")
	machines, err := azure.ListAs[record.Instance](ctx, l.client, azure.Query{Scope: set, Type: record.ScaleSetType + "/virtualMachines"})
	if err != nil {
		l.t.Fatal(err)
	}
	return record.LimitsOf(state.Resources[set.Key()].Tags), len(machines)
}

// TestAutoscaledUpgrade checks scenario 30: while an upgrade replaces the nodes of an autoscaled pool, its limits keep the
// autoscaler from removing a machine. Afterwards the pool has the limits of the definition.
func TestAutoscaledUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, now := autoscaled(t)
		healthy := l.azure.Transport()
		look := &lab{t: t, azure: l.azure}
		look.connect(healthy)
		k := &scaler{next: healthy, within: change.Limits{Least: 1, Most: 5}, look: func() (change.Limits, int) { return look.limits(s) }}
		l.connect(k)
		s.connect(l.Engine)
		steps, err := l.Steps(t.Context(), record.Change{Definition: now})
		if err != nil || len(steps) == 0 || steps[len(steps)-1].String() != "let the autoscaler scale pool general (1 to 5)" {
			t.Errorf("%v %v", err, steps)
		}
		l.change(now)
		limits, machines := l.limits(s)
		if limits != k.within || machines != 2 || k.most != 3 || !k.begun || len(k.wrong) > 0 {
			t.Errorf("limits %v, %d machines, %d at most, held %t, wrong %v", limits, machines, k.most, k.begun, k.wrong)
		}
		if said := strings.Join(l.said, "\n"); !strings.Contains(said, "(autoscaler held at 3)") {
			t.Error(said)
		}
	})
}

// TestAutoscalerReleased checks scenario 30: after an upgrade was killed before or after any write, resume and abort both let
// the autoscaler scale the pool again.
func TestAutoscalerReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kill := 1; ; kill += stride() {
			l, s, now := autoscaled(t)
			healthy := l.azure.Transport()
			k := &killed{next: healthy, left: kill / 2, late: kill%2 == 1}
			l.connect(k)
			s.connect(l.Engine)
			victim := l.Engine
			l.connect(healthy)
			s.connect(l.Engine)
			if err := victim.Change(t.Context(), record.Change{Definition: now}); err == nil && !k.spent {
				t.Logf("%d places to die", kill/2)
				return
			}
			<-time.After(time.Minute) // Azure ends what it had begun
			open, err := l.Open(t.Context(), s.names)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case open == nil:
			case kill%3 == 0:
				_, err = l.Resume(t.Context(), s.names)
			default:
				err = l.Abort(t.Context(), s.names)
			}
			if err != nil {
				t.Fatalf("died at %d: %v\n%s", kill, err, strings.Join(l.said, "\n"))
			}
			if limits, _ := l.limits(s); limits != (change.Limits{Least: 1, Most: 5}) {
				t.Fatalf("died at %d: the limits are %v", kill, limits)
			}
			l.change(now)
			if limits, machines := l.limits(s); limits != (change.Limits{Least: 1, Most: 5}) || machines < 2 || machines > 3 {
				t.Fatalf("died at %d: in the end the limits are %v, with %d machines", kill, limits, machines)
			}
		}
	})
}

// TestAbortedAutoscaling checks that an abort removes limits that only the definition of the change has.
func TestAbortedAutoscaling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, func(d *definition.Definition) { d.Pools[0].Spec.Replicas = 2 }, "dev.yaml")
		now := copied(d)
		now.Pools[0].Spec.MaxPods, now.Pools[0].Spec.Autoscaling = 50, &definition.Autoscaling{Min: 1, Max: 5}
		for name := range s.pods {
			s.blocked[name] = true
		}
		if err := l.Change(t.Context(), record.Change{Definition: now}); err == nil {
			t.Fatal("a drain against a disruption budget is complete")
		}
		if limits, _ := l.limits(s); limits != (change.Limits{Least: 3, Most: 3}) {
			t.Errorf("the limits are %v, want those that hold the autoscaler", limits)
		}
		if err := l.Abort(t.Context(), s.names); err != nil {
			t.Fatal(err)
		}
		if limits, _ := l.limits(s); limits != (change.Limits{}) {
			t.Errorf("the limits are %v, want none", limits)
		}
	})
}
