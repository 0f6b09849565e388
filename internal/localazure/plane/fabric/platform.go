package fabric

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"kaz/internal/azure"
	"kaz/internal/localazure/plane/fabric/netns"
	"kaz/internal/localazure/plane/fabric/wiring"
)

// router returns the router of a virtual network.
func (f *Fabric) router(network azure.ID) (wiring.Router, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.net.Routers {
		if r.Network.Equal(network) {
			return r, nil
		}
	}
	return wiring.Router{}, fmt.Errorf("virtual network %s does not exist", network)
}

// Namespace identifies the network namespace of a virtual network. A network that was deleted and made again has another one.
func (f *Fabric) Namespace(network azure.ID) (string, error) {
	r, err := f.router(network)
	if err != nil {
		return "", err
	}
	return netns.Identity(r.Namespace)
}

// Dial connects to an address in a virtual network from the platform's address 168.63.129.16. Security groups treat the
// connection as a load balancer's probe.
func (f *Fabric) Dial(ctx context.Context, network azure.ID, protocol, address string) (c net.Conn, err error) {
	r, err := f.router(network)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{}
	if to, err := netip.ParseAddrPort(address); err == nil && to.Addr().Is4() {
		dialer.LocalAddr = from(protocol)
	}
	if r.Mark != 0 {
		dialer.Control = netns.WithMark(r.Mark)
	}
	err = netns.Do(r.Namespace, func() error {
		c, err = dialer.DialContext(ctx, protocol, address)
		return err
	})
	return c, err
}

func from(protocol string) net.Addr {
	if strings.HasPrefix(protocol, "udp") {
		return &net.UDPAddr{IP: wiring.Platform.AsSlice()}
	}
	return &net.TCPAddr{IP: wiring.Platform.AsSlice()}
}

// Listen listens in a virtual network at an address of the platform, such as 168.63.129.16:53. Security groups do not
// apply to it.
func (f *Fabric) Listen(ctx context.Context, network azure.ID, protocol, address string) (l net.Listener, err error) {
	r, err := f.router(network)
	if err != nil {
		return nil, err
	}
	err = netns.Do(r.Namespace, func() error {
		l, err = (&net.ListenConfig{}).Listen(ctx, protocol, address)
		return err
	})
	return l, err
}

// ListenPacket is Listen for datagrams.
func (f *Fabric) ListenPacket(ctx context.Context, network azure.ID, protocol, address string) (c net.PacketConn, err error) {
	r, err := f.router(network)
	if err != nil {
		return nil, err
	}
	err = netns.Do(r.Namespace, func() error {
		c, err = (&net.ListenConfig{}).ListenPacket(ctx, protocol, address)
		return err
	})
	return c, err
}

// Sender returns the interface with an address in a virtual network. An interface without IP forwarding can send from
// its own addresses only. For interfaces with IP forwarding use [Fabric.Caller].
func (f *Fabric) Sender(network azure.ID, address netip.Addr) (azure.ID, bool) {
	r, err := f.router(network)
	if err != nil {
		return "", false
	}
	id, ok := r.Interfaces[address.Unmap()]
	return id, ok
}

// Caller returns the interface by which a connection came to a listener of the network. It does not depend on the
// source address, so it also finds the node of a pod.
func (f *Fabric) Caller(network azure.ID, c net.Conn) (azure.ID, bool) {
	if s, ok := c.(syscall.Conn); ok {
		if mark := netns.Mark(s); mark != 0 {
			return f.Sender(network, wiring.AddressOf(mark))
		}
	}
	return "", false
}
