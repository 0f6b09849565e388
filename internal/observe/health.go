package observe

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Check says whether something works: nil, or what is wrong. It gives up when
// its context ends.
type Check func(context.Context) error

type namedCheck struct {
	name  string
	check Check
}

// Health answers /healthz and /readyz from named checks. Its zero value has
// none and is healthy and ready. Checks may be added while it serves.
type Health struct {
	mu          sync.Mutex
	live, ready []namedCheck
}

// Live adds a check of /healthz: when it fails, only a restart helps.
func (h *Health) Live(name string, check Check) { h.add(&h.live, name, check) }

// Ready adds a check of /readyz: while it fails, others should not send work.
func (h *Health) Ready(name string, check Check) { h.add(&h.ready, name, check) }

func (h *Health) add(list *[]namedCheck, name string, check Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*list = append(*list, namedCheck{name, check})
}

// Register puts the two handlers on a mux.
func (h *Health) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { h.answer(w, r, &h.live) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { h.answer(w, r, &h.ready) })
}

// answer has the form that Kubernetes components use: ok, or a line for each
// check when one fails or ?verbose asks for it.
func (h *Health) answer(w http.ResponseWriter, r *http.Request, list *[]namedCheck) {
	h.mu.Lock()
	checks := append([]namedCheck(nil), *list...)
	h.mu.Unlock()

	var lines strings.Builder
	failed := false
	for _, c := range checks {
		if err := c.check(r.Context()); err != nil {
			failed = true
			fmt.Fprintf(&lines, "[-]%s failed: %v\n", c.name, err)
			continue
		}
		fmt.Fprintf(&lines, "[+]%s ok\n", c.name)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache, private")
	switch {
	case failed:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, lines.String(), "check failed\n")
	case r.URL.Query().Has("verbose"):
		fmt.Fprint(w, lines.String(), "check passed\n")
	default:
		fmt.Fprint(w, "ok")
	}
}
