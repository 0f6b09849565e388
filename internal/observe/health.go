package observe

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Check returns nil if something works, or else what is wrong. It returns early if its context ends.
type Check func(context.Context) error

type namedCheck struct {
	name  string
	check Check
}

// Health serves /healthz and /readyz from named checks. The zero value has no checks, and is healthy
// and ready. Checks may be added while it serves.
type Health struct {
	mu          sync.Mutex
	live, ready []namedCheck
}

// Live adds a check of /healthz. A failure means that only a restart helps.
func (h *Health) Live(name string, check Check) { h.add(&h.live, name, check) }

// Ready adds a check of /readyz. While it fails, clients should not send work.
func (h *Health) Ready(name string, check Check) { h.add(&h.ready, name, check) }

func (h *Health) add(list *[]namedCheck, name string, check Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*list = append(*list, namedCheck{name, check})
}

// Register adds the two handlers to a mux.
func (h *Health) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", h.ServeLive)
	mux.HandleFunc("GET /readyz", h.ServeReady)
}

// ServeLive answers as /healthz does, for another path.
func (h *Health) ServeLive(w http.ResponseWriter, r *http.Request) { h.answer(w, r, &h.live) }

// ServeReady answers as /readyz does, for another path.
func (h *Health) ServeReady(w http.ResponseWriter, r *http.Request) { h.answer(w, r, &h.ready) }

// answer writes a response in the form of Kubernetes components: ok, or one line for each check if
// one fails or ?verbose is set.
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
