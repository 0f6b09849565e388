package local

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"

	"kaz/internal/emulator/plane/cloud"
	"kaz/internal/emulator/plane/fabric/wiring"
	"kaz/internal/emulator/plane/names"
	vm "kaz/internal/local/machine"
)

// serveNames gives the virtual network Azure's name server and, under their own names,
// the hosts of Azure itself: both are at the platform's address, until ctx is done.
func (c *cluster) serveNames(ctx context.Context) error {
	network, log := c.reality.network, slog.Default()
	at := func(port uint16) string { return netip.AddrPortFrom(wiring.Platform, port).String() }
	const dns, https = 53, 443
	azure, err := network.Listen(ctx, c.vnet(), "tcp", at(https))
	if err != nil {
		return fmt.Errorf("azure inside the virtual network: %w", err)
	}
	c.tasks.Go(func() error { return vm.Relay(ctx, azure, hostOf(c.azure.Info().ARM), log) })
	connections, err := network.Listen(ctx, c.vnet(), "tcp", at(dns))
	if err != nil {
		return fmt.Errorf("name server of the virtual network: %w", err)
	}
	datagrams, err := network.ListenPacket(ctx, c.vnet(), "udp", at(dns))
	if err != nil {
		connections.Close()
		return fmt.Errorf("name server of the virtual network: %w", err)
	}
	server := &names.Server{Network: c.vnet(), World: c.azure.look, Own: c.azure.ownHost, At: wiring.Platform, Log: log}
	c.tasks.Go(func() error { return server.Serve(ctx, connections, datagrams) })
	return nil
}

// ownHost reports whether a host is one of Azure's that are served here.
func (a *Azure) ownHost(host string) bool {
	_, known := cloud.OfHost(host)
	return known || a.registries.Answers(host)
}
