// Package layout makes the children of an application gateway that serve sites: listeners, rules, path maps, pools, settings, probes,
// redirects, certificates and rewrite sets. Layer L1: the same sites give the same children, in the same order.
package layout

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/gateway/live"
	"kaz/internal/plan/gateway/naming"
	"kaz/internal/plan/gateway/route"
)

// ReasonConflict is the reason of problems with something that another object has already.
const ReasonConflict = "Conflict"

// Result is the children of a cluster's objects.
type Result struct {
	Gateway network.ApplicationGateway
	// Objects are the keys of the objects that need a child, by the child's name in lower case.
	Objects map[string][]string
	// Served are the keys of the objects with a listener, and whether that is at the private address.
	Served   map[string]bool
	Problems []plan.Problem
}

// IsEmpty reports whether there are no children.
func (r Result) IsEmpty() bool { return len(r.Gateway.Listeners)+len(r.Gateway.StreamListeners) == 0 }

// Build returns the children that serve sites. The sites are in the order of their objects: of two that conflict, the first one wins.
// answers is what answers requests that get a status code at once, nil if there is nothing that does.
func Build(sites []route.Site, g live.Gateway, prefix naming.Prefix, answers *route.Backend) Result {
	b := builder{
		live: g, prefix: prefix, answers: answers, hosts: map[hostKey]*host{}, ports: map[portKey]*host{}, parts: newParts(),
		others: map[portKey][]live.Listener{},
		result: Result{Objects: map[string][]string{}, Served: map[string]bool{}},
	}
	for i, s := range sites {
		b.place(i, s)
	}
	b.group()
	for _, l := range b.listeners {
		if l.stream {
			b.streamChild(l)
		} else {
			b.child(l)
		}
	}
	b.prioritize()
	if len(b.listeners) == 0 && g.OnlyMine() {
		b.placeholder()
	}
	b.finish()
	return b.result
}

// hostKey is a host at a port of an address; "" is any host.
type hostKey struct {
	private bool
	port    int32
	host    string
}

// host is what is asked for at a host.
type host struct {
	hostKey
	tls      *route.TLS
	stream   bool
	policy   azure.ID
	priority int32
	first    route.Object
	by       []int // sites
	routes   []route.Route
}

// builder builds the children.
type builder struct {
	live      live.Gateway
	prefix    naming.Prefix
	answers   *route.Backend
	order     []hostKey // in the order in which they are placed
	hosts     map[hostKey]*host
	ports     map[portKey]*host           // the first host of each port, which decides about the protocol
	others    map[portKey][]live.Listener // see foreign
	listeners []*listener
	of        map[hostKey]*listener

	parts
	result Result
}

// parts are children by their names.
type parts struct {
	pools         map[string]azure.Child[network.GatewayPool]
	settings      map[string]azure.Child[network.GatewaySettings]
	probes        map[string]azure.Child[network.GatewayProbe]
	frontendPorts map[string]azure.Child[network.GatewayPort]
	certificates  map[string]azure.Child[network.GatewayCertificate]
	redirects     map[string]azure.Child[network.GatewayRedirect]
	rewrites      map[string]azure.Child[network.GatewayRewriteSet]
	distributions map[string]azure.Child[network.GatewayDistribution]
	roots         map[string]azure.Child[network.GatewayTrustedRoot]
	streams       map[string]azure.Child[network.GatewayStreamSettings]
}

func newParts() parts {
	return parts{
		pools: map[string]azure.Child[network.GatewayPool]{}, settings: map[string]azure.Child[network.GatewaySettings]{},
		probes: map[string]azure.Child[network.GatewayProbe]{}, frontendPorts: map[string]azure.Child[network.GatewayPort]{},
		certificates: map[string]azure.Child[network.GatewayCertificate]{}, redirects: map[string]azure.Child[network.GatewayRedirect]{},
		rewrites: map[string]azure.Child[network.GatewayRewriteSet]{}, streams: map[string]azure.Child[network.GatewayStreamSettings]{},
		distributions: map[string]azure.Child[network.GatewayDistribution]{}, roots: map[string]azure.Child[network.GatewayTrustedRoot]{},
	}
}

// trial is a builder for a listener: its children may be too many.
func (b *builder) trial() *builder {
	t := *b
	t.parts = newParts()
	t.result = Result{Objects: map[string][]string{}, Served: map[string]bool{}}
	return &t
}

// take takes over what a trial has made.
func (b *builder) take(t *builder) {
	maps.Copy(b.pools, t.pools)
	maps.Copy(b.settings, t.settings)
	maps.Copy(b.probes, t.probes)
	maps.Copy(b.redirects, t.redirects)
	maps.Copy(b.rewrites, t.rewrites)
	maps.Copy(b.distributions, t.distributions)
	maps.Copy(b.roots, t.roots)
	b.result.Problems = append(b.result.Problems, t.result.Problems...)
	for name, objects := range t.result.Objects {
		for _, o := range objects {
			if !slices.Contains(b.result.Objects[name], o) {
				b.result.Objects[name] = append(b.result.Objects[name], o)
			}
		}
	}
}

func (b *builder) conflict(o route.Object, format string, args ...any) {
	b.result.Problems = append(b.result.Problems,
		plan.Problem{Object: o.Key(), Reason: ReasonConflict, Message: fmt.Sprintf(format, args...), Warning: true})
}

// place adds a site to its hosts.
func (b *builder) place(index int, s route.Site) {
	names := s.Hosts
	if len(names) == 0 {
		names = []string{""}
	}
	others := b.foreign(s.Private, s.Port)
	if b.otherProtocol(s, others) {
		return
	}
	taken := 0
	for _, name := range names {
		key := hostKey{s.Private, s.Port, name}
		h, known := b.hosts[key]
		if !known {
			i := slices.IndexFunc(others, func(l live.Listener) bool { return slices.Contains(l.Hosts, name) })
			if i >= 0 {
				b.conflict(s.Object, "%s has the listener %s already, which does not belong to this cluster; it stays", key, others[i].Name)
				if taken++; taken == len(names) { // nothing of the site is served
					b.result.Problems[len(b.result.Problems)-1].Warning = false
				}
				continue
			}
			h = &host{hostKey: key, tls: s.TLS, stream: s.Stream, first: s.Object}
			b.hosts[key] = h
			b.order = append(b.order, key)
			if at := (portKey{s.Private, s.Port}); b.ports[at] == nil {
				b.ports[at] = h
			}
		}
		if !b.agree(h, s) {
			continue
		}
		h.policy, h.priority = cmp.Or(h.policy, s.FirewallPolicy), cmp.Or(h.priority, s.Priority)
		h.by = append(h.by, index)
		b.addRoutes(h, s)
	}
}

// foreign returns the listeners of others at a port.
func (b *builder) foreign(private bool, port int32) []live.Listener {
	at := portKey{private, port}
	all, known := b.others[at]
	if !known {
		all = b.live.ForeignListeners(b.live.FrontendID(private), port)
		b.others[at] = all
	}
	return all
}

func (k hostKey) String() string {
	where := "any host"
	if k.host != "" {
		where = "host " + k.host
	}
	return fmt.Sprintf("%s at port %d", where, k.port)
}

// agree reports whether a site can join a host, and notes what of the site does not count.
func (b *builder) agree(h *host, s route.Site) bool {
	switch {
	case (h.tls == nil) != (s.TLS == nil):
		b.conflict(s.Object, "%s is HTTPS for one object and HTTP for the other; that of %s, which is older, counts", h.hostKey,
			h.first.Key())
		return false
	case h.tls != nil && (certificateOf(h.tls) != certificateOf(s.TLS) || h.tls.Profile != s.TLS.Profile):
		b.conflict(s.Object, "%s has another certificate or SSL profile by %s, which is older and counts", h.hostKey, h.first.Key())
	}
	return true
}

func certificateOf(t *route.TLS) string {
	if t.Certificate != nil {
		return t.Certificate.Hash
	}
	return "installed " + strings.ToLower(t.Installed)
}

// addRoutes adds the routes of a site to a host. Of two routes for the same path the first one counts.
func (b *builder) addRoutes(h *host, s route.Site) {
	for _, r := range s.Routes {
		i := slices.IndexFunc(h.routes, func(x route.Route) bool { return route.SameRequests(x, r) })
		if i < 0 {
			h.routes = append(h.routes, r)
			continue
		}
		if h.stream && h.routes[i].Object != r.Object {
			b.conflict(r.Object, "%s leads to another backend by %s, which is older and counts", h.hostKey, h.routes[i].Object.Key())
		}
		if other := h.routes[i]; !h.stream && !sameTarget(other, r) && r.Path.Match != route.Fallback && other.Object != r.Object {
			b.conflict(r.Object, "path %q of %s leads to another backend by %s, which is older or has it first, and counts",
				cmp.Or(r.Path.Literal, "/"), h.hostKey, other.Object.Key())
		}
	}
}

func sameTarget(a, b route.Route) bool {
	x, y := a.Target.Backend, b.Target.Backend
	if x == nil || y == nil {
		return reflect.DeepEqual(a.Target, b.Target)
	}
	return x.Namespace == y.Namespace && x.Service == y.Service && x.Port == y.Port
}

// ref is a reference to a child of the gateway.
func (b *builder) ref(list, name string) *azure.Reference {
	return azure.Ref(b.live.ID.Child(list, name))
}

// needs notes that an object needs a child.
func (b *builder) needs(name string, o route.Object) {
	key := strings.ToLower(name)
	if !slices.Contains(b.result.Objects[key], o.Key()) {
		b.result.Objects[key] = append(b.result.Objects[key], o.Key())
	}
}

// finish writes the lists in the order of their names. A list without elements is empty and not nil: the cluster has none of them.
func (b *builder) finish() {
	g := &b.result.Gateway
	g.Pools, g.Settings, g.Probes = sorted(b.pools), sorted(b.settings), sorted(b.probes)
	g.Ports, g.Certificates, g.Redirects, g.RewriteSets = sorted(b.frontendPorts), sorted(b.certificates), sorted(b.redirects),
		sorted(b.rewrites)
	g.StreamListeners, g.StreamSettings, g.StreamRules = inOrder(g.StreamListeners), sorted(b.streams), inOrder(g.StreamRules)
	g.Distributions, g.TrustedRoots = sorted(b.distributions), sorted(b.roots)
	g.Listeners, g.PathMaps, g.Rules = inOrder(g.Listeners), inOrder(g.PathMaps), inOrder(g.Rules)
}

func sorted[P any](all map[string]azure.Child[P]) []azure.Child[P] {
	list := make([]azure.Child[P], 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[name])
	}
	return list
}

func inOrder[P any](list []azure.Child[P]) []azure.Child[P] {
	if list == nil {
		return []azure.Child[P]{}
	}
	slices.SortFunc(list, func(x, y azure.Child[P]) int { return strings.Compare(x.Name, y.Name) })
	return list
}
