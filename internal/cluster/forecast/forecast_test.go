package forecast_test

import (
	"testing"
	"time"

	"kaz/internal/cluster/forecast"
	"kaz/internal/cluster/graph"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func minutes(n float64) time.Duration { return time.Duration(n * float64(time.Minute)) }

// TestLeft checks estimates of deployments: units in parallel count once, units in a row are added, and what was never seen is unknown.
func TestLeft(t *testing.T) {
	ended := func(name, kind string, took float64) forecast.Unit {
		return forecast.Unit{Name: name, Kind: kind, Ended: true, Took: minutes(took)}
	}
	runs := func(name, kind string, since float64) forecast.Unit {
		return forecast.Unit{Name: name, Kind: kind, Began: now.Add(-minutes(since))}
	}
	waits := func(name, kind string, after ...string) forecast.Unit {
		return forecast.Unit{Name: name, Kind: kind, After: after}
	}
	last := func(u forecast.Unit, took float64) forecast.Unit {
		u.Took = minutes(took)
		return u
	}
	for _, x := range []struct {
		name  string
		units []forecast.Unit
		want  time.Duration
		known bool
	}{
		{"nothing", nil, 0, false},
		{"all ended", []forecast.Unit{ended("a", "k", 1)}, 0, false},
		{"the first of its kind runs", []forecast.Unit{ended("net", "n", 1), runs("a", "k", 1)}, 0, false},
		{"the first of its kind waits", []forecast.Unit{ended("a", "k", 3), runs("b", "k", 1), waits("c", "other", "b")}, 0, false},
		{"one runs", []forecast.Unit{ended("a", "k", 3), runs("b", "k", 1)}, minutes(2), true},
		{"one runs longer than the others", []forecast.Unit{ended("a", "k", 3), runs("b", "k", 4)}, 0, true},
		{"the average of two", []forecast.Unit{ended("a", "k", 3), ended("b", "k", 5), runs("c", "k", 1)}, minutes(3), true},
		{"two at once", []forecast.Unit{ended("a", "k", 3), runs("b", "k", 1), runs("c", "k", 0.5)}, minutes(2.5), true},
		{"two in a row", []forecast.Unit{ended("a", "k", 3), runs("b", "k", 1), waits("c", "k", "b")}, minutes(5), true},
		{"one that waits for two", []forecast.Unit{ended("a", "k", 3), runs("b", "k", 1), runs("c", "k", 2), waits("d", "k", "b", "c")},
			minutes(5), true},
		{"one that waits for what has ended", []forecast.Unit{ended("a", "k", 3), waits("b", "k", "a")}, minutes(3), true},
		{"what it took the last time", []forecast.Unit{last(runs("a", "k", 1), 4), last(waits("b", "m", "a"), 2)}, minutes(5), true},
		{"the last time is nearer than the kind", []forecast.Unit{ended("a", "k", 3), last(runs("b", "k", 1), 10)}, minutes(9), true},
		{"one of which Azure does not say that it has begun", []forecast.Unit{{Name: "a", Kind: "k", Ended: true, Began: now.Add(-minutes(4)),
			Took: minutes(3)}, waits("b", "k", "a")}, minutes(2), true},
		{"one of which Azure says no duration", []forecast.Unit{ended("a", "k", 0), runs("b", "k", 1)}, 0, false},
	} {
		if got, known := forecast.Left(x.units, now); got != x.want || known != x.known {
			t.Errorf("%s: %s, %v, want %s, %v", x.name, got, known, x.want, x.known)
		}
	}
}

// TestOf checks that units with machines are of one kind, and the others of another.
func TestOf(t *testing.T) {
	unit := func(name string, after []string, types ...string) *graph.LinkedUnit {
		u := &graph.LinkedUnit{Name: name, After: after}
		for _, kind := range types {
			u.Resources = append(u.Resources, graph.LinkedResource{Resource: &graph.Resource{Type: kind}})
		}
		return u
	}
	got := forecast.Of(graph.Linked{Units: []*graph.LinkedUnit{
		unit("network", nil, "Microsoft.Network/virtualNetworks"),
		unit("vault", nil, "Microsoft.KeyVault/vaults"),
		unit("cp-0", []string{"network"}, "Microsoft.Compute/disks", "Microsoft.Compute/virtualMachines"),
		unit("pool-a", []string{"network"}, "Microsoft.Compute/VirtualMachineScaleSets"),
	}})
	if len(got) != 4 || got[0].Kind != got[1].Kind || got[1].Kind == got[2].Kind || got[2].Kind != got[3].Kind ||
		got[3].After[0] != "network" {
		t.Errorf("units %+v", got)
	}
}

// TestSaw follows the words about a deployment: what is left is said once it is known.
func TestSaw(t *testing.T) {
	d := forecast.Deployment{Began: now, Units: []forecast.Unit{
		{Name: "network", Kind: "n"}, {Name: "cp-0", Kind: "m", After: []string{"network"}},
		{Name: "cp-1", Kind: "m", After: []string{"network", "cp-0"}}, {Name: "cp-2", Kind: "m", After: []string{"network", "cp-0"}}}}
	for _, x := range []struct {
		after       float64
		unit, state string
		want        string
	}{
		{0, "network", "Running", ""},
		{0.5, "network", "Succeeded", " (1 of 4, after 30s)"},
		{0.5, "cp-0", "Running", ""},
		{2.5, "cp-0", "Succeeded", " (2 of 4, after 2m30s, about 2m0s left)"},
		{2.5, "cp-1", "Running", ""},
		{3, "cp-2", "Running", ""},
		{4, "cp-1", "Succeeded", " (3 of 4, after 4m0s, about 45s left)"},
		{4, "other", "Succeeded", ""},
		{5, "cp-2", "Succeeded", " (4 of 4, after 5m0s)"},
	} {
		if got := d.Saw(x.unit, x.state, now.Add(minutes(x.after))); got != x.want {
			t.Errorf("%s %s after %v min: %q, want %q", x.unit, x.state, x.after, got, x.want)
		}
	}
}

// TestSawAtTheEnd checks that units of which only the end is seen began when those had ended that they wait for.
func TestSawAtTheEnd(t *testing.T) {
	d := forecast.Deployment{Began: now, Units: []forecast.Unit{
		{Name: "network", Kind: "n"}, {Name: "cp-0", Kind: "m", After: []string{"network"}},
		{Name: "cp-1", Kind: "m", After: []string{"network", "cp-0"}}}}
	for _, x := range []struct {
		after float64
		unit  string
		want  string
	}{
		{1, "network", " (1 of 3, after 1m0s)"},
		{3, "cp-0", " (2 of 3, after 3m0s, about 2m0s left)"},
		{6, "cp-1", " (3 of 3, after 6m0s)"},
	} {
		if got := d.Saw(x.unit, "Succeeded", now.Add(minutes(x.after))); got != x.want {
			t.Errorf("%s after %v min: %q, want %q", x.unit, x.after, got, x.want)
		}
	}
}
