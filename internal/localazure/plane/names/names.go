// Package names is Azure's name server for machines, at 168.63.129.16. It resolves the machines of a virtual network, the
// names of public addresses, the records of the private zones that are linked to the network and of public zones, and the hosts of the
// local Azure itself. Layer L2.
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

// lookup returns the addresses of a name outside of DNS zones, and whether the name exists.
func (s *Server) lookup(name string) (addresses []netip.Addr, found bool) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if machine, ok := strings.CutSuffix(name, "."+Domain); ok {
		s.World(func(w behaviour.World) { addresses, found = s.registered(w)[machine] })
		return addresses, found
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

// reverse returns the name of the machine with a private address in the network, "" for none.
func (s *Server) reverse(address netip.Addr) string {
	name := ""
	s.World(func(w behaviour.World) {
		for host, addresses := range s.registered(w) {
			if slices.Contains(addresses, address) {
				name = host + "." + Domain
			}
		}
	})
	return name
}

// registered returns the addresses in the network of the machines, by their names.
func (s *Server) registered(w behaviour.World) map[string][]netip.Addr {
	all := map[string][]netip.Addr{}
	for _, kind := range []string{"Microsoft.Compute/virtualMachineScaleSets/virtualMachines", "Microsoft.Compute/virtualMachines"} {
		for _, doc := range behaviour.Everywhere(w, kind) {
			host := strings.ToLower(behaviour.Text(doc, "properties.osProfile.computerName"))
			if addresses := s.addressesOf(w, doc); host != "" && len(addresses) > 0 {
				all[host] = append(all[host], addresses...)
			}
		}
	}
	return all
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
