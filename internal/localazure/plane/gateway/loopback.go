package gateway

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"kaz/internal/azure"
)

// Loopback is a [Network] without a network of its own: each frontend has a port of this machine. The zero value is ready to use.
type Loopback struct {
	// Backends connects to host:port, nil for the network of this machine.
	Backends func(ctx context.Context, address string) (net.Conn, error)

	mu    sync.Mutex
	ports map[netip.AddrPort]string
}

// Listen implements [Network].
func (l *Loopback) Listen(ctx context.Context, _ azure.ID, frontend netip.AddrPort) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ports == nil {
		l.ports = map[netip.AddrPort]string{}
	}
	l.ports[frontend] = listener.Addr().String()
	return listener, nil
}

// Dial implements [Network].
func (l *Loopback) Dial(ctx context.Context, _ azure.ID, address string) (net.Conn, error) {
	if l.Backends != nil {
		return l.Backends(ctx, address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// Address is where a frontend is reached. It is an error if no gateway has listened there.
func (l *Loopback) Address(frontend netip.AddrPort) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.ports[frontend]; at != "" {
		return at, nil
	}
	return "", fmt.Errorf("no application gateway listens at %s", frontend)
}

// Reach connects to a frontend as a client does. The address is host:port. The function fits net/http's DialContext.
func (l *Loopback) Reach(ctx context.Context, network, address string) (net.Conn, error) {
	frontend, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	at, err := l.Address(frontend)
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, network, at)
}
