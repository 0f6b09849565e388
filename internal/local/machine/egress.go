package machine

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Egress is the HTTP CONNECT proxy through which the API server, which is outside, reaches the inside of machines.
type Egress struct {
	// Dial connects from the inside to an address.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	Log  *slog.Logger
}

// Serve answers at a listener until ctx is done.
func (e Egress) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: e, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // it says nothing new
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ServeHTTP joins the client's connection with one to the address that it names.
func (e Egress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT is answered", http.StatusMethodNotAllowed)
		return
	}
	inside, err := e.Dial(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	outside, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		inside.Close()
		e.Log.Warn("way to the inside of machines", "address", r.Host, "error", err)
		return
	}
	if _, err := outside.Write([]byte("HTTP/1.1 200 Connection Established\r\n\r\n")); err != nil {
		inside.Close()
		outside.Close()
		return
	}
	if n := buffered.Reader.Buffered(); n > 0 { // what the client could not wait to say
		early, err := buffered.Peek(n)
		if err == nil {
			_, err = inside.Write(early)
		}
		if err != nil {
			inside.Close()
			outside.Close()
			return
		}
	}
	if err := join(r.Context(), inside, outside); err != nil {
		e.Log.Debug("way to the inside of machines", "address", r.Host, "error", err)
	}
}
