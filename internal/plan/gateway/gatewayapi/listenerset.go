package gatewayapi

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// listenerSet is a ListenerSet of a Gateway at the application gateway. One that its Gateway does not take has no listeners.
type listenerSet struct {
	*gatewayv1.ListenerSet
	parent    *gateway
	refused   problem // by its Gateway
	listeners []*listener
}

// ParentOf returns the namespace/name of the Gateway of a ListenerSet.
func ParentOf(s *gatewayv1.ListenerSet) string {
	return string(value(s.Spec.ParentRef.Namespace, gatewayv1.Namespace(s.Namespace))) + "/" + string(s.Spec.ParentRef.Name)
}

// SetUses returns what a ListenerSet refers to.
func SetUses(s *gatewayv1.ListenerSet) Uses {
	u := Uses{Gateways: []string{ParentOf(s)}}
	for _, l := range s.Spec.Listeners {
		u.Secrets = append(u.Secrets, secretsOf(s.Namespace, l.TLS)...)
	}
	return u
}

// GatewaysOf returns the Gateways of a route by namespace/name: its parents, and those of the ListenerSets that are its parents.
func (o Objects) GatewaysOf(h Route) []string {
	u := RouteUses(h)
	all := u.Gateways
	for _, s := range o.ListenerSets {
		if slices.Contains(u.Sets, KeyOf(s)) {
			all = append(all, ParentOf(s))
		}
	}
	return all
}

// SetsOf returns the ListenerSets that refer to a Gateway.
func (o Objects) SetsOf(gateway string) (all []*gatewayv1.ListenerSet) {
	for _, s := range o.ListenerSets {
		if ParentOf(s) == gateway {
			all = append(all, s)
		}
	}
	return all
}

// readSets reads the ListenerSets of the Gateways, the oldest first. A listener of a Gateway has its place before all of them.
func (r *reader) readSets() {
	all := slices.DeleteFunc(slices.Clone(r.ListenerSets), func(s *gatewayv1.ListenerSet) bool { return s.DeletionTimestamp != nil })
	slices.SortFunc(all, func(a, b *gatewayv1.ListenerSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(KeyOf(a), KeyOf(b)))
	})
	for _, s := range all {
		i := slices.IndexFunc(r.gateways, func(g *gateway) bool { return KeyOf(g.Gateway) == ParentOf(s) })
		if i < 0 {
			continue
		}
		set := &listenerSet{ListenerSet: s, parent: r.gateways[i]}
		if set.refused = r.refusedBy(set.parent, s); !set.refused.is() {
			r.readEntries(set)
		}
		r.sets = append(r.sets, set)
	}
}

// refusedBy says why a Gateway does not take a ListenerSet.
func (r *reader) refusedBy(g *gateway, s *gatewayv1.ListenerSet) problem {
	if !r.takes(g, s) {
		return because(gatewayv1.ListenerSetReasonNotAllowed,
			"spec.allowedListeners of Gateway %s does not allow ListenerSets of namespace %s", KeyOf(g.Gateway), s.Namespace)
	}
	for _, c := range r.status(g).Conditions {
		if c.Type == string(gatewayv1.GatewayConditionAccepted) && c.Status == metav1.ConditionFalse {
			return because(gatewayv1.ListenerSetReasonParentNotAccepted, "Gateway %s is not accepted", KeyOf(g.Gateway))
		}
	}
	return problem{}
}

// takes reports whether a Gateway allows a ListenerSet. Without a word about it, it allows none.
func (r *reader) takes(g *gateway, s *gatewayv1.ListenerSet) bool {
	allowed := g.Spec.AllowedListeners
	if allowed == nil || allowed.Namespaces == nil {
		return false
	}
	switch value(allowed.Namespaces.From, gatewayv1.NamespacesFromNone) {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSame:
		return s.Namespace == g.Namespace
	case gatewayv1.NamespacesFromSelector:
		return r.selects(allowed.Namespaces.Selector, s.Namespace)
	default:
		return false
	}
}

// selects reports whether a selector has a namespace.
func (r *reader) selects(selector *metav1.LabelSelector, namespace string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	n := r.namespace(namespace)
	return err == nil && n != nil && s.Matches(labels.Set(n.Labels))
}

// readEntries reads the listeners of a ListenerSet. One that conflicts with a listener before it is not served.
func (r *reader) readEntries(set *listenerSet) {
	for _, e := range set.Spec.Listeners {
		l := r.listener(KindSet, set.Namespace, gatewayv1.Listener(e))
		if l.conflict = r.conflictOf(set, l); l.conflict.is() {
			l.accepted = problem{} // the conflict says more
		}
		set.listeners = append(set.listeners, l)
	}
}

// conflictOf finds what an entry of a ListenerSet conflicts with, at the same address of the application gateway: the listeners of Gateways
// and the entries before it, as far as they can be served. It names no other object, because that can belong to another team.
func (r *reader) conflictOf(set *listenerSet, l *listener) problem {
	var before []*listener
	for _, g := range r.gateways {
		if g.private == set.parent.private {
			before = append(before, g.listeners...)
		}
	}
	for _, s := range r.sets {
		if s.parent.private == set.parent.private {
			before = append(before, s.listeners...)
		}
	}
	for _, other := range slices.Concat(before, set.listeners) {
		switch {
		case other.conflict.is() || other.accepted.is() || other.Port != l.Port:
		case other.Protocol != l.Protocol:
			return because(gatewayv1.ListenerReasonProtocolConflict, "a listener before it has port %d with protocol %s", l.Port,
				other.Protocol)
		case modeOf(other.Listener) != modeOf(l.Listener):
			return because(gatewayv1.ListenerReasonProtocolConflict, "a listener before it has port %d with another tls.mode", l.Port)
		case strings.EqualFold(other.host(), l.host()):
			return because(gatewayv1.ListenerReasonHostnameConflict, "a listener before it has port %d with hostname %q", l.Port, l.host())
		}
	}
	return problem{}
}

// status returns the status of a ListenerSet, with all routes that are attached.
func (s *listenerSet) status() gatewayv1.ListenerSetStatus {
	var status gatewayv1.ListenerSetStatus
	good, invalid := 0, s.refused
	for _, l := range s.listeners {
		entry := gatewayv1.ListenerEntryStatus(l.status(s.Generation))
		if l.conflict.is() {
			set(entry.Conditions, string(gatewayv1.ListenerEntryConditionProgrammed), l.conflict.reason, l.conflict.message)
		}
		status.Listeners = append(status.Listeners, entry)
		if l.serves() {
			good++
		} else if !invalid.is() {
			invalid = because(gatewayv1.ListenerSetReasonListenersNotValid, "listener %s: %s", l.Name,
				cmp.Or(l.accepted.message, l.conflict.message, l.resolved.message))
		}
	}
	bad := invalid
	if good > 0 {
		bad = problem{}
	}
	accepted := condition(gatewayv1.ListenerSetConditionAccepted, s.Generation, gatewayv1.ListenerSetReasonAccepted, "", bad)
	if good > 0 && invalid.is() {
		accepted.Reason, accepted.Message = invalid.reason, invalid.message
	}
	programmed := bad
	if !bad.is() && s.parent.address.is() {
		programmed = because(gatewayv1.GatewayReasonAddressNotUsable, "%s", s.parent.address.message)
	}
	status.Conditions = []metav1.Condition{accepted,
		condition(gatewayv1.ListenerSetConditionProgrammed, s.Generation, gatewayv1.ListenerSetReasonProgrammed, "", programmed)}
	return status
}

// attached counts the accepted ListenerSets of a Gateway.
func (r *reader) attached(g *gateway) (n int32) {
	for _, s := range r.sets {
		if s.parent == g && slices.ContainsFunc(s.listeners, (*listener).serves) {
			n++
		}
	}
	return n
}
