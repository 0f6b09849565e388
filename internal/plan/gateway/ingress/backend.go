package ingress

import (
	"cmp"
	"fmt"
	"strings"

	networking "k8s.io/api/networking/v1"

	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/plan/gateway/live"
	"kaz/internal/plan/gateway/naming"
	"kaz/internal/plan/gateway/route"
)

// backend returns the backend of a path. All paths of the Ingress to one port of a Service share a backend, and the first one gives the
// host and the path of its probe.
func (r *reader) backend(host, path string, to networking.IngressServiceBackend) *route.Backend {
	p := r.Objects.Port(r.ingress.Namespace, to.Name, to.Port)
	name := fmt.Sprint(p.Port)
	if p.Missing != nil {
		name = cmp.Or(to.Port.Name, name)
	}
	shared := to.Name + ":" + name
	if known, ok := r.backends[shared]; ok {
		return known
	}
	switch {
	case p.NoService:
		r.warn(ReasonService, "%v; its paths get the answer 502", p.Missing)
	case p.Missing != nil:
		r.warn(ReasonPort, "%v; its paths get the answer 502", p.Missing)
	case p.Left > 0:
		r.warn(ReasonPool, "service %s/%s has %d ready endpoints more than the %d that a backend pool can have",
			p.Namespace, p.Service, p.Left, len(p.Pool.Addresses))
	case len(p.Pool.Addresses) == 0:
		r.warn(ReasonEndpoints, "service %s/%s has no ready endpoint; its paths get the answer 502 until it has one",
			p.Namespace, p.Service)
	}
	b := &route.Backend{Namespace: p.Namespace, Service: p.Service, Port: name, Pool: p.Pool, Settings: r.settings(p)}
	if b.Settings.Protocol == network.GatewayHTTPS {
		b.Roots = r.roots()
		b.Settings.PickHostName = len(b.Roots) > 0 && b.Settings.HostName == ""
	}
	b.Probe = r.probe(p, b.Settings, host, path)
	r.backends[shared] = b
	return b
}

func (r *reader) settings(p cluster.Port) network.GatewaySettings {
	s := network.GatewaySettings{
		Port: p.Target, Protocol: network.GatewayHTTP, CookieBasedAffinity: network.SwitchedOff,
		RequestTimeout: value(r, key.RequestTimeout),
		Path:           value(r, key.BackendPath), HostName: value(r, key.BackendHost),
	}
	const https = "https"
	if asked := value(r, key.BackendProtocol); asked == https || asked == "" && p.Port == httpsPort {
		s.Protocol = network.GatewayHTTPS
	}
	if value(r, key.Affinity) {
		s.CookieBasedAffinity = network.SwitchedOn
		if value(r, key.AffinityOwnName) {
			s.AffinityCookieName = "appgw-affinity-" + naming.Content([]byte(p.Namespace), []byte(p.Service))
		}
	}
	if value(r, key.Draining) {
		s.Draining = &network.GatewayDraining{Enabled: true, Timeout: value(r, key.DrainingTimeout)}
	}
	return s
}

// roots returns the trusted root certificates. The Ingress is dropped if the gateway lacks one.
func (r *reader) roots() []string {
	roots := value(r, key.BackendRoots)
	for _, root := range roots {
		if !live.Has(r.Gateway.Properties.TrustedRoots, root) {
			r.drop(ReasonRoot, "%s: the application gateway has no trusted root certificate %q", key.BackendRoots.Name, root)
		}
	}
	return roots
}

// probe returns the health probe: that of the pods with what annotations change.
func (r *reader) probe(p cluster.Port, s network.GatewaySettings, host, path string) network.GatewayProbe {
	b := cluster.Healthy(s.Protocol)
	b.Host, b.Path = cmp.Or(s.HostName, plainHost(host), b.Host), cmp.Or(s.Path, path, b.Path)
	if !p.Like(&b) && value(r, key.GateProbePath) == "" {
		r.warn(ReasonProbe, "the pods of service %s/%s have a probe that is no httpGet, so the gateway asks for / and wants 200-399; "+
			"set %s and %s if another answer is healthy", p.Namespace, p.Service, key.GateProbePath.Name, key.GateProbeCodes.Name)
	}
	b.Host = cmp.Or(value(r, key.GateProbeHost), b.Host)
	b.Path = cmp.Or(strings.TrimRight(value(r, key.GateProbePath), "*"), strings.TrimRight(b.Path, "*"), "/")
	b.Port = cmp.Or(value(r, key.GateProbePort), b.Port)
	b.Interval = cmp.Or(value(r, key.GateProbeInterval), b.Interval)
	b.Timeout = min(cmp.Or(value(r, key.GateProbeTimeout), b.Timeout), b.Interval)
	b.UnhealthyThreshold = cmp.Or(value(r, key.GateProbeThreshold), b.UnhealthyThreshold)
	if codes := value(r, key.GateProbeCodes); len(codes) > 0 {
		b.Match.StatusCodes = codes
	}
	if s.PickHostName && value(r, key.GateProbeHost) == "" {
		b.Host, b.PickHostName = "", true
	}
	return b
}

// plainHost is a host that a probe can send, "" for a wildcard.
func plainHost(host string) string {
	if strings.ContainsAny(host, "*?") {
		return ""
	}
	return host
}
