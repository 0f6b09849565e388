package layout

import (
	"cmp"
	"fmt"
	"slices"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/gateway/limit"
	"kaz/internal/plan/gateway/live"
	"kaz/internal/plan/gateway/naming"
	"kaz/internal/plan/gateway/route"
)

// listener is one listener with its rule: for hosts with the same routes.
type listener struct {
	*host
	hosts    []string
	name     string
	parts    []string // that its children's names have
	redirect *listener
}

// group makes listeners of hosts with the same routes. HTTPS goes first, because redirects lead to it.
func (b *builder) group() {
	b.of = map[hostKey]*listener{}
	open := map[string]*listener{}
	for _, https := range []bool{true, false} {
		for _, key := range b.order {
			h := b.hosts[key]
			if (h.tls != nil) != https || !h.hasRoutes(b.of) {
				continue
			}
			target := h.target(b.of)
			like := fmt.Sprint(key.private, key.port, band(key.host), h.by, target.id())
			l, ok := open[like]
			if !ok || key.host == "" || len(l.hosts) == limit.Hosts {
				l = b.newListener(h, target)
				open[like] = l
			}
			if key.host != "" {
				l.hosts = append(l.hosts, key.host)
			}
			b.of[key] = l
		}
	}
}

func (l *listener) id() string {
	if l == nil {
		return ""
	}
	return l.name
}

func (b *builder) newListener(h *host, target *listener) *listener {
	side := "public"
	if h.private {
		side = "private"
	}
	parts := []string{side, fmt.Sprint(h.port), cmp.Or(h.host, "any-host")}
	if h.host == "" {
		parts = append(parts, "")
	}
	l := &listener{host: h, parts: parts, redirect: target, name: b.prefix.Child("fl", parts...)}
	if h.stream {
		l.name = b.prefix.Child("sl", parts...)
	}
	b.listeners = append(b.listeners, l)
	return l
}

// target returns the listener that the redirects of a host lead to, nil for none.
func (h *host) target(of map[hostKey]*listener) *listener {
	for _, r := range h.routes {
		if r.Target.RedirectTo != 0 {
			return of[hostKey{h.private, r.Target.RedirectTo, h.host}]
		}
	}
	return nil
}

// hasRoutes leaves out the redirects of a host that lead nowhere, because another object has the host there. It reports whether the host
// has routes left.
func (h *host) hasRoutes(of map[hostKey]*listener) bool {
	h.routes = slices.DeleteFunc(h.routes, func(r route.Route) bool {
		return r.Target.RedirectTo != 0 && of[hostKey{h.private, r.Target.RedirectTo, h.host}] == nil
	})
	return len(h.routes) > 0
}

// child makes the children of a listener, except the priority of its rule.
func (b *builder) child(l *listener) {
	properties := network.GatewayListener{
		Frontend: azure.Ref(b.live.FrontendID(l.private)), Port: b.port(l), Protocol: network.GatewayHTTP, HostNames: []string{},
	}
	properties.HostNames = append(properties.HostNames, l.hosts...)
	if l.tls != nil {
		properties.Protocol, properties.Certificate = network.GatewayHTTPS, b.certificate(l)
		if l.tls.Profile != "" {
			properties.SSLProfile = b.ref("sslProfiles", l.tls.Profile)
		}
	}
	if l.policy != "" {
		properties.FirewallPolicy = azure.Ref(l.policy)
	}
	g := &b.result.Gateway
	g.Listeners = append(g.Listeners, azure.Child[network.GatewayListener]{Name: l.name, Properties: properties})
	rule := b.rule(l)
	g.Rules = append(g.Rules, azure.Child[network.GatewayRule]{Name: l.ruleName(b.prefix), Properties: rule})
	for _, r := range l.routes {
		b.needs(l.name, r.Object)
		b.needs(l.ruleName(b.prefix), r.Object)
		b.result.Served[r.Object.Key()] = l.private
	}
}

func (l *listener) ruleName(prefix naming.Prefix) string {
	if l.stream {
		return prefix.Child("sr", l.parts...)
	}
	return prefix.Child("rr", l.parts...)
}

// port returns the frontend port of a listener: that of others, one that is taken over, or one of our own.
func (b *builder) port(l *listener) *azure.Reference {
	name, there := b.live.PortBesides(b.prefix.Has, l.port)
	if !there {
		name = b.prefix.Child("fp", fmt.Sprint(l.port))
	}
	if !there || b.live.Mine(name) {
		b.frontendPorts[name] = azure.Child[network.GatewayPort]{Name: name, Properties: network.GatewayPort{Port: l.port}}
	}
	b.needs(name, l.first)
	return b.ref("frontendPorts", name)
}

// certificate returns the certificate of a listener. A certificate of a Secret has its content in its name: a new content is a new child.
// One that the gateway has already is not sent again, and keeps its content.
func (b *builder) certificate(l *listener) *azure.Reference {
	c := l.tls.Certificate
	if c == nil {
		return b.ref("sslCertificates", l.tls.Installed)
	}
	name := b.prefix.Child("cert", c.Namespace, c.Secret, c.Hash)
	child := azure.Child[network.GatewayCertificate]{Name: name}
	if !live.Has(b.live.Properties.Certificates, name) {
		child.Properties = network.GatewayCertificate{Data: c.PFX.Reveal(), Password: c.Password.Reveal()}
	}
	b.certificates[name] = child
	b.needs(name, l.first)
	return b.ref("sslCertificates", name)
}

// rule returns the rule of a listener. It has a path map unless all requests go the same way.
func (b *builder) rule(l *listener) network.GatewayRule {
	rule := network.GatewayRule{RuleType: network.BasicRule, Listener: b.ref("httpListeners", l.name)}
	if l.decides() {
		return b.decide(l, rule)
	}
	rest, ok := l.rest()
	paths := slices.DeleteFunc(slices.Clone(l.routes), func(r route.Route) bool { return r.Path.Match >= route.All })
	var t target
	if ok {
		t = b.target(l, rest)
	} else {
		t = b.answer(l.first, route.NotFound)
	}
	if len(paths) == 0 {
		rule.Pool, rule.Settings, rule.Redirect, rule.RewriteSet = t.pool, t.settings, t.redirect, t.rewrite
		return rule
	}
	name := b.prefix.Child("url", l.parts...)
	g := &b.result.Gateway
	g.PathMaps = append(g.PathMaps, azure.Child[network.GatewayPathMap]{Name: name, Properties: network.GatewayPathMap{
		DefaultPool: t.pool, DefaultSettings: t.settings, DefaultRedirect: t.redirect, DefaultRewriteSet: t.rewrite,
		PathRules: b.pathRules(l, paths, name),
	}})
	rule.RuleType, rule.PathMap = network.PathRule, b.ref("urlPathMaps", name)
	return rule
}

// rest returns the route of all paths without a route of their own.
func (h *host) rest() (route.Route, bool) {
	for _, match := range []route.Match{route.All, route.Fallback} {
		if i := slices.IndexFunc(h.routes, func(r route.Route) bool { return r.Path.Match == match }); i >= 0 {
			return h.routes[i], true
		}
	}
	return route.Route{}, false
}

// pathRules returns the path rules of a listener in the order in which they match. The newest objects lose if there are too many.
func (b *builder) pathRules(l *listener, paths []route.Route, inMap string) []azure.Child[network.GatewayPathRule] {
	slices.SortStableFunc(paths, func(x, y route.Route) int { return route.Compare(x.Object, y.Object) })
	if len(paths) > limit.PathRules {
		for _, r := range paths[limit.PathRules:] {
			b.result.Problems = append(b.result.Problems, plan.Problem{
				Object: r.Object.Key(), Reason: limit.Reason, Warning: true,
				Message: fmt.Sprintf("path %q of %s is not served: a URL path map can have %d path rules, and older ones have taken them",
					r.Path.Literal, l.hostKey, limit.PathRules),
			})
		}
		paths = paths[:limit.PathRules]
	}
	slices.SortStableFunc(paths, func(x, y route.Route) int { return route.ComparePaths(x.Path, y.Path) })
	rules := make([]azure.Child[network.GatewayPathRule], len(paths))
	for i, r := range paths {
		t := b.target(l, r)
		const longest = 80
		name := naming.Local(longest, "pr", r.Object.Namespace, r.Object.Name, fmt.Sprint(int(r.Path.Match)), r.Path.Literal)
		rules[i] = azure.Child[network.GatewayPathRule]{Name: name, Properties: t.pathRule(r.Path.Patterns(), r.FirewallPolicy)}
		b.needs(name, r.Object)
		b.needs(inMap, r.Object)
	}
	return rules
}
