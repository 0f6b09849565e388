package wiring

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
)

// application is an application gateway with its references resolved. A program serves its frontends, in the namespace of the router.
type application struct {
	id       azure.ID
	subnet   *resolvedSubnet // of its instance
	instance netip.Addr      // the address from which it reaches its backends
	private  []netip.Addr    // frontends
	public   []netip.Addr
}

// ApplicationGateway says where an application gateway listens, and from where it connects to its backends.
type ApplicationGateway struct {
	ID        azure.ID
	Namespace string
	// Mark is the mark of its subnet, so that the subnet's route table applies.
	Mark     uint32
	Instance netip.Addr
}

// resolveApplications follows the references of the application gateways that run, in the order of their ids. They have IPv4 only.
func (x *index) resolveApplications() {
	for _, key := range slices.Sorted(maps.Keys(x.docs.applications)) {
		doc := x.docs.applications[key]
		a := &application{id: doc.ID}
		for _, c := range doc.Properties.Instances {
			if at, ok := parseAddress(c.Properties.PrivateIPAddress); ok && c.Properties.Subnet != nil {
				a.instance, a.subnet = at, x.subnet(c.Properties.Subnet.ID)
			}
		}
		if a.subnet == nil || !strings.EqualFold(doc.Properties.OperationalState, "Running") {
			continue
		}
		for _, f := range doc.Properties.Frontends {
			if f.Properties.PublicIPAddress != nil {
				if at := x.public(f.Properties.PublicIPAddress); at.Is4() {
					a.public = append(a.public, at)
				}
			} else if at, ok := parseAddress(f.Properties.PrivateIPAddress); ok && at.Is4() {
				a.private = append(a.private, at)
			}
		}
		a.subnet.network.applications = append(a.subnet.network.applications, a)
	}
}

// addApplications gives the router the addresses of the application gateways, and lets connections to their frontends in. Connections
// of machines to a public frontend of their own network stay in the network, so they have the private source address. Security groups
// of the gateways' subnet do not apply.
func (n *network) addApplications(s *Namespace, b *builder) {
	sets := []map[string]string{b.set("applications_public", "set", "type ipv4_addr"), b.set("applications_private", "set",
		"type ipv4_addr")}
	for _, a := range n.applications {
		s.Addresses = append(s.Addresses, Address{"lo", single(a.instance)})
		for i, list := range [][]netip.Addr{a.public, a.private} {
			for _, at := range list {
				s.Addresses = append(s.Addresses, Address{"lo", single(at)})
				sets[i][at.String()] = ""
			}
		}
	}
}

// applications adds the public frontends of application gateways to those of load balancers, and returns the routes to them.
func (g *gateway) applications(frontends map[string]string) []Route {
	var routes []Route
	for _, a := range g.network.applications {
		for _, at := range a.public {
			g.reachable[at] = true
			frontends[at.String()] = ""
			routes = append(routes, towards(at, "in", near4, near6))
		}
	}
	return routes
}

// leave lets the instances of application gateways connect to the internet, from a frontend or from the fallback address.
func (g *gateway) leave(source, leaving map[string]string, fallback netip.Addr) {
	for _, a := range g.network.applications {
		from := fallback
		if len(a.public) > 0 {
			from = a.public[0]
		}
		g.reachable[from] = true
		source[a.instance.String()] = from.String()
		leaving[a.instance.String()] = ""
	}
}

func (n *network) applicationGateways() []ApplicationGateway {
	var all []ApplicationGateway
	for _, a := range n.applications {
		all = append(all, ApplicationGateway{ID: a.id, Namespace: n.router, Mark: number(a.subnet.first), Instance: a.instance})
	}
	return all
}
