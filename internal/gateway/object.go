package gateway

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/plan/gateway/gatewayapi"
	"kaz/internal/plan/gateway/ingress"
)

// object is an object of Kubernetes that an application gateway serves, or that has a status of the controller: an Ingress, a Gateway or
// a route.
type object interface {
	metav1.Object
	runtime.Object
}

// Kinds that have a status, beside those of the planner.
const (
	kindClass  = "GatewayClass"
	kindPolicy = "BackendTLSPolicy"
)

// everything is the key that stands for a comparison with Azure. It is no key of an object.
const everything = ""

// keyOf identifies an object as the planner does: "Ingress/default/web".
func keyOf(o object) string { return keyFor(kindOf(o), o.GetNamespace(), o.GetName()) }

func keyFor(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

func kindOf(o object) string {
	switch o.(type) {
	case *networking.Ingress:
		return ingress.Kind
	case *gatewayv1.Gateway:
		return gatewayapi.KindGateway
	case *gatewayv1.ListenerSet:
		return gatewayapi.KindSet
	case *gatewayv1.GatewayClass:
		return kindClass
	case *gatewayv1.BackendTLSPolicy:
		return kindPolicy
	}
	return gatewayapi.RouteKind(o)
}

// split returns the parts of a key.
func split(key string) (kind, namespace, name string) {
	kind, rest, _ := strings.Cut(key, "/")
	namespace, name, _ = strings.Cut(rest, "/")
	return kind, namespace, name
}

// isRoute reports whether a key is that of a route, which no application gateway serves without a Gateway.
func isRoute(key string) bool {
	kind, _, _ := split(key)
	return gatewayapi.IsRoute(kind)
}

// byNeed orders keys so that a Gateway comes before its routes: a route is nothing without it, and would be taken for one that Azure
// does not refuse.
func byNeed(a, b string) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

func rank(key string) int {
	if isRoute(key) {
		return 1
	}
	return 0
}

// routesOf returns the routes of all kinds in the order of their keys.
func routesOf(all map[string]object) []gatewayapi.Route { return routesAmong(only[object](all)) }

// only returns the objects of a type in the order of their keys.
func only[T object](all map[string]object) (some []T) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if t, ok := all[key].(T); ok {
			some = append(some, t)
		}
	}
	return some
}
