// Package live reads from the document of an application gateway what others have put there, and what is left of a cluster's own
// children. Layer L1.
package live

import (
	"cmp"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
)

// Mine reports whether a child with a name belongs to the cluster.
type Mine func(name string) bool

// Gateway is an application gateway as it is.
type Gateway struct {
	azure.Resource[network.ApplicationGateway]
	Mine Mine
}

// Read returns the gateway of a snapshot, and false if it is not there.
func Read(have plan.Snapshot, id azure.ID, mine Mine) (Gateway, bool, error) {
	r, ok, err := plan.View[network.ApplicationGateway](have, id)
	r.ID = id
	return Gateway{Resource: r, Mine: mine}, ok, err
}

// IsStopped reports whether the gateway was stopped. A PUT would start it.
func (g Gateway) IsStopped() bool {
	state := g.Properties.OperationalState
	return strings.EqualFold(state, network.GatewayStopped) || strings.EqualFold(state, network.GatewayStopping)
}

// Frontend returns the first public or private address of the gateway, and false if it has none. Private addresses with IPv6 do not count:
// each listener has one frontend, and a gateway with IPv6 has IPv4, too.
func (g Gateway) Frontend(private bool) (azure.Child[network.GatewayFrontend], bool) {
	i := slices.IndexFunc(g.Properties.Frontends, func(f azure.Child[network.GatewayFrontend]) bool {
		return private == (f.Properties.PublicIPAddress == nil) && !strings.Contains(f.Properties.PrivateIPAddress, ":")
	})
	if i < 0 {
		return azure.Child[network.GatewayFrontend]{}, false
	}
	return g.Properties.Frontends[i], true
}

// FrontendID returns the id of a frontend.
func (g Gateway) FrontendID(private bool) azure.ID {
	f, _ := g.Frontend(private)
	return cmp.Or(f.ID, g.ID.Child("frontendIPConfigurations", f.Name))
}

// PortBesides returns the name of a port with a number, unless the name is one that the cluster gives. A gateway has each number once.
func (g Gateway) PortBesides(own func(name string) bool, port int32) (string, bool) {
	for _, p := range g.Properties.Ports {
		if p.Properties.Port == port && !own(p.Name) {
			return p.Name, true
		}
	}
	return "", false
}

// Has reports whether the gateway has a child of others with a name, in any case.
func Has[P any](children []azure.Child[P], name string) bool {
	return slices.ContainsFunc(children, func(c azure.Child[P]) bool { return strings.EqualFold(c.Name, name) })
}

// Foreign counts the children of others in a list.
func Foreign[P any](g Gateway, children []azure.Child[P]) (n int) {
	for _, c := range children {
		if !g.Mine(c.Name) {
			n++
		}
	}
	return n
}

// Listener is a listener of others.
type Listener struct {
	Name     string
	Protocol string // of Azure
	// Hosts are in lower case; "" stands for all hosts.
	Hosts []string
	// Priority is that of its rule, 0 without one.
	Priority int32
}

// ForeignListeners returns the listeners of others at a port of a frontend.
func (g Gateway) ForeignListeners(frontend azure.ID, port int32) []Listener {
	var all []Listener
	priorities := map[string]int32{} // of the rules of listeners, by the key of the listener
	for _, r := range g.rules() {
		priorities[r.listener.Key()] = r.priority
	}
	add := func(list string, l Listener, at, of *azure.Reference) {
		if g.Mine(l.Name) || !strings.EqualFold(string(at.To()), string(frontend)) || g.portOf(of.To()) != port {
			return
		}
		if len(l.Hosts) == 0 {
			l.Hosts = []string{""}
		}
		for i, h := range l.Hosts {
			l.Hosts[i] = strings.ToLower(h)
		}
		l.Priority = priorities[g.ID.Child(list, l.Name).Key()]
		all = append(all, l)
	}
	for _, l := range g.Properties.Listeners {
		p, hosts := l.Properties, slices.Clone(l.Properties.HostNames)
		if p.HostName != "" {
			hosts = append(hosts, p.HostName)
		}
		add("httpListeners", Listener{Name: l.Name, Protocol: p.Protocol, Hosts: hosts}, p.Frontend, p.Port)
	}
	for _, l := range g.Properties.StreamListeners {
		p := l.Properties
		add("listeners", Listener{Name: l.Name, Protocol: p.Protocol, Hosts: slices.Clone(p.HostNames)}, p.Frontend, p.Port)
	}
	return all
}

// Site is what one listener alone can have: a host at a port of a frontend.
type Site struct {
	Frontend string // the key of its id
	Port     int32
	Host     string // in lower case, "" for all hosts
}

// Sites returns the sites of the listeners in a document by the listeners' names in lower case. A port that is not in the document is one
// of the gateway.
func (g Gateway) Sites(p network.ApplicationGateway) map[string][]Site {
	numbers := map[string]int32{}
	for _, port := range slices.Concat(g.Properties.Ports, p.Ports) {
		numbers[strings.ToLower(port.Name)] = port.Properties.Port
	}
	all := map[string][]Site{}
	add := func(name string, frontend, port *azure.Reference, hosts ...string) {
		at := Site{Frontend: frontend.To().Key(), Port: numbers[strings.ToLower(port.To().Name())]}
		for _, h := range hosts {
			if at.Host = strings.ToLower(h); h != "" || len(hosts) == 1 {
				all[strings.ToLower(name)] = append(all[strings.ToLower(name)], at)
			}
		}
	}
	for _, l := range p.Listeners {
		add(l.Name, l.Properties.Frontend, l.Properties.Port, append([]string{l.Properties.HostName}, l.Properties.HostNames...)...)
	}
	for _, l := range p.StreamListeners {
		add(l.Name, l.Properties.Frontend, l.Properties.Port, append([]string{""}, l.Properties.HostNames...)...)
	}
	return all
}

// rule is what all kinds of rules have.
type rule struct {
	name     string
	priority int32
	listener azure.ID
}

func (g Gateway) rules() (all []rule) {
	for _, r := range g.Properties.Rules {
		all = append(all, rule{r.Name, r.Properties.Priority, r.Properties.Listener.To()})
	}
	for _, r := range g.Properties.StreamRules {
		all = append(all, rule{r.Name, r.Properties.Priority, r.Properties.Listener.To()})
	}
	return all
}

// Covers reports whether a host of a listener also matches another host, which is not the same. "" stands for all hosts.
func Covers(host, other string) bool {
	if host == other {
		return false
	}
	if host == "" {
		return true
	}
	parent, wild := strings.CutPrefix(host, "*")
	return wild && strings.HasSuffix(other, parent)
}

func (g Gateway) portOf(id azure.ID) int32 {
	for _, p := range g.Properties.Ports {
		if strings.EqualFold(p.Name, id.Name()) {
			return p.Properties.Port
		}
	}
	return 0
}

// Priorities returns the priorities of the rules of others.
func (g Gateway) Priorities() map[int32]bool {
	taken := map[int32]bool{}
	for _, r := range g.rules() {
		if !g.Mine(r.name) {
			taken[r.priority] = true
		}
	}
	return taken
}

// Priority returns the priority of a rule that is there, 0 for none.
func (g Gateway) Priority(rule string) int32 {
	for _, r := range g.rules() {
		if strings.EqualFold(r.name, rule) {
			return r.priority
		}
	}
	return 0
}

// HasMine reports whether the gateway has children of the cluster.
func (g Gateway) HasMine() bool {
	p := g.Properties
	return mine(g, p.Ports) || mine(g, p.Pools) || mine(g, p.Settings) || mine(g, p.Probes) || mine(g, p.Listeners) ||
		mine(g, p.PathMaps) || mine(g, p.Rules) || mine(g, p.Redirects) || mine(g, p.Certificates) || mine(g, p.RewriteSets) ||
		mine(g, p.Distributions) || mine(g, p.TrustedRoots) || mine(g, p.StreamListeners) || mine(g, p.StreamSettings) ||
		mine(g, p.StreamRules)
}

func mine[P any](g Gateway, children []azure.Child[P]) bool {
	return Foreign(g, children) < len(children)
}

// OnlyMine reports whether others have no rule at the gateway.
func (g Gateway) OnlyMine() bool {
	return Foreign(g, g.Properties.Rules)+Foreign(g, g.Properties.StreamRules) == 0
}
