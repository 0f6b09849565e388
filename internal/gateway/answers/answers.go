// Package answers is a backend that answers with status codes. Layer L3.
//
// An application gateway cannot answer a request with a status code by itself. Where the Gateway API wants 404 or 500, the gateway sends
// the request here, with the code as the first segment of the path.
package answers

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Handler answers /404/... and /500/... with these codes, /200, which probes ask for, with 200, and all else with 404.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code := codeOf(r.URL.Path)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(code)
		_, _ = fmt.Fprintln(w, http.StatusText(code)) // a client that has gone does not read it
	})
}

// codeOf returns the status code for a path.
func codeOf(path string) int {
	segment, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	for _, code := range []int{http.StatusOK, http.StatusInternalServerError} {
		if segment == strconv.Itoa(code) {
			return code
		}
	}
	return http.StatusNotFound
}
