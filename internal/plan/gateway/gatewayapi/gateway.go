package gatewayapi

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/azure"
	"kaz/internal/plan/gateway/route"
)

// gateway is a Gateway at the application gateway.
type gateway struct {
	*gatewayv1.Gateway
	private   bool
	address   problem
	listeners []*listener
}

// listener is a listener of a Gateway or a ListenerSet.
type listener struct {
	gatewayv1.Listener
	namespace                    string // of that object
	tls                          *route.TLS
	kinds                        []gatewayv1.RouteGroupKind
	accepted, conflict, resolved problem
	attached                     map[string]bool  // routes by kind/namespace/name
	streams                      map[string]Route // that get the connections, by their hosts
}

// serves reports whether routes get requests by the listener.
func (l *listener) serves() bool {
	return !l.accepted.is() && !l.conflict.is() && (l.tls != nil || !isSecure(l.Protocol))
}

func isSecure(p gatewayv1.ProtocolType) bool {
	return p == gatewayv1.HTTPSProtocolType || p == gatewayv1.TLSProtocolType
}

// host returns the hostname of the listener, "" for any. Connections of TCP have none.
func (l *listener) host() string { return string(hostOf(l.Listener)) }

func hostOf(l gatewayv1.Listener) gatewayv1.Hostname {
	if l.Protocol == gatewayv1.TCPProtocolType {
		return ""
	}
	return value(l.Hostname, "")
}

// modeOf returns the TLS mode of a listener.
func modeOf(l gatewayv1.Listener) gatewayv1.TLSModeType {
	if l.TLS == nil {
		return gatewayv1.TLSModeTerminate
	}
	return value(l.TLS.Mode, gatewayv1.TLSModeTerminate)
}

// gateway reads a Gateway.
func (r *reader) gateway(g *gatewayv1.Gateway) *gateway {
	made := &gateway{Gateway: g}
	made.private, made.address = r.side(g)
	for _, l := range g.Spec.Listeners {
		read := r.listener(KindGateway, g.Namespace, l)
		for _, other := range made.listeners {
			if clash(other.Listener, l) {
				read.conflict, read.accepted = has(other.Listener), problem{} // the conflict says more
				other.conflict, other.accepted = cmp.Or(other.conflict, has(l)), problem{}
			}
		}
		made.listeners = append(made.listeners, read)
	}
	return made
}

// clash reports whether two listeners want a port with different protocols. Those of a protocol that is not served do not count.
func clash(a, b gatewayv1.Listener) bool {
	return a.Port == b.Port && routeKinds[a.Protocol] != "" && routeKinds[b.Protocol] != "" &&
		(a.Protocol != b.Protocol || modeOf(a) != modeOf(b))
}

// has says that a listener has its port.
func has(l gatewayv1.Listener) problem {
	protocol := string(l.Protocol)
	if modeOf(l) != gatewayv1.TLSModeTerminate {
		protocol += " and tls.mode " + string(modeOf(l))
	}
	return because(gatewayv1.ListenerReasonProtocolConflict, "listener %s has port %d with protocol %s", l.Name, l.Port, protocol)
}

// listener reads a listener of an object of a kind in a namespace.
func (r *reader) listener(kind, namespace string, l gatewayv1.Listener) *listener {
	read := &listener{Listener: l, namespace: namespace, attached: map[string]bool{}, streams: map[string]Route{}}
	read.kinds, read.resolved = kindsOf(l)
	switch {
	case routeKinds[l.Protocol] == "":
		read.accepted = because(gatewayv1.ListenerReasonUnsupportedProtocol,
			"protocol is %s; an application gateway has HTTP, HTTPS, TCP and TLS", l.Protocol)
	case l.Protocol == gatewayv1.TLSProtocolType && modeOf(l) != gatewayv1.TLSModeTerminate:
		read.accepted = because(gatewayv1.ListenerReasonUnsupportedValue,
			"tls.mode is %s; an application gateway ends TLS itself: want Terminate", modeOf(l))
	case isSecure(l.Protocol):
		var p problem
		if read.tls, p = r.certificate(kind, namespace, l); p.is() {
			read.resolved = p
		}
	}
	return read
}

// side says at which address of the application gateway a Gateway is.
func (r *reader) side(g *gatewayv1.Gateway) (private bool, p problem) {
	_, public := r.Gateway.Frontend(false)
	for i, a := range g.Spec.Addresses {
		if value(a.Type, gatewayv1.IPAddressType) != gatewayv1.IPAddressType {
			return !public, because(gatewayv1.GatewayReasonUnsupportedAddress,
				"spec.addresses[%d].type is %s; allowed is IPAddress", i, value(a.Type, ""))
		}
		switch a.Value {
		case r.Private:
			return true, problem{}
		case r.Public, "":
		default:
			return !public, because(gatewayv1.GatewayReasonAddressNotUsable,
				"spec.addresses[%d].value is %s; the application gateway %s has %s", i, a.Value, r.Gateway.ID.Name(),
				cmp.Or(r.Public, r.Private))
		}
	}
	return !public, problem{}
}

// kindsOf returns the kinds of routes that a listener takes.
func kindsOf(l gatewayv1.Listener) ([]gatewayv1.RouteGroupKind, problem) {
	group := gatewayv1.Group(gatewayv1.GroupName)
	usual := gatewayv1.RouteGroupKind{Group: &group, Kind: routeKinds[l.Protocol]}
	if usual.Kind == "" {
		return []gatewayv1.RouteGroupKind{}, problem{}
	}
	if l.AllowedRoutes == nil || len(l.AllowedRoutes.Kinds) == 0 {
		return []gatewayv1.RouteGroupKind{usual}, problem{}
	}
	kinds := []gatewayv1.RouteGroupKind{}
	var p problem
	for _, k := range l.AllowedRoutes.Kinds {
		if value(k.Group, group) == group && k.Kind == usual.Kind {
			kinds = append(kinds, usual)
		} else {
			p = because(gatewayv1.ListenerReasonInvalidRouteKinds, "allowedRoutes.kinds has %s; an application gateway has %s for %s",
				k.Kind, usual.Kind, l.Protocol)
		}
	}
	return kinds, p
}

// allows reports whether a listener takes routes of a kind and a namespace.
func (r *reader) allows(l *listener, kind, namespace string) bool {
	if !slices.ContainsFunc(l.kinds, func(k gatewayv1.RouteGroupKind) bool { return string(k.Kind) == kind }) {
		return false
	}
	from, selector := gatewayv1.NamespacesFromSame, (*metav1.LabelSelector)(nil)
	if l.AllowedRoutes != nil && l.AllowedRoutes.Namespaces != nil {
		from, selector = value(l.AllowedRoutes.Namespaces.From, from), l.AllowedRoutes.Namespaces.Selector
	}
	switch from {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSelector:
		return r.selects(selector, namespace)
	case gatewayv1.NamespacesFromSame:
		return namespace == l.namespace
	default:
		return false
	}
}

// status returns the status of a Gateway, with all routes that are attached. Programmed is what is true when the document is written.
func (r *reader) status(g *gateway) gatewayv1.GatewayStatus {
	invalid := problem{}
	good := 0
	var s gatewayv1.GatewayStatus
	for _, l := range g.listeners {
		s.Listeners = append(s.Listeners, l.status(g.Generation))
		if l.serves() {
			good++
		} else if !invalid.is() {
			invalid = because(gatewayv1.GatewayReasonListenersNotValid, "listener %s: %s", l.Name,
				cmp.Or(l.accepted.message, l.conflict.message, l.resolved.message))
		}
	}
	accepted := condition(gatewayv1.GatewayConditionAccepted, g.Generation, gatewayv1.GatewayReasonAccepted, "", g.address)
	switch {
	case g.address.reason == string(gatewayv1.GatewayReasonAddressNotUsable):
		accepted.Status, accepted.Reason, accepted.Message = metav1.ConditionTrue, string(gatewayv1.GatewayReasonAccepted), ""
	case g.address.is():
	case invalid.is() && good == 0:
		accepted = condition(gatewayv1.GatewayConditionAccepted, g.Generation, gatewayv1.GatewayReasonAccepted, "", invalid)
	case invalid.is():
		accepted.Reason, accepted.Message = invalid.reason, invalid.message
	}
	programmed := problem{}
	switch {
	case g.address.is():
		programmed = because(gatewayv1.GatewayReasonAddressNotUsable, "%s", g.address.message)
	case good == 0:
		programmed = because(gatewayv1.GatewayReasonInvalid, "no listener can be served")
	}
	s.Conditions = []metav1.Condition{accepted, condition(gatewayv1.GatewayConditionProgrammed, g.Generation,
		gatewayv1.GatewayReasonProgrammed, "The application gateway "+r.Gateway.ID.Name()+" serves the Gateway", programmed)}
	if address := map[bool]string{true: r.Private, false: r.Public}[g.private]; address != "" && !g.address.is() {
		kind := gatewayv1.IPAddressType
		s.Addresses = []gatewayv1.GatewayStatusAddress{{Type: &kind, Value: address}}
	}
	if n := r.attached(g); n > 0 || g.Spec.AllowedListeners != nil {
		s.AttachedListenerSets = &n
	}
	return s
}

func (l *listener) status(generation int64) gatewayv1.ListenerStatus {
	bad := cmp.Or(l.accepted, l.conflict)
	programmed := problem{}
	if !l.serves() {
		programmed = because(gatewayv1.ListenerReasonInvalid, "%s", cmp.Or(bad.message, l.resolved.message))
	}
	conflicted := condition(gatewayv1.ListenerConditionConflicted, generation, gatewayv1.ListenerReasonNoConflicts, "", problem{})
	conflicted.Status = metav1.ConditionFalse
	if l.conflict.is() {
		conflicted.Status, conflicted.Reason, conflicted.Message = metav1.ConditionTrue, l.conflict.reason, l.conflict.message
	}
	return gatewayv1.ListenerStatus{
		Name: l.Name, SupportedKinds: l.kinds, AttachedRoutes: int32(len(l.attached)),
		Conditions: []metav1.Condition{
			condition(gatewayv1.ListenerConditionAccepted, generation, gatewayv1.ListenerReasonAccepted, "", bad),
			condition(gatewayv1.ListenerConditionProgrammed, generation, gatewayv1.ListenerReasonProgrammed, "", programmed),
			condition(gatewayv1.ListenerConditionResolvedRefs, generation, gatewayv1.ListenerReasonResolvedRefs, "", l.resolved),
			conflicted,
		},
	}
}

// place is a host at a port; "" is any host.
type place struct {
	port     gatewayv1.PortNumber
	host     gatewayv1.Hostname
	protocol gatewayv1.ProtocolType
}

// excludes reports whether an application gateway cannot have two places.
func (p place) excludes(other place) bool {
	return p.port == other.port && (p.host == other.host || p.protocol != other.protocol)
}

func placesOf(g *gatewayv1.Gateway) []place {
	var all []place
	for _, l := range g.Spec.Listeners {
		all = append(all, place{l.Port, hostOf(l), l.Protocol})
	}
	return all
}

// Assign chooses an application gateway for each Gateway: the one of the address that its spec or its status has, else the first one where
// no other Gateway has the same port for the same host, or with another protocol. A Gateway for which there is none is left out.
func Assign(o Objects, applications []azure.ID, addresses map[azure.ID][]string) Applications {
	assigned := Applications{}
	taken := map[azure.ID][]place{}
	free := func(id azure.ID, g *gatewayv1.Gateway) bool {
		return !slices.ContainsFunc(placesOf(g), func(p place) bool { return slices.ContainsFunc(taken[id], p.excludes) })
	}
	give := func(id azure.ID, g *gatewayv1.Gateway) {
		assigned[KeyOf(g)] = id
		taken[id] = append(taken[id], placesOf(g)...)
	}
	var later []*gatewayv1.Gateway
	for _, g := range o.Ours() {
		i := slices.IndexFunc(applications, func(id azure.ID) bool {
			return slices.ContainsFunc(addresses[id], func(a string) bool { return hasAddress(g, a) }) && free(id, g)
		})
		if i < 0 {
			later = append(later, g)
			continue
		}
		give(applications[i], g)
	}
	for _, g := range later {
		if i := slices.IndexFunc(applications, func(id azure.ID) bool { return free(id, g) }); i >= 0 {
			give(applications[i], g)
		}
	}
	return assigned
}

// AddressOf returns the address that a Gateway asks for, or else that in its status, "" for none.
func AddressOf(g *gatewayv1.Gateway) string {
	for _, a := range g.Spec.Addresses {
		if a.Value != "" {
			return a.Value
		}
	}
	for _, a := range g.Status.Addresses {
		return a.Value
	}
	return ""
}

// hasAddress reports whether a Gateway asks for an address, or has it if it asks for none.
func hasAddress(g *gatewayv1.Gateway, address string) bool {
	if address == "" {
		return false
	}
	if i := slices.IndexFunc(g.Spec.Addresses, func(a gatewayv1.GatewaySpecAddress) bool { return a.Value != "" }); i >= 0 {
		return g.Spec.Addresses[i].Value == address
	}
	return slices.ContainsFunc(g.Status.Addresses, func(a gatewayv1.GatewayStatusAddress) bool { return a.Value == address })
}
