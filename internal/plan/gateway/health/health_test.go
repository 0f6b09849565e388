package health_test

import (
	"slices"
	"testing"

	"kaz/internal/plan/gateway/health"
)

// TestDead has pools with healthy, unhealthy, starting and no backends. The same pool may be reached by other settings.
func TestDead(t *testing.T) {
	all := []health.Backend{
		{Pool: "a", Settings: "x", State: "Unhealthy"}, {Pool: "a", Settings: "x", State: "Unhealthy", Log: "timeout"},
		{Pool: "a", Settings: "y", State: "Healthy"}, {Pool: "a", Settings: "y", State: "Unhealthy"},
		{Pool: "b", Settings: "x", State: "Unknown"}, {Pool: "c", Settings: "x", State: "Down"},
		{Pool: "d", Settings: "x", State: "Unhealthy"}, {Pool: "d", Settings: "x", State: "Up"},
	}
	want := []health.Pool{{Name: "a", Settings: "x", Backends: 2, Log: "timeout"}, {Name: "c", Settings: "x", Backends: 1}}
	if got := health.Dead(all); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := health.Dead(nil); len(got) > 0 {
		t.Errorf("without backends: %+v", got)
	}
}
