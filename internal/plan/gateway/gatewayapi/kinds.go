package gatewayapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/plan/gateway/route"
)

// Route is a route of one of the kinds that are served: a *HTTPRoute, a *TCPRoute or a *TLSRoute.
type Route interface {
	metav1.Object
	runtime.Object
}

// routeKinds are the kinds of routes that a listener of a protocol takes.
var routeKinds = map[gatewayv1.ProtocolType]gatewayv1.Kind{
	gatewayv1.HTTPProtocolType: KindRoute, gatewayv1.HTTPSProtocolType: KindRoute,
	gatewayv1.TCPProtocolType: KindTCPRoute, gatewayv1.TLSProtocolType: KindTLSRoute,
}

// IsRoute reports whether a kind is one of the routes that are served.
func IsRoute(kind string) bool {
	return slices.Contains([]string{KindRoute, KindTCPRoute, KindTLSRoute}, kind)
}

// RouteKind returns the kind of an object that is a route, "" for any other object.
func RouteKind(o any) string {
	switch o.(type) {
	case *gatewayv1.HTTPRoute:
		return KindRoute
	case *gatewayv1.TCPRoute:
		return KindTCPRoute
	case *gatewayv1.TLSRoute:
		return KindTLSRoute
	}
	return ""
}

// RouteKey identifies a route in a [Result]: "TCPRoute/default/web".
func RouteKey(r Route) string { return objectOf(r).Key() }

func objectOf(r Route) route.Object {
	return route.Object{Kind: RouteKind(r), Namespace: r.GetNamespace(), Name: r.GetName(), Created: r.GetCreationTimestamp().Time}
}

// ParentsOf returns the parents that a route refers to, and those in its status.
func ParentsOf(r Route) (refs []gatewayv1.ParentReference, status *[]gatewayv1.RouteParentStatus) {
	switch r := r.(type) {
	case *gatewayv1.HTTPRoute:
		return r.Spec.ParentRefs, &r.Status.Parents
	case *gatewayv1.TCPRoute:
		return r.Spec.ParentRefs, &r.Status.Parents
	case *gatewayv1.TLSRoute:
		return r.Spec.ParentRefs, &r.Status.Parents
	}
	return nil, &[]gatewayv1.RouteParentStatus{}
}

// SameRoute reports whether two versions of a route ask for the same.
func SameRoute(a, b Route, equal func(a, b any) bool) bool {
	switch a := a.(type) {
	case *gatewayv1.HTTPRoute:
		b, ok := b.(*gatewayv1.HTTPRoute)
		return ok && equal(a.Spec, b.Spec)
	case *gatewayv1.TCPRoute:
		b, ok := b.(*gatewayv1.TCPRoute)
		return ok && equal(a.Spec, b.Spec)
	case *gatewayv1.TLSRoute:
		b, ok := b.(*gatewayv1.TLSRoute)
		return ok && equal(a.Spec, b.Spec)
	}
	return false
}

// HostnamesOf returns the hostnames of a route, none for any.
func HostnamesOf(r Route) []gatewayv1.Hostname {
	switch r := r.(type) {
	case *gatewayv1.HTTPRoute:
		return r.Spec.Hostnames
	case *gatewayv1.TLSRoute:
		return r.Spec.Hostnames
	}
	return nil
}

// BackendsOf returns the backends of a route by its rules.
func BackendsOf(r Route) (rules [][]gatewayv1.BackendRef) {
	switch r := r.(type) {
	case *gatewayv1.HTTPRoute:
		for _, rule := range r.Spec.Rules {
			var all []gatewayv1.BackendRef
			for _, b := range rule.BackendRefs {
				all = append(all, b.BackendRef)
			}
			rules = append(rules, all)
		}
	case *gatewayv1.TCPRoute:
		for _, rule := range r.Spec.Rules {
			rules = append(rules, rule.BackendRefs)
		}
	case *gatewayv1.TLSRoute:
		for _, rule := range r.Spec.Rules {
			rules = append(rules, rule.BackendRefs)
		}
	}
	return rules
}
