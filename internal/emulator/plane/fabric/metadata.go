package fabric

import (
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
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { f.answer(r.Network, w, req) }),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(f.options.Log.Handler(), slog.LevelDebug),
	}
	f.services[r.Namespace] = s
	f.serving.Go(func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			f.options.Log.Error("instance metadata ended", "network", string(r.Network), "error", err)
		}
	})
	return nil
}

func (f *Fabric) answer(network azure.ID, w http.ResponseWriter, r *http.Request) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		http.Error(w, "who asks cannot be seen", http.StatusBadRequest)
		return
	}
	nic, ok := f.Sender(network, from.Addr())
	if !ok {
		http.Error(w, "no network interface has the address "+from.Addr().String(), http.StatusNotFound)
		return
	}
	f.options.Metadata(nic).ServeHTTP(w, r)
}
