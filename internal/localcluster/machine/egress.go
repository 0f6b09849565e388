package machine

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Egress is an HTTP CONNECT proxy by which the API server, which is outside, reaches addresses inside machines.
type Egress struct {
	// Dial connects to an address inside.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	Log  *slog.Logger
}

// Serve serves a listener until ctx is done.
func (e Egress) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: e, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // Serve returns the error
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ServeHTTP connects the client with the address that it names.
func (e Egress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "want method CONNECT", http.StatusMethodNotAllowed)
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
		e.Log.Warn("connection to the inside of machines", "address", r.Host, "error", err)
		return
	}
	if _, err := outside.Write([]byte("HTTP/1.1 200 Connection Established\r\n\r\n")); err != nil {
		inside.Close()
		outside.Close()
		return
	}
	if n := buffered.Reader.Buffered(); n > 0 { // data that the client sent before the response
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
		e.Log.Debug("connection to the inside of machines", "address", r.Host, "error", err)
	}
}
