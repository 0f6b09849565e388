package gatewayapi

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/plan/gateway/route"
)

// is reports whether a parent has a kind of the Gateway API.
func is(p gatewayv1.ParentReference, kind gatewayv1.Kind) bool {
	return value(p.Group, gatewayv1.GroupName) == gatewayv1.GroupName && value(p.Kind, KindGateway) == kind
}

// parent is a Gateway or a ListenerSet with its listeners.
type parent struct {
	*gateway
	name      string // with its kind
	listeners []*listener
	refused   problem // why it has none
}

// parentOf finds a parent of a route at this application gateway.
func (r *reader) parentOf(h Route, p gatewayv1.ParentReference) (parent, bool) {
	key := string(value(p.Namespace, gatewayv1.Namespace(h.GetNamespace()))) + "/" + string(p.Name)
	for _, g := range r.gateways {
		if is(p, KindGateway) && KeyOf(g.Gateway) == key {
			return parent{g, KindGateway + " " + key, g.listeners, problem{}}, true
		}
	}
	for _, s := range r.sets {
		if is(p, KindSet) && KeyOf(s.ListenerSet) == key {
			return parent{s.parent, KindSet + " " + key, s.listeners, s.refused}, true
		}
	}
	return parent{}, false
}

// route reads a route: for each of its parents at this application gateway the sites and the status.
func (r *reader) route(h Route) {
	refs, _ := ParentsOf(h)
	for _, p := range refs {
		at, ok := r.parentOf(h, p)
		if !ok {
			continue
		}
		rules := r.rulesOf(h)
		accepted := r.attach(h, p, at, &rules)
		for _, policy := range rules.policies {
			r.note(policy, at.gateway)
		}
		if !accepted.is() && rules.refused.is() && len(rules.made) == 0 {
			accepted = rules.refused
		}
		key := RouteKey(h)
		r.result.Routes[key] = append(r.result.Routes[key], rules.status(h, p, accepted))
	}
}

// rulesOf reads the rules of a route.
func (r *reader) rulesOf(h Route) ruleSet {
	if http, is := h.(*gatewayv1.HTTPRoute); is {
		return r.rules(http)
	}
	return r.streamRules(h)
}

// status is the status of a route for one parent.
func (s ruleSet) status(h Route, p gatewayv1.ParentReference, accepted problem) gatewayv1.RouteParentStatus {
	generation := h.GetGeneration()
	status := gatewayv1.RouteParentStatus{ParentRef: p, ControllerName: Controller, Conditions: []metav1.Condition{
		condition(gatewayv1.RouteConditionAccepted, generation, gatewayv1.RouteReasonAccepted, "", accepted),
		condition(gatewayv1.RouteConditionResolvedRefs, generation, gatewayv1.RouteReasonResolvedRefs, "", s.unresolved),
	}}
	if dropped := cmp.Or(s.refused, s.taken); dropped.is() && len(s.made) > 0 {
		status.Conditions = append(status.Conditions, condition(gatewayv1.RouteConditionPartiallyInvalid, generation,
			dropped.reason, "Dropped Rule: "+dropped.message, problem{}))
	}
	return status
}

// attach attaches a route to the listeners of a parent, and says why there is none.
func (r *reader) attach(h Route, p gatewayv1.ParentReference, at parent, rules *ruleSet) problem {
	why := because(gatewayv1.RouteReasonNoMatchingParent, "%s has no listener with name %q and port %d", at.name,
		value(p.SectionName, ""), value(p.Port, 0))
	if at.refused.is() {
		return because(gatewayv1.RouteReasonNoMatchingParent, "%s is not accepted: %s", at.name, at.refused.message)
	}
	attached := false
	for _, l := range at.listeners {
		if p.SectionName != nil && *p.SectionName != l.Name || p.Port != nil && *p.Port != l.Port {
			continue
		}
		if !r.allows(l, RouteKind(h), h.GetNamespace()) {
			if !attached && why.reason == string(gatewayv1.RouteReasonNoMatchingParent) {
				why = because(gatewayv1.RouteReasonNotAllowedByListeners, "listener %s takes no %s of namespace %s", l.Name,
					RouteKind(h), h.GetNamespace())
			}
			continue
		}
		hosts, ok := intersect(l.host(), HostnamesOf(h))
		if !ok {
			why = because(gatewayv1.RouteReasonNoMatchingListenerHostname, "no hostname of the route is one of listener %s, %q",
				l.Name, l.host())
			continue
		}
		attached = true
		l.attached[RouteKey(h)] = true
		if l.serves() && !at.address.is() {
			r.result.Sites = append(r.result.Sites, rules.at(h, at.gateway, l, hosts)...)
		}
	}
	if attached {
		return problem{}
	}
	return why
}

// intersect returns the hosts that a listener and a route have both, and false if there are none. No hosts at all are any host.
func intersect(listener string, hostnames []gatewayv1.Hostname) ([]string, bool) {
	listener = strings.ToLower(listener)
	if len(hostnames) == 0 {
		if listener == "" {
			return nil, true
		}
		return []string{listener}, true
	}
	var hosts []string
	for _, name := range hostnames {
		host := strings.ToLower(string(name))
		switch {
		case listener == "" || listener == host || within(host, listener):
		case within(listener, host):
			host = listener
		default:
			continue
		}
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts, len(hosts) > 0
}

// within reports whether all that a host stands for is within a wildcard.
func within(host, wildcard string) bool {
	suffix, wild := strings.CutPrefix(wildcard, "*")
	return wild && strings.HasSuffix(strings.TrimPrefix(host, "*"), suffix) && len(host) > len(suffix)
}

// at returns the sites of a route at a listener.
func (s *ruleSet) at(h Route, g *gateway, l *listener, hosts []string) []route.Site {
	if http, is := h.(*gatewayv1.HTTPRoute); is {
		return s.sites(http, g, l, hosts)
	}
	return s.streamSites(h, g, l, hosts)
}

// sites returns the sites of an HTTPRoute at a listener. A redirect to the host that the client asked for names it, so that each host has a
// site.
func (s ruleSet) sites(h *gatewayv1.HTTPRoute, g *gateway, l *listener, hosts []string) []route.Site {
	site := route.Site{Object: objectOf(h), Port: l.Port, Private: g.private, Hosts: hosts, TLS: l.tls}
	if !slices.ContainsFunc(s.made, func(m made) bool { return m.redirect != nil && m.redirect.host == "" }) {
		site.Routes = s.routes("", l)
		return []route.Site{site}
	}
	var all []route.Site
	for _, host := range hosts {
		one := site
		one.Hosts, one.Routes = []string{host}, s.routes(host, l)
		all = append(all, one)
	}
	if len(hosts) == 0 {
		site.Routes = s.routes("", l)
		all = append(all, site)
	}
	return all
}

// routes returns the routes of a host. Redirects to it are left out where it is not known.
func (s ruleSet) routes(host string, l *listener) []route.Route {
	var all []route.Route
	for _, m := range s.made {
		made := m.Route
		if m.redirect != nil {
			url, ok := m.redirect.url(host, l)
			if !ok {
				continue
			}
			made.Target.Redirect = &route.Redirect{Type: m.redirect.kind, URL: url, KeepsPath: m.redirect.path == ""}
		}
		all = append(all, made)
	}
	return all
}
