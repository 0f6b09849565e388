package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"kaz/internal/localazure/plane/zones"
)

// nameServerAddress is the flag of the address of the name server.
func (o *Options) nameServerAddress() []address {
	if o.DNSAddress == "" {
		return nil
	}
	return []address{{"--dns-address", o.DNSAddress}}
}

// startNameServer starts the name server of public zones, if there is an address for it. Close ends it.
func (a *Server) startNameServer(ctx context.Context, o Options) error {
	for _, at := range o.nameServerAddress() {
		connections, datagrams, err := listenBoth(ctx, at.text)
		if err != nil {
			return listenError(at, err)
		}
		a.info.DNS = reachable(connections)
		ip, err := netip.ParseAddrPort(a.info.DNS)
		if err != nil {
			return errors.Join(err, connections.Close(), datagrams.Close())
		}
		serving, stop := context.WithCancel(context.WithoutCancel(ctx))
		s := &zones.Server{World: a.Look, At: ip.Addr(), Log: a.log}
		done := make(chan error, 1)
		go func() { done <- s.Serve(serving, connections, datagrams) }()
		a.closers.add(func() error {
			stop()
			if err := <-done; err != nil {
				return fmt.Errorf("name server: %w", err)
			}
			return nil
		})
	}
	return nil
}

// portTries is how often listenBoth tries another port, if the port that is free for TCP is not free for UDP.
const portTries = 10

// listenBoth opens one port for TCP and for UDP.
func listenBoth(ctx context.Context, address string) (net.Listener, net.PacketConn, error) {
	var config net.ListenConfig
	for try := 1; ; try++ {
		l, err := config.Listen(ctx, "tcp", address)
		if err != nil {
			return nil, nil, err
		}
		p, err := config.ListenPacket(ctx, "udp", l.Addr().String())
		if err == nil {
			return l, p, nil
		}
		_ = l.Close() // nothing was served
		if try == portTries || !strings.HasSuffix(address, ":0") {
			return nil, nil, err
		}
	}
}
