package app

import (
	"context"
	"net/http"
)

// alive answers /livez as /healthz: whether only a restart helps.
func alive(health http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.URL.Path = "/healthz"
		health.ServeHTTP(w, r)
	})
}

// ready answers /readyz: the same, and no more once the program was told to stop. A
// standby is ready: it could lead.
func ready(stopping context.Context, health http.Handler) http.Handler {
	healthy := alive(health)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stopping.Err() != nil {
			http.Error(w, "[-]stopping failed: what is under way is finished, no new work is begun", http.StatusInternalServerError)
			return
		}
		healthy.ServeHTTP(w, r)
	})
}
