package gateway_test

import (
	"strings"
	"testing"

	"kaz/internal/localazure/core"
)

// TestIngress has the scenarios of one Ingress.
func TestIngress(t *testing.T) {
	scenario(t, "I1 an Ingress is served", func(t *testing.T) {
		w := newWorld(t, core.Options{}, append(service("web", "10.240.0.10", "10.240.0.11"), class(), web("web", "a.example.com", "web", 1))...)
		w.Forget()
		w.start()
		defer w.stop()
		want(t, "writes", strings.Join(w.Writes(), ", "), "PUT gate")
		want(t, "hosts", w.hosts(), "a.example.com")
		want(t, "backends", w.backends(), "10.240.0.10 10.240.0.11 10.9.9.9")
		want(t, "status", w.status("web"), w.address)
		if t.Failed() {
			t.Log(w.log.String(), w.events.all)
		}
	})
}
