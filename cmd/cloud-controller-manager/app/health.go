package app

import (
	"context"
	"net/http"
)

// alive answers /livez like /healthz: a failure means that only a restart helps.
func alive(health http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.URL.Path = "/healthz"
		health.ServeHTTP(w, r)
	})
}

// ready answers /readyz like /healthz, and fails once the program is stopping. A standby is ready
// because it may become the leader.
func ready(stopping context.Context, health http.Handler) http.Handler {
	healthy := alive(health)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stopping.Err() != nil {
			http.Error(w, "[-]stopping failed: finishing the work in flight, starting no new work", http.StatusInternalServerError)
			return
		}
		healthy.ServeHTTP(w, r)
	})
}
