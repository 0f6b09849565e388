// Package routing is the compiler of application gateways. It compiles a gateway's document into the table by which requests are
// served: frontends, sites in the order of their rules, paths, backends with their probes. The compiler and the decision about a
// request are functions of values without effects. Layer L2: the vocabulary and the standard library.
package routing

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
)

// Config is a gateway as it serves.
type Config struct {
	ID azure.ID
	// HTTP2 says that clients may use HTTP/2 over TLS.
	HTTP2 bool
	// Fronts are in the order of their addresses.
	Fronts []Front
	// Problems are the parts of the document that are not served, each with its reason.
	Problems []string
}

// Front is an address and a port at which the gateway listens.
type Front struct {
	At       netip.AddrPort
	Protocol Protocol
	// Sites are in the order of the priorities of their rules. A request goes to the first that matches.
	Sites []Site
}

// Protocol is what clients and backends speak.
type Protocol string

// The protocols, spelled as Azure spells them.
const (
	HTTP  Protocol = "Http"
	HTTPS Protocol = "Https"
	TCP   Protocol = "Tcp"
	TLS   Protocol = "Tls"
)

// Secure reports whether a protocol is over TLS.
func (p Protocol) Secure() bool { return p == HTTPS || p == TLS }

// Stream reports whether a protocol is a plain stream of bytes.
func (p Protocol) Stream() bool { return p == TCP || p == TLS }

// Site is a listener with its rule.
type Site struct {
	Listener, Rule string
	Priority       int
	// Hosts are the host names, of which each may have the wildcards * and ?. None means any host.
	Hosts []string
	// Certificate is the name of the listener's certificate.
	Certificate string
	// ClientRoots are the names of the certificates by which clients are trusted. None means that clients need no certificate.
	ClientRoots []string
	// MinTLS is the least version of TLS, such as TLSv1_2.
	MinTLS string
	// Paths are in the order of the document. Default is for all other paths.
	Paths   []Path
	Default Action
}

// Path is a path rule.
type Path struct {
	Name     string
	Patterns []string
	Action   Action
}

// Action is what the gateway does with a request. The zero value answers 502: there is no backend.
type Action struct {
	Redirect *Redirect
	Backend  *Backend
	Rewrites []Rewrite
}

// Redirect answers with another address.
type Redirect struct {
	Status int
	// URL is the target. Without URL the target is another listener of the gateway.
	URL string
	// Scheme, Host and Port are those of the listener. An empty host is the host of the request.
	Scheme, Host             string
	Port                     int
	IncludePath, IncludeArgs bool
}

// Backend is a pool of members, and how they are reached.
type Backend struct {
	// Pool is the name of the pool or of the load distribution policy. Setting is the name of the backend settings.
	Pool, Setting string
	Protocol      Protocol
	Members       []Member
	// Path replaces what the pattern of the path rule matches, "" for no replacement.
	Path string
	// Host replaces the host of requests. PickHost takes the name of the member.
	Host     string
	PickHost bool
	// ServerName is the name for TLS where it differs from Host.
	ServerName string
	// Cookie is the name of the affinity cookie, "" for no affinity.
	Cookie  string
	Timeout time.Duration
	// Drain is how long a removed member keeps the clients with its cookie, 0 for not at all.
	Drain time.Duration
	// Roots are the names of the certificates that the members' certificates are checked against. None means the well-known ones.
	Roots []string
	Probe Probe
}

// Member is a backend server.
type Member struct {
	// Pool is the name of its pool.
	Pool string
	// Host is an IP address or a name.
	Host   string
	Port   int
	Weight int
}

// Address is host:port.
func (m Member) Address() string { return joinHostPort(m.Host, m.Port) }

// Probe is how the health of the members is found out.
type Probe struct {
	// Name is empty for the probe that Azure makes where the settings name none.
	Name     string
	Protocol Protocol
	// Host is the host of the requests. PickHost takes the name of the member.
	Host     string
	PickHost bool
	// Port is 0 for the port of the settings.
	Port              int
	Path              string
	Interval, Timeout time.Duration
	UnhealthyAfter    int
	// Codes are the status codes of a healthy member, from and to.
	Codes [][2]int
	// Body is a text that the response of a healthy member has.
	Body string
}

// Healthy reports whether a status code is one of a healthy member.
func (p Probe) Healthy(code int) bool {
	return slices.ContainsFunc(p.Codes, func(c [2]int) bool { return code >= c[0] && code <= c[1] })
}

// Backends yields the backends of all actions.
func (c *Config) Backends() iter.Seq[*Backend] {
	return func(yield func(*Backend) bool) {
		for _, f := range c.Fronts {
			for _, s := range f.Sites {
				for _, p := range s.Paths {
					if p.Action.Backend != nil && !yield(p.Action.Backend) {
						return
					}
				}
				if s.Default.Backend != nil && !yield(s.Default.Backend) {
					return
				}
			}
		}
	}
}

// String is the table as text, for logs and tests.
func (c *Config) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gateway %s http2=%t\n", c.ID.Name(), c.HTTP2)
	for _, f := range c.Fronts {
		fmt.Fprintf(&b, "front %s %s\n", f.At, f.Protocol)
		for _, s := range f.Sites {
			s.text(&b)
		}
	}
	for _, p := range c.Problems {
		fmt.Fprintf(&b, "problem %s\n", p)
	}
	return b.String()
}

func (s *Site) text(b *strings.Builder) {
	fmt.Fprintf(b, "  site %d %s: rule %s hosts %s", s.Priority, s.Listener, s.Rule, cmp.Or(strings.Join(s.Hosts, ","), "any"))
	if s.Certificate != "" {
		fmt.Fprintf(b, " certificate %s from %s", s.Certificate, s.MinTLS)
	}
	if len(s.ClientRoots) > 0 {
		fmt.Fprintf(b, " clients of %s", strings.Join(s.ClientRoots, ","))
	}
	b.WriteByte('\n')
	for _, p := range s.Paths {
		fmt.Fprintf(b, "    path %s %s -> %s\n", p.Name, strings.Join(p.Patterns, " "), p.Action)
	}
	fmt.Fprintf(b, "    default -> %s\n", s.Default)
}

// String is the action as text.
func (a Action) String() string {
	var parts []string
	switch {
	case a.Redirect != nil:
		parts = append(parts, a.Redirect.String())
	case a.Backend != nil:
		parts = append(parts, a.Backend.String())
	default:
		parts = append(parts, "nothing")
	}
	for _, r := range a.Rewrites {
		parts = append(parts, fmt.Sprintf("rewrite %d %s", r.Sequence, r.Name))
	}
	return strings.Join(parts, ", ")
}

// String is the redirect as text.
func (r *Redirect) String() string {
	to := r.URL
	if to == "" {
		to = fmt.Sprintf("%s://%s:%d", r.Scheme, cmp.Or(r.Host, "{host}"), r.Port)
	}
	return fmt.Sprintf("%d %s path=%t query=%t", r.Status, to, r.IncludePath, r.IncludeArgs)
}

// String is the backend as text.
func (b *Backend) String() string {
	members := make([]string, len(b.Members))
	for i, m := range b.Members {
		members[i] = m.Address()
		if m.Weight != 1 {
			members[i] += fmt.Sprintf("*%d", m.Weight)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "pool %s [%s] %s %s timeout %s", b.Pool, strings.Join(members, " "), b.Setting, b.Protocol, b.Timeout)
	for _, more := range []struct {
		given bool
		text  string
	}{
		{b.Path != "", " path " + b.Path}, {b.Host != "", " host " + b.Host}, {b.PickHost, " host of member"},
		{b.ServerName != "", " sni " + b.ServerName}, {b.Cookie != "", " cookie " + b.Cookie},
		{b.Drain != 0, " drain " + b.Drain.String()}, {len(b.Roots) > 0, " roots " + strings.Join(b.Roots, ",")},
	} {
		if more.given {
			text.WriteString(more.text)
		}
	}
	return text.String() + " " + b.Probe.String()
}

// String is the probe as text.
func (p Probe) String() string {
	host := p.Host
	if p.PickHost {
		host = "{member}"
	}
	codes := make([]string, len(p.Codes))
	for i, c := range p.Codes {
		codes[i] = fmt.Sprintf("%d-%d", c[0], c[1])
	}
	return fmt.Sprintf("probe %s %s %s:%d%s every %s timeout %s threshold %d codes %s", cmp.Or(p.Name, "default"), p.Protocol, host, p.Port,
		p.Path, p.Interval, p.Timeout, p.UnhealthyAfter, strings.Join(codes, ","))
}
