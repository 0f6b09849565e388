package gateway_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
)

// render says what a gateway does, as a person reads it: rules in the order of their priorities, with their paths in the order in which they
// match, and what backends get. Names of children are not shown, but for what others have made.
func render(t testing.TB, doc azure.Document) string {
	t.Helper()
	g, err := azure.Decode[network.ApplicationGateway](doc)
	if err != nil {
		t.Fatal(err)
	}
	r := renderer{t: t, g: g.Properties}
	write := map[int32]func(){}
	for _, rule := range r.g.Rules {
		write[rule.Properties.Priority] = func() { r.rule(rule) }
	}
	for _, rule := range r.g.StreamRules {
		write[rule.Properties.Priority] = func() { r.stream(rule) }
	}
	for _, priority := range slices.Sorted(maps.Keys(write)) {
		write[priority]()
	}
	if n := len(r.g.StreamListeners) + len(r.g.StreamSettings); n > 0 {
		fmt.Fprintf(&r.text, "children for streams: %d listeners, %d settings\n", len(r.g.StreamListeners), len(r.g.StreamSettings))
	}
	fmt.Fprintf(&r.text, "children: %d listeners, %d pools, %d settings, %d probes, %d certificates, %d redirects, %d rewrite sets, %d ports\n",
		len(r.g.Listeners), len(r.g.Pools), len(r.g.Settings), len(r.g.Probes), len(r.g.Certificates), len(r.g.Redirects), len(r.g.RewriteSets),
		len(r.g.Ports))
	return r.text.String()
}

type renderer struct {
	t    testing.TB
	g    network.ApplicationGateway
	text strings.Builder
}

// find returns a child that is referred to. What is not there would be refused by Azure.
func find[P any](t testing.TB, all []azure.Child[P], ref *azure.Reference) P {
	t.Helper()
	for _, c := range all {
		if strings.EqualFold(c.Name, ref.To().Name()) {
			return c.Properties
		}
	}
	t.Errorf("%s is referred to and not there", ref.To())
	return *new(P)
}

func (r *renderer) rule(rule azure.Child[network.GatewayRule]) {
	p := rule.Properties
	fmt.Fprintf(&r.text, "%d %s\n", p.Priority, r.listener(p.Listener))
	if p.PathMap == nil {
		r.target("everything", p.Pool, p.Settings, p.Redirect, p.RewriteSet, nil, p.Distribution)
		return
	}
	m := find(r.t, r.g.PathMaps, p.PathMap)
	for _, path := range m.PathRules {
		q := path.Properties
		r.target(strings.Join(q.Paths, " "), q.Pool, q.Settings, q.Redirect, q.RewriteSet, q.FirewallPolicy, q.Distribution)
	}
	r.target("everything else", m.DefaultPool, m.DefaultSettings, m.DefaultRedirect, m.DefaultRewriteSet, nil, m.DefaultDistribution)
}

// stream says what becomes of the connections of a listener for TCP or TLS.
func (r *renderer) stream(rule azure.Child[network.GatewayStreamRule]) {
	p := rule.Properties
	l, s, pool := find(r.t, r.g.StreamListeners, p.Listener), find(r.t, r.g.StreamSettings, p.Settings), find(r.t, r.g.Pools, p.Pool)
	text := fmt.Sprintf("%d %s %s:%d %s", p.Priority, strings.ToLower(l.Protocol), l.Frontend.To().Name(), find(r.t, r.g.Ports, l.Port).Port,
		cmp.Or(strings.Join(l.HostNames, " "), "any host"))
	if l.Certificate != nil {
		find(r.t, r.g.Certificates, l.Certificate)
		text += " with " + plainName(l.Certificate.To().Name())
	}
	var backends []string
	for _, a := range pool.Addresses {
		backends = append(backends, a.IPAddress+a.FQDN)
	}
	fmt.Fprintf(&r.text, "%s\n  connections -> %s port %d [%s], timeout %d", text, strings.ToLower(s.Protocol), s.Port, strings.Join(backends, " "), s.Timeout)
	if s.HostName != "" {
		r.text.WriteString(", server name " + s.HostName)
	}
	for _, root := range s.TrustedRoots {
		r.text.WriteString(", root " + root.To().Name())
	}
	r.text.WriteString("\n")
	if s.Probe != nil {
		b := find(r.t, r.g.Probes, s.Probe)
		fmt.Fprintf(&r.text, "    probe %s every %d timeout %d threshold %d\n", strings.ToLower(b.Protocol), b.Interval, b.Timeout, b.UnhealthyThreshold)
	}
}

func (r *renderer) listener(ref *azure.Reference) string {
	l := find(r.t, r.g.Listeners, ref)
	hosts := "any host"
	if len(l.HostNames) > 0 {
		hosts = strings.Join(l.HostNames, " ")
	}
	text := fmt.Sprintf("%s %s:%d %s", strings.ToLower(l.Protocol), l.Frontend.To().Name(), find(r.t, r.g.Ports, l.Port).Port, hosts)
	if l.Certificate != nil {
		find(r.t, r.g.Certificates, l.Certificate)
		text += " with " + plainName(l.Certificate.To().Name())
	}
	if l.SSLProfile != nil {
		text += " profile " + l.SSLProfile.To().Name()
	}
	if l.FirewallPolicy != nil {
		text += " firewall " + l.FirewallPolicy.To().Name()
	}
	return text
}

// plainName is a name without the prefix and the hashes that differ between runs.
func plainName(name string) string {
	if rest, ours := strings.CutPrefix(name, "k8s-abc-"); ours {
		words := strings.Split(rest, "-")
		if words[0] == "cert" {
			words = words[:len(words)-1] // the hash of the content
		}
		return strings.Join(words[:len(words)-1], " ")
	}
	return name
}

func (r *renderer) target(what string, pool, settings, redirect, rewrite, firewall, spread *azure.Reference) {
	fmt.Fprintf(&r.text, "  %s -> ", what)
	if redirect != nil {
		d := find(r.t, r.g.Redirects, redirect)
		to := d.URL
		if d.Listener != nil {
			to = r.listener(d.Listener)
		}
		fmt.Fprintf(&r.text, "%s redirect to %s, path %v, query %v\n", strings.ToLower(d.Type), to, d.KeepsPath, d.KeepsQuery)
		return
	}
	s := find(r.t, r.g.Settings, settings)
	var backends []string
	var addresses []network.GatewayAddress
	if pool != nil {
		addresses = find(r.t, r.g.Pools, pool).Addresses
	}
	if spread != nil {
		for _, to := range find(r.t, r.g.Distributions, spread).Targets {
			for _, a := range find(r.t, r.g.Pools, to.Properties.Pool).Addresses {
				backends = append(backends, fmt.Sprintf("%s*%d", a.IPAddress, to.Properties.Weight))
			}
		}
	}
	for _, a := range addresses[:min(len(addresses), 4)] {
		backends = append(backends, a.IPAddress+a.FQDN)
	}
	if n := len(addresses); n > 4 {
		backends = append(backends, fmt.Sprintf("and %d more", n-4))
	}
	fmt.Fprintf(&r.text, "%s port %d [%s]%s", strings.ToLower(s.Protocol), s.Port, strings.Join(backends, " "), r.settings(s))
	if rewrite != nil {
		fmt.Fprintf(&r.text, ", rewrite %s", plainName(rewrite.To().Name()))
		if strings.HasPrefix(rewrite.To().Name(), "k8s-abc-rs-") {
			r.rewrites(find(r.t, r.g.RewriteSets, rewrite))
		}
	}
	if firewall != nil {
		fmt.Fprintf(&r.text, ", firewall %s", firewall.To().Name())
	}
	r.text.WriteString("\n")
	if s.Probe != nil {
		b := find(r.t, r.g.Probes, s.Probe)
		fmt.Fprintf(&r.text, "    probe %s://%s%s port %d every %d timeout %d threshold %d wants %s\n", strings.ToLower(b.Protocol), b.Host, b.Path,
			b.Port, b.Interval, b.Timeout, b.UnhealthyThreshold, strings.Join(b.Match.StatusCodes, ","))
	}
}

// rewrites says what the rules of a set do.
func (r *renderer) rewrites(set network.GatewayRewriteSet) {
	for _, rule := range set.Rules {
		r.text.WriteString("\n    ")
		for _, c := range rule.Conditions {
			not := map[bool]string{true: "not "}[c.Negate]
			fmt.Fprintf(&r.text, "if %s is %s%s ", c.Variable, not, c.Pattern)
		}
		a := rule.Actions
		for _, h := range slices.Concat(a.RequestHeaders, a.ResponseHeaders) {
			fmt.Fprintf(&r.text, "header %s: %s ", h.Name, h.Value)
		}
		if a.URL != nil {
			fmt.Fprintf(&r.text, "path %s", a.URL.Path)
			if a.URL.Reroute {
				r.text.WriteString(" and again")
			}
		}
	}
}

func (r *renderer) settings(s network.GatewaySettings) string {
	text := ""
	note := func(is bool, format string, args ...any) {
		if is {
			text += ", " + fmt.Sprintf(format, args...)
		}
	}
	note(s.RequestTimeout != 30, "timeout %d", s.RequestTimeout)
	note(s.Path != "", "path %s", s.Path)
	note(s.HostName != "", "host %s", s.HostName)
	note(s.ServerName != "", "server name %s", s.ServerName)
	note(s.PickHostName, "host of the backend")
	note(s.CookieBasedAffinity == network.SwitchedOn, "affinity %s", s.AffinityCookieName)
	note(s.Draining != nil, "draining")
	for _, root := range s.TrustedRoots {
		note(true, "root %s", root.To().Name())
	}
	return text
}
