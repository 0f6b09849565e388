// Package names is Azure's name server for machines, at 168.63.129.16. It resolves the machines of a virtual network, the
// names of public addresses, and the hosts of the local Azure itself. Layer L2.
//
// No other names exist: the local Azure asks no other name server.
package names

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// Domain is the domain of machines.
const Domain = "internal.cloudapp.net"

// Server answers queries from one virtual network. All fields but Log are required.
type Server struct {
	Network azure.ID
	// World gives access to the resources.
	World func(func(w behaviour.World))
	// Own reports whether a host is one of the local Azure's, which has the address At.
	Own func(host string) bool
	At  netip.Addr
	// Log receives queries that failed. Nil is slog.Default.
	Log *slog.Logger
}

func (s *Server) log() *slog.Logger {
	if s.Log == nil {
		return slog.Default()
	}
	return s.Log
}

// Lookup returns the addresses of a name, and whether the name exists.
func (s *Server) Lookup(name string) (addresses []netip.Addr, found bool) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if machine, ok := strings.CutSuffix(name, "."+Domain); ok {
		s.machines(func(host string, of []netip.Addr) {
			if host == machine {
				addresses, found = append(addresses, of...), true
			}
		})
		return addresses, found
	}
	if addresses, found = s.private(name); found {
		return addresses, true
	}
	if s.Own(name) {
		return []netip.Addr{s.At}, true
	}
	s.World(func(w behaviour.World) {
		for _, doc := range behaviour.Everywhere(w, "Microsoft.Network/publicIPAddresses") {
			if !strings.EqualFold(behaviour.Text(doc, "properties.dnsSettings.fqdn"), name) {
				continue
			}
			found = true
			if a, err := netip.ParseAddr(behaviour.Text(doc, "properties.ipAddress")); err == nil {
				addresses = append(addresses, a)
			}
		}
	})
	return addresses, found
}

const zoneType = "Microsoft.Network/privateDnsZones"

// private returns the addresses of a name in the private zones that are linked to the network, and whether one of them has the
// name.
func (s *Server) private(name string) (addresses []netip.Addr, found bool) {
	s.World(func(w behaviour.World) {
		for id := range behaviour.Everywhere(w, zoneType) {
			host, inZone := strings.CutSuffix(name, "."+strings.ToLower(id.Name()))
			if name == strings.ToLower(id.Name()) {
				host, inZone = "@", true
			}
			if !inZone || !s.linked(w, id) {
				continue
			}
			for _, r := range []struct{ kind, list, field string }{
				{"A", "aRecords", "ipv4Address"}, {"AAAA", "aaaaRecords", "ipv6Address"},
			} {
				record, there := w.Get(id.Child(r.kind, host))
				found = found || there
				for _, one := range behaviour.Objects(record, "properties."+r.list) {
					if a, err := netip.ParseAddr(behaviour.Text(one, r.field)); err == nil {
						addresses = append(addresses, a)
					}
				}
			}
		}
	})
	return addresses, found
}

// linked reports whether a private zone is linked to the network.
func (s *Server) linked(w behaviour.World, zone azure.ID) bool {
	for _, link := range w.List(zone, zoneType+"/virtualNetworkLinks") {
		if behaviour.RefID(link, "properties.virtualNetwork").Equal(s.Network) {
			return true
		}
	}
	return false
}

// Reverse returns the name of the machine with a private address in the network, "" for none.
func (s *Server) Reverse(address netip.Addr) string {
	name := ""
	s.machines(func(host string, of []netip.Addr) {
		if slices.Contains(of, address) {
			name = host + "." + Domain
		}
	})
	return name
}

// machines calls f with the name and the addresses in the network of each machine.
func (s *Server) machines(f func(host string, addresses []netip.Addr)) {
	s.World(func(w behaviour.World) {
		for _, kind := range []string{"Microsoft.Compute/virtualMachineScaleSets/virtualMachines", "Microsoft.Compute/virtualMachines"} {
			for _, doc := range behaviour.Everywhere(w, kind) {
				host := strings.ToLower(behaviour.Text(doc, "properties.osProfile.computerName"))
				if addresses := s.addressesOf(w, doc); host != "" && len(addresses) > 0 {
					f(host, addresses)
				}
			}
		}
	})
}

func (s *Server) addressesOf(w behaviour.World, machine behaviour.Object) []netip.Addr {
	var all []netip.Addr
	for _, ref := range behaviour.Objects(machine, "properties.networkProfile.networkInterfaces") {
		nic, _ := w.Get(azure.ID(behaviour.Text(ref, "id")))
		for _, c := range behaviour.Objects(nic, "properties.ipConfigurations") {
			a, err := netip.ParseAddr(behaviour.Text(c, "properties.privateIPAddress"))
			if err == nil && behaviour.RefID(c, "properties.subnet").Parent().Equal(s.Network) {
				all = append(all, a)
			}
		}
	}
	return all
}
