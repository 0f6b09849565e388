package gateway

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/controller"
	"kaz/internal/plan/gateway/gatewayapi"
)

// listenToAPI marks Gateways and routes when they change, or what they depend on.
func (c *Controller) listenToAPI() error {
	a := c.kube.api
	errs := []error{c.kube.listen(a.classes, c.classHandler()), c.kube.listen(a.namespaces, c.namespaceHandler())}
	for _, s := range a.scopes {
		errs = append(errs, c.kube.listen(s.gateways, c.gatewayHandler()), c.kube.listen(s.routes, routeHandler[*gatewayv1.HTTPRoute](c)),
			c.kube.listen(s.configMaps, watcher(sameConfigMap, func(m *corev1.ConfigMap) { c.markUsersOfConfigMap(m) })))
		if s.grants.list != nil {
			errs = append(errs, c.kube.listen(s.grants, watcher(sameGrant, func(g *gatewayv1.ReferenceGrant) { c.markGranted(g) })))
		}
		if s.tcpRoutes.list != nil {
			errs = append(errs, c.kube.listen(s.tcpRoutes, routeHandler[*gatewayv1.TCPRoute](c)))
		}
		if s.tlsRoutes.list != nil {
			errs = append(errs, c.kube.listen(s.tlsRoutes, routeHandler[*gatewayv1.TLSRoute](c)))
		}
		if s.sets.list != nil {
			errs = append(errs, c.kube.listen(s.sets, c.setHandler()))
		}
		if s.policies.list != nil {
			errs = append(errs, c.kube.listen(s.policies, watcher(samePolicy, func(p *gatewayv1.BackendTLSPolicy) {
				c.markUsersOfPolicy(p)
				c.statuses.Mark(keyOf(p), reasons{})
			})))
		}
	}
	return errors.Join(errs...)
}

// classHandler chooses the application gateways of Gateways anew, and has the status of the class written.
func (c *Controller) classHandler() cache.ResourceEventHandler {
	same := func(a, b *gatewayv1.GatewayClass) bool {
		return a.Generation == b.Generation && equality.Semantic.DeepEqual(a.Spec, b.Spec)
	}
	return watcher(same, func(class *gatewayv1.GatewayClass) {
		if class.Spec.ControllerName == gatewayapi.Controller {
			c.assign()
			c.statuses.Mark(keyOf(class), reasons{})
		}
	})
}

// gatewayHandler marks Gateways. A deletion that the API server has reported is told from one that only a later list shows.
func (c *Controller) gatewayHandler() cache.ResourceEventHandler {
	changed := func(g *gatewayv1.Gateway) {
		c.assign()
		c.markGateway(g)
	}
	watch := watcher(sameGateway, changed)
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, atStart bool) {
			if g, ok := object.(*gatewayv1.Gateway); ok {
				c.left(g, false) // it may have been there before
			}
			watch.OnAdd(object, atStart)
		},
		UpdateFunc: func(was, is any) {
			if g, ok := is.(*gatewayv1.Gateway); ok {
				c.left(g, !c.kube.api.isOurs(g))
			}
			watch.OnUpdate(was, is)
		},
		DeleteFunc: func(object any) {
			if g, reported := object.(*gatewayv1.Gateway); reported {
				c.left(g, true)
			}
			watch.OnDelete(object)
		},
	}
}

func routeHandler[T gatewayapi.Route](c *Controller) cache.ResourceEventHandler {
	return controller.Watch[T]{
		Added: func(r T, atStart bool) {
			if !atStart {
				c.markRoute(r)
			}
		},
		Changed: func(old, r T) {
			if !sameRoute(old, r) {
				c.markRoute(old)
				c.markRoute(r)
				c.statuses.Mark(keyOf(r), reasons{})
			}
		},
		Deleted: func(r T) { c.markRoute(r) },
	}.Handler()
}

// namespaceHandler marks the Gateways: their listeners can choose namespaces by labels.
func (c *Controller) namespaceHandler() cache.ResourceEventHandler {
	same := func(a, b *corev1.Namespace) bool { return equality.Semantic.DeepEqual(a.Labels, b.Labels) }
	return watcher(same, func(*corev1.Namespace) { c.markGateways(selectsNamespaces) })
}

func selectsNamespaces(g *gatewayv1.Gateway) bool {
	return g.Spec.AllowedListeners != nil || slices.ContainsFunc(g.Spec.Listeners, func(l gatewayv1.Listener) bool {
		return l.AllowedRoutes != nil && l.AllowedRoutes.Namespaces != nil && l.AllowedRoutes.Namespaces.Selector != nil
	})
}

// markGranted marks what a grant can allow: references from its sources to its namespace.
func (c *Controller) markGranted(grant *gatewayv1.ReferenceGrant) {
	from := func(kind, namespace string) bool {
		return slices.ContainsFunc(grant.Spec.From, func(f gatewayv1.ReferenceGrantFrom) bool {
			return string(f.Kind) == kind && string(f.Namespace) == namespace
		})
	}
	c.markGateways(func(g *gatewayv1.Gateway) bool { return from(gatewayapi.KindGateway, g.Namespace) })
	c.markSets(func(s *gatewayv1.ListenerSet) bool { return from(gatewayapi.KindSet, s.Namespace) })
	c.markRoutes(func(r gatewayapi.Route) bool { return from(gatewayapi.RouteKind(r), r.GetNamespace()) })
}

// markUsersOfPolicy marks the routes to the Services of a policy, which are in its namespace.
func (c *Controller) markUsersOfPolicy(p *gatewayv1.BackendTLSPolicy) {
	for _, t := range p.Spec.TargetRefs {
		c.markRoutes(func(r gatewayapi.Route) bool {
			return slices.Contains(gatewayapi.RouteUses(r).Services, p.Namespace+"/"+string(t.Name))
		})
	}
}

func (c *Controller) markUsersOfConfigMap(m *corev1.ConfigMap) {
	for _, p := range c.kube.api.objects().TLSPolicies {
		uses := slices.ContainsFunc(p.Spec.Validation.CACertificateRefs, func(r gatewayv1.LocalObjectReference) bool {
			return string(r.Name) == m.Name
		})
		if uses && p.Namespace == m.Namespace {
			c.markUsersOfPolicy(p)
		}
	}
}

func (c *Controller) markGateways(uses func(*gatewayv1.Gateway) bool) {
	if c.kube.api == nil {
		return
	}
	for _, g := range c.kube.api.objects().Ours() {
		if uses(g) {
			c.markGateway(g)
		}
	}
}

func (c *Controller) markRoutes(uses func(gatewayapi.Route) bool) {
	for _, r := range c.kube.routes() {
		if uses(r) {
			c.markRoute(r)
		}
	}
}

func sameGateway(a, b *gatewayv1.Gateway) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec) && equality.Semantic.DeepEqual(a.Annotations, b.Annotations) &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil)
}

func sameRoute(a, b gatewayapi.Route) bool {
	return gatewayapi.SameRoute(a, b, equality.Semantic.DeepEqual) &&
		equality.Semantic.DeepEqual(a.GetAnnotations(), b.GetAnnotations()) &&
		(a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil)
}

func samePolicy(a, b *gatewayv1.BackendTLSPolicy) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

func sameGrant(a, b *gatewayv1.ReferenceGrant) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

func sameConfigMap(a, b *corev1.ConfigMap) bool { return equality.Semantic.DeepEqual(a.Data, b.Data) }
