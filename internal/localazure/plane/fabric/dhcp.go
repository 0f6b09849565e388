package fabric

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/net/ipv4"

	"kaz/internal/localazure/plane/fabric/netns"
	"kaz/internal/localazure/plane/fabric/wiring"
)

// dhcpServers tell machines the addresses of their interfaces by DHCP, in the router of each network.
type dhcpServers struct {
	lease   func(mac string) (lease, bool)
	log     *slog.Logger
	servers map[string]net.PacketConn // by namespace
	serving sync.WaitGroup
}

// lease is what DHCP says about an interface.
type lease struct {
	address netip.Prefix
	gateway netip.Addr
}

// leaseTime is as long as in Azure: leases never end.
const leaseTime = 1<<32*time.Second - time.Second

// update starts servers in new routers and stops those in other namespaces. It reports whether all have started.
func (d *dhcpServers) update(routers []wiring.Router) bool {
	wanted, all := map[string]bool{}, true
	for _, r := range routers {
		wanted[r.Namespace] = true
		if d.servers[r.Namespace] != nil {
			continue
		}
		if err := d.start(r); err != nil {
			d.log.Error("the network has no DHCP", "network", string(r.Network), "error", err)
			all = false
		}
	}
	for name, s := range d.servers {
		if !wanted[name] {
			delete(d.servers, name)
			_ = s.Close() // the clients are gone
		}
	}
	return all
}

func (d *dhcpServers) start(r wiring.Router) error {
	var c net.PacketConn
	err := netns.Do(r.Namespace, func() (err error) {
		c, err = (&net.ListenConfig{}).ListenPacket(context.Background(), "udp4", fmt.Sprintf("0.0.0.0:%d", dhcpv4.ServerPort))
		return err
	})
	if err != nil {
		return err
	}
	p := ipv4.NewPacketConn(c)
	if err := p.SetControlMessage(ipv4.FlagInterface, true); err != nil {
		return errors.Join(err, c.Close())
	}
	d.servers[r.Namespace] = c
	d.serving.Go(func() {
		if err := d.serve(p); !errors.Is(err, net.ErrClosed) {
			d.log.Error("DHCP ended", "network", string(r.Network), "error", err)
		}
	})
	return nil
}

func (d *dhcpServers) serve(p *ipv4.PacketConn) error {
	const largest = 1500
	buffer := make([]byte, largest)
	for {
		n, from, _, err := p.ReadFrom(buffer)
		if err != nil {
			return err
		}
		request, err := dhcpv4.FromBytes(buffer[:n])
		if err != nil || request.OpCode != dhcpv4.OpcodeBootRequest || from == nil {
			continue
		}
		if err := d.reply(p, from.IfIndex, request); err != nil {
			d.log.Warn("DHCP request", "mac", request.ClientHWAddr.String(), "error", err)
		}
	}
}

// reply sends the reply to all on the link: the client may have no address yet, and a link has one client.
func (d *dhcpServers) reply(p *ipv4.PacketConn, link int, request *dhcpv4.DHCPv4) error {
	kind := map[dhcpv4.MessageType]dhcpv4.MessageType{
		dhcpv4.MessageTypeDiscover: dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeRequest: dhcpv4.MessageTypeAck,
		dhcpv4.MessageTypeInform: dhcpv4.MessageTypeAck,
	}[request.MessageType()]
	l, known := d.lease(request.ClientHWAddr.String())
	if kind == dhcpv4.MessageTypeNone || !known {
		return nil
	}
	answer, err := dhcpv4.NewReplyFromRequest(request, l.options(kind)...)
	if err != nil {
		return err
	}
	_, err = p.WriteTo(answer.ToBytes(), &ipv4.ControlMessage{IfIndex: link, Src: wiring.Platform.AsSlice()},
		&net.UDPAddr{IP: net.IPv4bcast, Port: dhcpv4.ClientPort})
	return err
}

// wireServer is the option with the address of the wire server.
const wireServer = dhcpv4.GenericOptionCode(245)

func (l lease) options(kind dhcpv4.MessageType) []dhcpv4.Modifier {
	gateway, platform := net.IP(l.gateway.AsSlice()), net.IP(wiring.Platform.AsSlice())
	host := func(a netip.Addr) *net.IPNet {
		return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
	}
	everywhere := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, net.IPv4len*8)}
	return []dhcpv4.Modifier{
		dhcpv4.WithMessageType(kind),
		dhcpv4.WithYourIP(l.address.Addr().AsSlice()),
		dhcpv4.WithNetmask(net.CIDRMask(l.address.Bits(), net.IPv4len*8)),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(platform)),
		dhcpv4.WithRouter(gateway), dhcpv4.WithDNS(platform),
		dhcpv4.WithLeaseTime(uint32(leaseTime / time.Second)),
		dhcpv4.WithGeneric(wireServer, platform),
		dhcpv4.WithOption(dhcpv4.OptClasslessStaticRoute(
			&dhcpv4.Route{Dest: everywhere, Router: gateway},
			&dhcpv4.Route{Dest: host(wiring.Platform), Router: gateway},
			&dhcpv4.Route{Dest: host(wiring.Metadata), Router: gateway},
		)),
	}
}

// close stops all servers and waits for their goroutines.
func (d *dhcpServers) close() {
	for _, s := range d.servers {
		_ = s.Close() // the machines are stopped
	}
	d.serving.Wait()
}

// lease returns what DHCP says about the attached interface with a MAC address.
func (f *Fabric) lease(mac string) (lease, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.net.Links {
		if !strings.EqualFold(l.B.MAC, mac) {
			continue
		}
		for _, s := range f.net.Namespaces {
			if s.Guest && s.Name == l.B.Namespace {
				return leaseOf(s, l.B.Name)
			}
		}
	}
	return lease{}, false
}

// leaseOf returns the first IPv4 address of a device and its gateway.
func leaseOf(guest wiring.Namespace, device string) (l lease, ok bool) {
	for _, r := range guest.Routes {
		if r.Device == device && r.Via.Is4() {
			l.gateway = r.Via
			for _, a := range guest.Addresses {
				if a.Device == device && a.Prefix.Addr() == r.Source {
					l.address = a.Prefix
				}
			}
		}
	}
	return l, l.gateway.IsValid() && l.address.IsValid()
}
