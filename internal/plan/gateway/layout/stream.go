package layout

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan/gateway/live"
	"kaz/internal/plan/gateway/route"
)

// portKey is a port of an address. All its listeners have one protocol.
type portKey struct {
	private bool
	port    int32
}

// otherProtocol reports whether the port of a site has listeners with another protocol, and notes that the site is not served. It looks at
// ports with streams alone: those of HTTP and HTTPS are told apart by host.
func (b *builder) otherProtocol(s route.Site, others []live.Listener) bool {
	i := slices.IndexFunc(others, func(l live.Listener) bool {
		return !strings.EqualFold(l.Protocol, s.Protocol()) && (s.Stream || isStream(l.Protocol))
	})
	if i >= 0 {
		b.refuse(s.Object, "port %d has the listener %s with the protocol %s already, which does not belong to this cluster; it stays",
			s.Port, others[i].Name, strings.ToUpper(others[i].Protocol))
		return true
	}
	first := b.ports[portKey{s.Private, s.Port}]
	if first == nil || first.protocol() == s.Protocol() || !s.Stream && !first.stream {
		return false
	}
	b.refuse(s.Object, "port %d has the protocol %s by %s, which is older; that of this object is %s", s.Port,
		strings.ToUpper(first.protocol()), first.first.Key(), strings.ToUpper(s.Protocol()))
	return true
}

// refuse notes that an object is not served because of a conflict.
func (b *builder) refuse(o route.Object, format string, args ...any) {
	b.conflict(o, format, args...)
	b.result.Problems[len(b.result.Problems)-1].Warning = false
}

func isStream(protocol string) bool {
	return strings.EqualFold(protocol, network.GatewayTCP) || strings.EqualFold(protocol, network.GatewayTLS)
}

func (h *host) protocol() string { return route.Site{Stream: h.stream, TLS: h.tls}.Protocol() }

// streamChild makes the children of a listener of TCP or TLS, except the priority of its rule.
func (b *builder) streamChild(l *listener) {
	properties := network.GatewayStreamListener{
		Frontend: azure.Ref(b.live.FrontendID(l.private)), Port: b.port(l), Protocol: l.protocol(),
		HostNames: append([]string{}, l.hosts...),
	}
	if l.tls != nil {
		properties.Certificate = b.certificate(l)
	}
	r := l.routes[0]
	t := b.streamTarget(r)
	g, rule := &b.result.Gateway, l.ruleName(b.prefix)
	g.StreamListeners = append(g.StreamListeners, azure.Child[network.GatewayStreamListener]{Name: l.name, Properties: properties})
	g.StreamRules = append(g.StreamRules, azure.Child[network.GatewayStreamRule]{Name: rule, Properties: network.GatewayStreamRule{
		RuleType: network.BasicRule, Listener: b.ref("listeners", l.name), Pool: t.pool, Settings: t.settings,
	}})
	b.needs(l.name, r.Object)
	b.needs(rule, r.Object)
	b.result.Served[r.Object.Key()] = l.private
}

// streamTarget returns where a route sends connections, and makes the children for it. Without a backend, connections are closed.
func (b *builder) streamTarget(r route.Route) target {
	if back := r.Target.Backend; back != nil {
		return target{pool: b.pool(r.Object, back), settings: b.streamSetting(r.Object, back)}
	}
	name := b.prefix.Child("ss", "nowhere")
	b.streams[name] = azure.Child[network.GatewayStreamSettings]{Name: name, Properties: network.GatewayStreamSettings{
		Port: plainPort, Protocol: network.GatewayTCP, Timeout: defaultTimeout, TrustedRoots: []azure.Reference{},
	}}
	b.needs(name, r.Object)
	return target{pool: b.nowherePool(), settings: b.ref("backendSettingsCollection", name)}
}

// streamSetting returns the backend settings of an object for connections to a port of a Service, with their probe.
func (b *builder) streamSetting(o route.Object, back *route.Backend) *azure.Reference {
	parts := []string{o.Kind, o.Namespace, o.Name, back.Namespace, back.Service, back.Port}
	name, probe := b.prefix.Child("ss", parts...), b.prefix.Child("pb", parts...)
	properties := network.GatewayStreamSettings{
		Port: back.Settings.Port, Protocol: back.Settings.Protocol, Timeout: back.Settings.RequestTimeout,
		HostName: back.Settings.ServerName, Probe: b.ref("probes", probe), TrustedRoots: []azure.Reference{},
	}
	for _, root := range back.Authorities {
		properties.TrustedRoots = append(properties.TrustedRoots, *b.authority(o, root))
	}
	b.streams[name] = azure.Child[network.GatewayStreamSettings]{Name: name, Properties: properties}
	b.probes[probe] = azure.Child[network.GatewayProbe]{Name: probe, Properties: back.Probe}
	b.needs(name, o)
	b.needs(probe, o)
	return b.ref("backendSettingsCollection", name)
}
