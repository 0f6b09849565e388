package gateway_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/localazure/core"
)

// move gives the Service other endpoints, and waits until the gateway has them.
func (w *cluster) move(addresses ...string) {
	w.t.Helper()
	slices := w.kube.DiscoveryV1().EndpointSlices("default")
	if _, err := slices.Update(w.t.Context(), endpoints("web", addresses...), metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.pass(time.Minute)
}

// TestDiagnosis has a gateway that cannot reach the pods: the Ingress says so once, when the probes have had their time, and again when it
// comes back after it was gone.
func TestDiagnosis(t *testing.T) {
	const dead = "default/web BackendsUnhealthy: The application gateway finds none of the backends of pool "
	scenario(t, "no backend is healthy", func(t *testing.T) {
		w := newGatedCluster(t, core.Options{}, endpoints("web", "10.240.0.10").Endpoints...)
		w.start()
		defer w.stop()
		w.pass(time.Minute)
		w.setHealth("10.240.0.10", "Unhealthy")
		want(t, "events before the probes had their time", w.events.with(dead), 0)
		w.pass(5 * time.Minute)
		want(t, "events", w.events.with(dead), 1)
		want(t, "asked", w.asked(), 1)
		w.pass(time.Hour)
		want(t, "asked in an hour without a write", w.asked(), 1)
		w.move("10.240.0.10", "10.240.0.11")
		w.setHealth("10.240.0.10", "Unhealthy")
		w.pass(5 * time.Minute)
		want(t, "asked after a write", w.asked(), 2)
		want(t, "events while it lasts", w.events.with(dead), 1)
		w.setHealth("10.240.0.10", "Healthy")
		w.move("10.240.0.10")
		w.pass(5 * time.Minute)
		w.setHealth("10.240.0.10", "Unhealthy")
		w.move("10.240.0.10", "10.240.0.12")
		w.setHealth("10.240.0.10", "Unhealthy")
		w.pass(5 * time.Minute)
		want(t, "events after it comes back", w.events.with(dead), 2)
	})
	scenario(t, "a backend is healthy, or not known", func(t *testing.T) {
		for _, state := range []string{"Healthy", "Unknown"} {
			w := newGatedCluster(t, core.Options{}, endpoints("web", "10.240.0.10").Endpoints...)
			w.start()
			w.setHealth("10.240.0.10", state)
			w.pass(10 * time.Minute)
			want(t, "events", w.events.with("BackendsUnhealthy"), 0)
			w.stop()
		}
	})
}
