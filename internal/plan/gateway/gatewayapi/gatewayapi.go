// Package gatewayapi makes the intermediate form of the objects of the Gateway API, and decides their statuses. Layer L1.
//
// A problem of one object never changes what another one gets. What an application gateway cannot do is refused with the reason, in the
// conditions of the object.
package gatewayapi

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/plan/gateway/live"
	"kaz/internal/plan/gateway/route"
)

// Kinds of the objects.
const (
	KindGateway  = "Gateway"
	KindRoute    = "HTTPRoute"
	KindTCPRoute = "TCPRoute"
	KindTLSRoute = "TLSRoute"
	KindSet      = "ListenerSet"
)

// Controller is the name of the controller in a GatewayClass.
const Controller gatewayv1.GatewayController = "azure/application-gateway"

// Objects are the objects of the Gateway API in a cluster, and what they refer to beside Services and Secrets.
type Objects struct {
	Classes      []*gatewayv1.GatewayClass
	Gateways     []*gatewayv1.Gateway
	ListenerSets []*gatewayv1.ListenerSet
	Routes       []Route
	Grants       []*gatewayv1.ReferenceGrant
	TLSPolicies  []*gatewayv1.BackendTLSPolicy
	Namespaces   []*corev1.Namespace
	ConfigMaps   []*corev1.ConfigMap // with the key ca.crt
}

// Applications says which application gateway serves a Gateway, by the Gateway's namespace/name.
type Applications map[string]azure.ID

// Input is what the objects are read with: for one application gateway.
type Input struct {
	Objects
	Applications Applications
	Cluster      *cluster.Objects
	Gateway      live.Gateway
	// Public and Private are the addresses of the application gateway, empty if they are not known.
	Public, Private string
}

// Result is what the objects ask of an application gateway, and their statuses. Conditions have no time, and the generation of their
// object. All is there for the Gateways of this application gateway and for the routes that refer to one of them; of a route it is the
// status for these parents alone.
type Result struct {
	Sites    []route.Site                             // the oldest object first
	Gateways map[string]gatewayv1.GatewayStatus       // by namespace/name
	Sets     map[string]gatewayv1.ListenerSetStatus   // by namespace/name
	Routes   map[string][]gatewayv1.RouteParentStatus // by kind/namespace/name
	Policies map[string][]gatewayv1.PolicyAncestorStatus
}

// KeyOf returns the namespace/name of an object.
func KeyOf(o interface {
	GetNamespace() string
	GetName() string
},
) string {
	return o.GetNamespace() + "/" + o.GetName()
}

// ours reports whether a Gateway has a class of this controller.
func (o Objects) ours(g *gatewayv1.Gateway) bool {
	return slices.ContainsFunc(o.Classes, func(c *gatewayv1.GatewayClass) bool {
		return c.Name == string(g.Spec.GatewayClassName) && c.Spec.ControllerName == Controller
	})
}

// Ours returns the Gateways with a class of this controller, the oldest first.
func (o Objects) Ours() []*gatewayv1.Gateway {
	var all []*gatewayv1.Gateway
	for _, g := range o.Gateways {
		if g.DeletionTimestamp == nil && o.ours(g) {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b *gatewayv1.Gateway) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(KeyOf(a), KeyOf(b)))
	})
	return all
}

// Read returns what the objects ask of an application gateway.
func Read(in Input) Result {
	r := reader{Input: in, result: Result{
		Gateways: map[string]gatewayv1.GatewayStatus{}, Routes: map[string][]gatewayv1.RouteParentStatus{},
		Policies: map[string][]gatewayv1.PolicyAncestorStatus{}, Sets: map[string]gatewayv1.ListenerSetStatus{},
	}}
	r.policies = r.readPolicies()
	for _, g := range in.Ours() {
		if in.Applications[KeyOf(g)].Equal(in.Gateway.ID) {
			r.gateways = append(r.gateways, r.gateway(g))
		}
	}
	r.readSets()
	routes := slices.Clone(in.Routes)
	slices.SortFunc(routes, func(a, b Route) int { return route.Compare(objectOf(a), objectOf(b)) })
	for _, h := range routes {
		if h.GetDeletionTimestamp() == nil {
			r.route(h)
		}
	}
	for _, g := range r.gateways {
		r.result.Gateways[KeyOf(g.Gateway)] = r.status(g)
	}
	for _, s := range r.sets {
		r.result.Sets[KeyOf(s.ListenerSet)] = s.status()
	}
	return r.result
}

// Refuse notes the problems of routes that the application gateway has no room for.
func (r *Result) Refuse(problems []plan.Problem) {
	for _, p := range problems {
		if p.Warning {
			continue
		}
		for i := range r.Routes[p.Object] {
			set(r.Routes[p.Object][i].Conditions, string(gatewayv1.RouteConditionAccepted), p.Reason, p.Message)
		}
	}
}

// set makes a condition of a list false.
func set(conditions []metav1.Condition, kind, reason, message string) {
	for i := range conditions {
		if conditions[i].Type == kind {
			conditions[i].Status, conditions[i].Reason, conditions[i].Message = metav1.ConditionFalse, reason, message
		}
	}
}

// reader reads the objects of one application gateway.
type reader struct {
	Input
	gateways []*gateway
	sets     []*listenerSet
	policies []*policy
	result   Result
}
