package app

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/server/healthz"
	controllerhealthz "k8s.io/controller-manager/pkg/healthz"
)

// TestLivezAndReadyz checks /livez and /readyz in each state of the program.
func TestLivezAndReadyz(t *testing.T) {
	failing := errors.New("the lease is not renewed")
	var broken error
	health := controllerhealthz.NewMutableHealthzHandler(healthz.NamedCheck("leaderElection", func(*http.Request) error { return broken }))
	ctx, stop := context.WithCancel(t.Context())
	livez, readyz := alive(health), ready(ctx, health)
	status := func(h http.Handler, path string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Code
	}
	expect := func(what string, alive, ready int) {
		t.Helper()
		if got := status(livez, "/livez"); got != alive {
			t.Errorf("%s: /livez %d, want %d", what, got, alive)
		}
		if got := status(readyz, "/readyz"); got != ready {
			t.Errorf("%s: /readyz %d, want %d", what, got, ready)
		}
	}
	expect("at work, or on standby", 200, 200)
	broken = failing
	expect("stuck", 500, 500)
	broken = nil
	stop()
	expect("stopping", 200, 500)
}
