package fabric

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/plane/fabric/netns"
	"kaz/internal/localazure/plane/fabric/wiring"
)

// webServers serve HTTP at an address of the platform in the router of each network.
type webServers struct {
	what    string // that they serve
	at      netip.Addr
	handler func(from azure.ID) http.Handler
	// caller returns the interface from which a connection came.
	caller  func(network azure.ID, c net.Conn) (azure.ID, bool)
	log     *slog.Logger
	servers map[string]*http.Server // by namespace
	serving sync.WaitGroup
}

func (f *Fabric) webServers(what string, at netip.Addr, handler func(azure.ID) http.Handler) *webServers {
	return &webServers{what: what, at: at, handler: handler, caller: f.Caller, log: f.options.Log, servers: map[string]*http.Server{}}
}

// update starts servers in new routers and stops those in other namespaces. It reports whether all have started.
func (m *webServers) update(routers []wiring.Router) bool {
	if m.handler == nil {
		return true
	}
	wanted, all := map[string]bool{}, true
	for _, r := range routers {
		wanted[r.Namespace] = true
		if m.servers[r.Namespace] != nil {
			continue
		}
		if err := m.start(r); err != nil {
			m.log.Error("the platform does not serve", "what", m.what, "network", string(r.Network), "error", err)
			all = false
		}
	}
	for name, s := range m.servers {
		if !wanted[name] {
			delete(m.servers, name)
			_ = s.Close() // the client is gone
		}
	}
	return all
}

func (m *webServers) start(r wiring.Router) error {
	var l net.Listener
	err := netns.Do(r.Namespace, func() (err error) {
		l, err = net.Listen("tcp", netip.AddrPortFrom(m.at, 80).String())
		return err
	})
	if err != nil {
		return err
	}
	s := &http.Server{
		Handler:           http.HandlerFunc(m.answer),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(m.log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			nic, _ := m.caller(r.Network, c)
			return context.WithValue(ctx, caller{}, nic)
		},
	}
	m.servers[r.Namespace] = s
	m.serving.Go(func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			m.log.Error("the platform stopped serving", "what", m.what, "network", string(r.Network), "error", err)
		}
	})
	return nil
}

// caller is the context key of the interface from which a request came.
type caller struct{}

func (m *webServers) answer(w http.ResponseWriter, r *http.Request) {
	nic, _ := r.Context().Value(caller{}).(azure.ID)
	if nic == "" {
		http.Error(w, "the request came by no network interface", http.StatusNotFound)
		return
	}
	m.handler(nic).ServeHTTP(w, r)
}

// close stops all servers and waits for their goroutines.
func (m *webServers) close() {
	for _, s := range m.servers {
		_ = s.Close() // the machines are stopped
	}
	m.serving.Wait()
}
