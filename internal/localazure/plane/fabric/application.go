package fabric

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"kaz/internal/azure"
	"kaz/internal/localazure/plane/fabric/netns"
	"kaz/internal/localazure/plane/fabric/wiring"
)

// ApplicationGateways is the network as application gateways see it: their frontends are in the virtual network and in the internet, and
// they reach their backends from their subnet.
type ApplicationGateways struct{ Fabric *Fabric }

// application returns what is in force for an application gateway.
func (a ApplicationGateways) application(id azure.ID) (wiring.ApplicationGateway, error) {
	a.Fabric.mu.Lock()
	defer a.Fabric.mu.Unlock()
	for _, g := range a.Fabric.net.Applications {
		if g.ID.Equal(id) {
			return g, nil
		}
	}
	return wiring.ApplicationGateway{}, fmt.Errorf("application gateway %s is in no virtual network", id)
}

// Listen listens at a frontend, after all earlier changes are in force.
func (a ApplicationGateways) Listen(ctx context.Context, id azure.ID, frontend netip.AddrPort) (l net.Listener, err error) {
	if err := a.Fabric.Settle(ctx); err != nil {
		return nil, err
	}
	g, err := a.application(id)
	if err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: netns.WithMark(g.Mark)}
	err = netns.Do(g.Namespace, func() error {
		l, err = config.Listen(ctx, "tcp", frontend.String())
		return err
	})
	return l, err
}

// Dial connects to host:port. Security groups of the backend treat the connection as one from the gateway's subnet. Names are those
// that this machine knows.
func (a ApplicationGateways) Dial(ctx context.Context, id azure.ID, address string) (c net.Conn, err error) {
	g, err := a.application(id)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: g.Instance.AsSlice()}, Control: netns.WithMark(g.Mark)}
	for _, at := range found {
		err = netns.Do(g.Namespace, func() error {
			c, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(at.Unmap().String(), port))
			return err
		})
		if err == nil {
			return c, nil
		}
	}
	return nil, err
}
