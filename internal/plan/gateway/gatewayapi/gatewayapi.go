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
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/azure"
	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/plan/gateway/live"
	"kaz/internal/plan/gateway/route"
)

// Kinds of the objects.
const (
	KindGateway = "Gateway"
	KindRoute   = "HTTPRoute"
)

// Controller is the name of the controller in a GatewayClass.
const Controller gatewayv1.GatewayController = "azure/application-gateway"

// Objects are the objects of the Gateway API in a cluster, and what they refer to beside Services and Secrets.
type Objects struct {
	Classes     []*gatewayv1.GatewayClass
	Gateways    []*gatewayv1.Gateway
	Routes      []*gatewayv1.HTTPRoute
	Grants      []*gatewayv1.ReferenceGrant
	TLSPolicies []*gatewayv1.BackendTLSPolicy
	Namespaces  []*corev1.Namespace
	ConfigMaps  []*corev1.ConfigMap // with the key ca.crt
}

// Applications says which application gateway serves a Gateway, by the Gateway's namespace/name.
type Applications map[string]azure.ID

// Input is what the objects are read with: for one application gateway.
type Input struct {
	Objects
	Applications Applications
	Cluster      *cluster.Objects
	Gateway      live.Gateway
	// Addresses are the public and the private address of the application gateway, empty if they are not known.
	Public, Private string
}

// Result is what the objects ask of an application gateway, and their statuses. Conditions have no time, and the generation of their
// object. All is there for the Gateways of this application gateway and for the routes that refer to one of them; of a route it is the
// status for these parents alone.
type Result struct {
	Sites    []route.Site
	Gateways map[string]gatewayv1.GatewayStatus       // by namespace/name
	Routes   map[string][]gatewayv1.RouteParentStatus // by namespace/name
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

// Assign chooses an application gateway for each Gateway: one that its annotation names, else the one of the address in its status, else
// the first one where no other Gateway has the same port for the same host. A Gateway for which there is none is left out.
func Assign(o Objects, applications []azure.ID, addresses map[azure.ID][]string) Applications {
	return nil
}

// ClassStatus returns the status of a GatewayClass of this controller.
func ClassStatus(c *gatewayv1.GatewayClass) gatewayv1.GatewayClassStatus {
	return gatewayv1.GatewayClassStatus{}
}

// Uses reports what of others a route or a Gateway depends on.
type Uses struct {
	Services, Secrets, Gateways []string // namespace/name
}

// RouteUses returns what a route refers to.
func RouteUses(r *gatewayv1.HTTPRoute) Uses { return Uses{} }

// GatewayUses returns what a Gateway refers to.
func GatewayUses(g *gatewayv1.Gateway) Uses { return Uses{} }

// Read returns what the objects ask of an application gateway.
func Read(in Input) Result { return Result{} }
