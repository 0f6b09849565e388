package routing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"kaz/internal/azure"
)

// Facts are what a gateway's document refers to in other documents.
type Facts struct {
	// Public has the addresses of public IP addresses by the keys of their ids.
	Public map[string]netip.Addr
	// Members has the addresses of network interfaces in pools by the keys of the pools' ids.
	Members map[string][]string
}

// Compile returns the table of a gateway's document. What cannot be served is left out and named in the problems.
func Compile(doc map[string]any, facts Facts) (*Config, error) {
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	c := compiler{facts: facts}
	if err := json.Unmarshal(text, &c.doc); err != nil {
		return nil, fmt.Errorf("the document of the application gateway: %w", err)
	}
	c.config = &Config{ID: c.doc.ID, HTTP2: c.doc.Properties.EnableHTTP2}
	c.index()
	c.sites()
	return c.config, nil
}

type compiler struct {
	doc       document
	facts     Facts
	config    *Config
	frontends map[string]frontend
	ports     map[string]port
	pools     map[string]child[pool]
	settings  map[string]child[setting]
	streams   map[string]child[setting]
	listeners map[string]child[listener]
	pathMaps  map[string]pathMap
	redirects map[string]redirect
	rewrites  map[string]rewriteSet
	probes    map[string]child[probe]
	spreads   map[string]child[distributionRule]
	profiles  map[string]profile
}

// byName returns the elements of a list by their names in lower case.
func byName[P any](all []child[P]) map[string]child[P] {
	found := map[string]child[P]{}
	for _, c := range all {
		found[strings.ToLower(c.Name)] = c
	}
	return found
}

// propertiesByName is byName without the names.
func propertiesByName[P any](all []child[P]) map[string]P {
	found := map[string]P{}
	for _, c := range all {
		found[strings.ToLower(c.Name)] = c.Properties
	}
	return found
}

func (c *compiler) index() {
	p := &c.doc.Properties
	c.frontends, c.ports = propertiesByName(p.Frontends), propertiesByName(p.Ports)
	c.pools, c.settings, c.streams = byName(p.Pools), byName(p.Settings), byName(p.StreamSettings)
	c.listeners = byName(slices.Concat(p.Listeners, p.StreamListeners))
	c.pathMaps, c.redirects = propertiesByName(p.PathMaps), propertiesByName(p.Redirects)
	c.rewrites, c.probes = propertiesByName(p.RewriteSets), byName(p.Probes)
	c.spreads, c.profiles = byName(p.DistributionRules), propertiesByName(p.Profiles)
}

func (c *compiler) problem(format string, args ...any) {
	c.config.Problems = append(c.config.Problems, fmt.Sprintf(format, args...))
}

// sites makes the sites of all rules, in the order of priorities, each at the front of its listener.
func (c *compiler) sites() {
	rules := slices.Concat(c.doc.Properties.Rules, c.doc.Properties.StreamRules)
	slices.SortStableFunc(rules, func(a, b child[rule]) int { return cmp.Compare(a.Properties.Priority, b.Properties.Priority) })
	fronts := map[netip.AddrPort]int{}
	for _, r := range rules {
		p := r.Properties
		l, found := c.listeners[cmp.Or(p.Listener.name(), p.StreamListener.name())]
		if !found {
			c.problem("rule %s has no listener", r.Name)
			continue
		}
		at, ok := c.address(l)
		if !ok {
			c.problem("listener %s has no address yet", l.Name)
			continue
		}
		protocol := protocolOf(l.Properties.Protocol)
		i, known := fronts[at]
		if !known {
			i = len(c.config.Fronts)
			fronts[at] = i
			c.config.Fronts = append(c.config.Fronts, Front{At: at, Protocol: protocol})
		}
		front := &c.config.Fronts[i]
		if front.Protocol != protocol {
			c.problem("listener %s has the protocol %s, another one at %s has %s", l.Name, protocol, at, front.Protocol)
			continue
		}
		front.Sites = append(front.Sites, c.site(r, l))
	}
	slices.SortFunc(c.config.Fronts, func(a, b Front) int { return a.At.Compare(b.At) })
}

// protocolOf returns a protocol in Azure's spelling.
func protocolOf(text string) Protocol {
	for _, p := range []Protocol{HTTPS, TCP, TLS} {
		if strings.EqualFold(text, string(p)) {
			return p
		}
	}
	return HTTP
}

// address is where a listener listens.
func (c *compiler) address(l child[listener]) (netip.AddrPort, bool) {
	f, port := c.frontends[l.Properties.Frontend.name()], c.ports[l.Properties.Port.name()].Port
	a, err := netip.ParseAddr(f.PrivateIPAddress)
	if f.PublicIPAddress.given() {
		a, err = c.facts.Public[f.PublicIPAddress.ID.Key()], nil
	}
	const highest = 65535
	ok := err == nil && a.IsValid() && port > 0 && port <= highest
	return netip.AddrPortFrom(a, uint16(port)), ok
}

func (c *compiler) site(r child[rule], l child[listener]) Site {
	p := r.Properties
	s := Site{Listener: l.Name, Rule: r.Name, Priority: int(p.Priority), Hosts: hostsOf(l.Properties)}
	if protocolOf(l.Properties.Protocol).Secure() {
		s.Certificate = strings.ToLower(l.Properties.Certificate.ID.Name())
		policy := c.doc.Properties.SSLPolicy
		if profile, ok := c.profiles[l.Properties.Profile.name()]; ok {
			if profile.SSLPolicy != (sslPolicy{}) {
				policy = profile.SSLPolicy
			}
			for _, root := range profile.ClientRoots {
				s.ClientRoots = append(s.ClientRoots, root.name())
			}
		}
		s.MinTLS = policy.least()
	}
	m, hasMap := c.pathMaps[p.PathMap.name()]
	switch {
	case p.StreamListener.given():
		s.Default = Action{Backend: c.backend(p.target, c.streams[p.StreamSetting.name()])}
	case hasMap:
		s.Default = c.action(target{m.Pool, m.Setting, m.Redirect, m.RewriteSet, m.Distribution})
		for _, rule := range m.Rules {
			s.Paths = append(s.Paths, Path{Name: rule.Name, Patterns: rule.Properties.Paths, Action: c.action(rule.Properties.target)})
		}
	default:
		s.Default = c.action(p.target)
	}
	return s
}

// hostsOf returns the hosts of a listener in lower case.
func hostsOf(l listener) []string {
	var hosts []string
	for _, h := range append([]string{l.HostName}, l.HostNames...) {
		if h != "" {
			hosts = append(hosts, strings.ToLower(h))
		}
	}
	return hosts
}

// least is the least version of TLS of a policy.
func (p sslPolicy) least() string {
	if p.MinProtocolVersion != "" {
		return p.MinProtocolVersion
	}
	switch strings.ToLower(p.PolicyName) {
	case "appgwsslpolicy20150501":
		return "TLSv1_0"
	case "appgwsslpolicy20170401":
		return "TLSv1_1"
	}
	return "TLSv1_2"
}

func (c *compiler) action(t target) Action {
	a := Action{Rewrites: c.rewritesOf(t.RewriteSet)}
	if r, ok := c.redirects[t.Redirect.name()]; ok {
		a.Redirect = c.redirect(r)
		return a
	}
	a.Backend = c.backend(t, c.settings[t.Setting.name()])
	return a
}

// redirectCodes are the status codes of the types of redirects.
var redirectCodes = map[string]int{
	"permanent": http.StatusMovedPermanently, "found": http.StatusFound, "seeother": http.StatusSeeOther,
	"temporary": http.StatusTemporaryRedirect,
}

func (c *compiler) redirect(r redirect) *Redirect {
	made := &Redirect{Status: cmp.Or(redirectCodes[strings.ToLower(r.Type)], http.StatusFound), URL: r.TargetURL,
		IncludePath: r.IncludePath, IncludeArgs: r.IncludeQueryString}
	if l, ok := c.listeners[r.TargetListener.name()]; ok && r.TargetURL == "" {
		made.Scheme = strings.ToLower(string(protocolOf(l.Properties.Protocol)))
		made.Port = int(c.ports[l.Properties.Port.name()].Port)
		if hosts := hostsOf(l.Properties); len(hosts) == 1 && !strings.ContainsAny(hosts[0], "*?") {
			made.Host = hosts[0]
		}
	}
	return made
}

func (c *compiler) backend(t target, s child[setting]) *Backend {
	if s.Name == "" {
		return nil
	}
	p := s.Properties
	b := &Backend{Setting: s.Name, Protocol: protocolOf(p.Protocol), Path: p.Path, Host: p.HostName, PickHost: p.PickHostName,
		ServerName: p.SNIName, Timeout: seconds(cmp.Or(p.RequestTimeout, p.Timeout, defaultTimeout))}
	if strings.EqualFold(p.Affinity, "Enabled") {
		b.Cookie = cmp.Or(p.AffinityCookieName, "ApplicationGatewayAffinity")
	}
	if p.ConnectionDraining.Enabled {
		b.Drain = seconds(p.ConnectionDraining.DrainTimeoutInSec)
	}
	for _, root := range p.Roots {
		b.Roots = append(b.Roots, root.name())
	}
	if spread, ok := c.spreads[t.Distribution.name()]; ok {
		b.Pool = spread.Name
		for _, to := range spread.Properties.Targets {
			b.Members = append(b.Members, c.members(to.Properties.Pool, p.Port, int(to.Properties.Weight))...)
		}
	} else {
		b.Pool = c.pools[t.Pool.name()].Name
		b.Members = c.members(t.Pool, p.Port, 1)
	}
	b.Probe = c.probe(p)
	return b
}

const defaultTimeout = 30

func seconds(n number) time.Duration { return time.Duration(n) * time.Second }

// members are the members of a pool in the order of the document, then those by network interface.
func (c *compiler) members(of reference, port number, weight int) []Member {
	var all []Member
	pool := c.pools[of.name()].Name
	for _, a := range c.pools[of.name()].Properties.Addresses {
		if host := cmp.Or(a.IPAddress, strings.ToLower(a.FQDN)); host != "" && weight > 0 {
			all = append(all, Member{Pool: pool, Host: host, Port: int(port), Weight: weight})
		}
	}
	for _, host := range c.facts.Members[c.doc.ID.Child("backendAddressPools", of.ID.Name()).Key()] {
		if weight > 0 {
			all = append(all, Member{Pool: pool, Host: host, Port: int(port), Weight: weight})
		}
	}
	return all
}

// probe is the probe of the settings. Without one Azure asks for / as the host 127.0.0.1, or as the host of the settings.
func (c *compiler) probe(s setting) Probe {
	const interval, timeout, threshold = 30, 30, 3
	protocol := protocolOf(s.Protocol)
	made := Probe{Protocol: protocol, Host: cmp.Or(s.HostName, "127.0.0.1"), PickHost: s.PickHostName && s.HostName == "", Path: "/",
		Interval: seconds(interval), Timeout: seconds(timeout), UnhealthyAfter: threshold, Codes: [][2]int{{200, 399}}}
	named, ok := c.probes[s.Probe.name()]
	if !ok {
		return made
	}
	p := named.Properties
	made.Name, made.Protocol, made.Port, made.Path = named.Name, protocolOf(p.Protocol), int(p.Port), cmp.Or(p.Path, "/")
	made.Interval, made.Timeout = seconds(cmp.Or(p.Interval, interval)), seconds(cmp.Or(p.Timeout, timeout))
	made.UnhealthyAfter, made.Body = int(cmp.Or(p.UnhealthyAfter, 1)), p.Match.Body
	if !p.PickHostName && !p.PickHostName4 {
		made.Host, made.PickHost = cmp.Or(p.Host, made.Host), false
	}
	if codes := codesOf(p.Match.StatusCodes); len(codes) > 0 {
		made.Codes = codes
	}
	return made
}

// codesOf reads status codes and ranges of them, such as 200 and 200-399.
func codesOf(texts []string) [][2]int {
	var all [][2]int
	for _, text := range texts {
		from, to, isRange := strings.Cut(text, "-")
		first, err := strconv.Atoi(strings.TrimSpace(from))
		last := first
		if isRange && err == nil {
			last, err = strconv.Atoi(strings.TrimSpace(to))
		}
		if err == nil {
			all = append(all, [2]int{first, last})
		}
	}
	return all
}

func joinHostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// Frontends are the public IP addresses that a gateway's document refers to.
func Frontends(doc map[string]any) []azure.ID {
	var all []azure.ID
	var d document
	if text, err := json.Marshal(doc); err != nil || json.Unmarshal(text, &d) != nil {
		return nil
	}
	for _, f := range d.Properties.Frontends {
		if f.Properties.PublicIPAddress.given() {
			all = append(all, f.Properties.PublicIPAddress.ID)
		}
	}
	return all
}
