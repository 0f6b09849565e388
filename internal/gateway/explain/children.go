package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	planner "kaz/internal/plan/gateway"
)

// children are those of a gateway: as they are wanted, as Azure has them, and what the controller would change.
type children struct {
	decided planner.Decision
	keys    []string // of the objects of the planner with the children that are shown
	// changes has the paths of what the controller would change at the gateway.
	changes []string
	health  []Health
}

// part compares a child of the gateway with what is wanted.
func (c *children) part(list, name string) Part {
	at := strings.ToLower("properties." + list + "[" + name + "]")
	p := Part{Name: name, State: UpToDate}
	for _, path := range c.changes {
		switch {
		case path == at:
			p.State = ToCreate
			return p
		case strings.HasPrefix(path, at+"."):
			p.State = ToChange
		}
	}
	return p
}

// needs reports whether the object needs a child of the gateway.
func (c *children) needs(name string) bool {
	return slices.ContainsFunc(c.decided.Objects[strings.ToLower(name)], func(key string) bool { return slices.Contains(c.keys, key) })
}

// isPrivate reports whether a frontend is the private one.
func (c *children) isPrivate(frontend *azure.Reference) bool {
	private, ok := c.decided.Live.Frontend(true)
	return ok && sameName(frontend.To().Name(), private.Name)
}

// portOf is the number of a port, which may be one of others.
func (c *children) portOf(ref *azure.Reference) int32 {
	for _, p := range slices.Concat(c.decided.Gateway.Ports, c.decided.Live.Properties.Ports) {
		if sameName(p.Name, ref.To().Name()) {
			return p.Properties.Port
		}
	}
	return 0
}

// paths lists the path rules of the object in a rule, and the rest if that is the object's.
func (c *children) paths(l *Listener, r network.GatewayRule) {
	rest := Path{Pool: nameOf(r.Pool), Settings: nameOf(r.Settings), Redirect: nameOf(r.Redirect), Rewrites: nameOf(r.RewriteSet)}
	for _, m := range c.decided.Gateway.PathMaps {
		if r.PathMap == nil || !sameName(m.Name, r.PathMap.To().Name()) {
			continue
		}
		l.PathMap = new(c.part("urlPathMaps", m.Name))
		p := m.Properties
		rest = Path{Pool: nameOf(p.DefaultPool), Settings: nameOf(p.DefaultSettings), Redirect: nameOf(p.DefaultRedirect),
			Rewrites: nameOf(p.DefaultRewriteSet)}
		for _, rule := range p.PathRules {
			if c.needs(rule.Name) {
				q := rule.Properties
				l.Paths = append(l.Paths, Path{Rule: rule.Name, Patterns: q.Paths, Pool: nameOf(q.Pool), Settings: nameOf(q.Settings),
					Redirect: nameOf(q.Redirect), Rewrites: nameOf(q.RewriteSet)})
			}
		}
	}
	if c.needs(rest.Settings) || c.needs(rest.Redirect) {
		l.Paths = append(l.Paths, rest)
	}
}

func (c *children) backend(pool, settings string) Backend {
	b := Backend{Pool: c.part("backendAddressPools", pool), Settings: c.part("backendHttpSettingsCollection", settings)}
	for _, s := range c.decided.Gateway.Settings {
		if s.Name == settings {
			b.Protocol, b.Port = s.Properties.Protocol, s.Properties.Port
			c.probe(&b, nameOf(s.Properties.Probe))
		}
	}
	for _, s := range c.decided.Gateway.StreamSettings {
		if s.Name == settings {
			b.Settings = c.part("backendSettingsCollection", settings)
			b.Protocol, b.Port = s.Properties.Protocol, s.Properties.Port
			c.probe(&b, nameOf(s.Properties.Probe))
		}
	}
	for _, p := range c.decided.Gateway.Pools {
		if p.Name != pool {
			continue
		}
		for _, a := range p.Properties.Addresses {
			b.Servers = append(b.Servers, c.server(pool, settings, cmp.Or(a.IPAddress, a.FQDN)))
		}
	}
	return b
}

func (c *children) probe(b *Backend, name string) {
	for _, p := range c.decided.Gateway.Probes {
		if p.Name == name {
			host := cmp.Or(p.Properties.Host, "the host of the backend")
			port := cmp.Or(p.Properties.Port, b.Port)
			b.Probe = new(c.part("probes", name))
			b.Asks = fmt.Sprintf("asks port %d for %s of %s every %d s", port, p.Properties.Path, host, p.Properties.Interval)
			if p.Properties.Path == "" {
				b.Asks = fmt.Sprintf("connects to port %d every %d s", port, p.Properties.Interval)
			}
		}
	}
}

// server is an address of a pool as the gateway has it.
func (c *children) server(pool, settings, address string) Server {
	s := Server{Address: address, Absent: true}
	for _, p := range c.decided.Live.Properties.Pools {
		if sameName(p.Name, pool) {
			s.Absent = !slices.ContainsFunc(p.Properties.Addresses, func(a network.GatewayAddress) bool {
				return sameName(cmp.Or(a.IPAddress, a.FQDN), address)
			})
		}
	}
	for _, h := range c.health {
		if sameName(h.Pool, pool) && sameName(h.Settings, settings) && sameName(h.Address, address) {
			s.Health, s.Log = h.State, h.Log
		}
	}
	return s
}
