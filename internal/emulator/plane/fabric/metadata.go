package fabric

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"kaz/internal/azure"
	"kaz/internal/emulator/plane/fabric/netns"
	"kaz/internal/emulator/plane/fabric/wiring"
)

// serve answers at the address of instance metadata in every network, and nowhere
// else.
func (f *Fabric) serve(want wiring.Net) {
	if f.options.Metadata == nil {
		return
	}
	wanted := map[string]bool{}
	for _, r := range want.Routers {
		wanted[r.Namespace] = true
		if f.services[r.Namespace] != nil {
			continue
		}
		if err := f.serveIn(r); err != nil {
			f.options.Log.Error("instance metadata is not served", "network", string(r.Network), "error", err)
			f.poke()
		}
	}
	for name, s := range f.services {
		if !wanted[name] {
			delete(f.services, name)
			_ = s.Close() // nobody is there any more
		}
	}
}

func (f *Fabric) serveIn(r wiring.Router) error {
	var l net.Listener
	err := netns.Do(r.Namespace, func() (err error) {
		l, err = net.Listen("tcp", netip.AddrPortFrom(wiring.Metadata, 80).String())
		return err
	})
	if err != nil {
		return err
	}
	s := &http.Server{
		Handler:           http.HandlerFunc(f.answer),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(f.options.Log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			nic, _ := f.Caller(r.Network, c)
			return context.WithValue(ctx, caller{}, nic)
		},
	}
	f.services[r.Namespace] = s
	f.serving.Go(func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			f.options.Log.Error("instance metadata ended", "network", string(r.Network), "error", err)
		}
	})
	return nil
}

// caller is the key under which requests know the interface that they came by.
type caller struct{}

func (f *Fabric) answer(w http.ResponseWriter, r *http.Request) {
	nic, _ := r.Context().Value(caller{}).(azure.ID)
	if nic == "" {
		http.Error(w, "the request came by no network interface", http.StatusNotFound)
		return
	}
	f.options.Metadata(nic).ServeHTTP(w, r)
}
