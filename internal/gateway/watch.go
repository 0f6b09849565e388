package gateway

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/controller"
	"kaz/internal/plan/gateway/gatewayapi"
)

// watch marks objects when something changes that they depend on.
func (c *Controller) watch(ctx context.Context) error {
	if err := c.watchGatewayAPI(ctx); err != nil {
		return err
	}
	if err := c.watchRewrites(ctx); err != nil {
		return err
	}
	if err := c.watchProhibited(ctx); err != nil {
		return err
	}
	services := watcher(sameService, func(o *corev1.Service) { c.markUsersOfService(o.Namespace, o.Name) })
	endpoints := watcher(sameEndpoints, func(o *discovery.EndpointSlice) {
		c.markUsersOfService(o.Namespace, o.Labels[discovery.LabelServiceName])
	})
	secrets := watcher(sameSecret, func(o *corev1.Secret) { c.markUsersOfSecret(o) })
	var errs []error
	for _, s := range c.kube.scopes {
		errs = append(errs,
			c.kube.listen(s.ingresses, c.ingressHandler()), c.kube.listen(s.services, services), c.kube.listen(s.endpoints, endpoints),
			c.kube.listen(s.secrets, secrets),
			// Beside that, a pod matters for its probes alone; the comparison with Azure that a changed endpoint brings reads them.
			c.kube.listen(s.pods, watcher(samePod, c.markUsersOfPod)),
		)
	}
	if a := c.kube.answers; a != nil {
		errs = append(errs, c.kube.listen(a.services, services), c.kube.listen(a.endpoints, endpoints))
	}
	sameClass := func(a, b *networking.IngressClass) bool { return a.Spec.Controller == b.Spec.Controller }
	classes := watcher(sameClass, func(*networking.IngressClass) {
		for _, i := range c.kube.ingresses() {
			c.markIngress(i)
		}
	})
	errs = append(errs, c.kube.listen(c.kube.cluster.Networking().V1().IngressClasses().Informer(), classes))
	return errors.Join(errs...)
}

func (c *Controller) markIngress(i *networking.Ingress) { c.workers[0].mark(keyOf(i)) }

// markUsersOfService marks the Ingresses and routes that lead to a Service. Any could have one that answers for the application gateway.
func (c *Controller) markUsersOfService(namespace, name string) {
	if namespace+"/"+name == c.config.Answers {
		for _, w := range c.workers {
			w.mark(everything)
		}
	}
	c.markUsers(namespace, func(i *networking.Ingress) bool { return usesService(i, name) })
	c.markRoutes(func(r gatewayapi.Route) bool {
		return slices.Contains(gatewayapi.RouteUses(r).Services, namespace+"/"+name)
	})
}

// markUsersOfSecret marks the Ingresses and Gateways with the certificate of a Secret.
func (c *Controller) markUsersOfSecret(s *corev1.Secret) {
	c.markUsers(s.Namespace, func(i *networking.Ingress) bool { return usesSecret(i, s.Name) })
	c.markGateways(func(g *gatewayv1.Gateway) bool {
		return slices.Contains(gatewayapi.GatewayUses(g).Secrets, gatewayapi.KeyOf(s))
	})
	c.markSets(func(set *gatewayv1.ListenerSet) bool {
		return slices.Contains(gatewayapi.SetUses(set).Secrets, gatewayapi.KeyOf(s))
	})
}

// watcher calls mark for an object that is added, changed or deleted.
func watcher[T any](same func(old, now T) bool, mark func(T)) cache.ResourceEventHandler {
	return controller.Watch[T]{
		Added: func(o T, atStart bool) {
			if !atStart {
				mark(o)
			}
		},
		Changed: func(old, now T) {
			if !same(old, now) {
				mark(old)
				mark(now)
			}
		},
		Deleted: mark,
	}.Handler()
}

// ingressHandler marks the Ingresses of the controller's class, and those that leave it. A deletion that the API server has reported is
// told from one that only a later list shows.
func (c *Controller) ingressHandler() cache.ResourceEventHandler {
	empty := &c.workers[0].empty
	watch := controller.Watch[*networking.Ingress]{
		Added: func(i *networking.Ingress, atStart bool) {
			if c.isOurs(i) && !atStart {
				c.markIngress(i)
			}
		},
		Changed: func(old, i *networking.Ingress) {
			if !equality.Semantic.DeepEqual(old.Spec, i.Spec) || !equality.Semantic.DeepEqual(old.Annotations, i.Annotations) ||
				(old.DeletionTimestamp == nil) != (i.DeletionTimestamp == nil) {
				empty.left(keyOf(i), !c.isOurs(i))
				c.markIngress(i)
			}
		},
		Deleted: c.markIngress,
	}.Handler()
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, atStart bool) {
			if i, ok := object.(*networking.Ingress); ok {
				empty.left(keyOf(i), false) // it may have been there before
			}
			watch.OnAdd(object, atStart)
		},
		UpdateFunc: watch.OnUpdate,
		DeleteFunc: func(object any) {
			if i, reported := object.(*networking.Ingress); reported {
				empty.left(keyOf(i), true)
			}
			watch.OnDelete(object)
		},
	}
}

func (c *Controller) markUsers(namespace string, uses func(*networking.Ingress) bool) {
	for _, i := range c.kube.ingresses() {
		if i.Namespace == namespace && c.isOurs(i) && uses(i) {
			c.markIngress(i)
		}
	}
}

func usesService(i *networking.Ingress, service string) bool {
	is := func(b *networking.IngressBackend) bool {
		return b != nil && b.Service != nil && b.Service.Name == service
	}
	return is(i.Spec.DefaultBackend) || slices.ContainsFunc(i.Spec.Rules, func(r networking.IngressRule) bool {
		return r.HTTP != nil && slices.ContainsFunc(r.HTTP.Paths, func(p networking.HTTPIngressPath) bool { return is(&p.Backend) })
	})
}

func usesSecret(i *networking.Ingress, secret string) bool {
	return slices.ContainsFunc(i.Spec.TLS, func(t networking.IngressTLS) bool { return t.SecretName == secret })
}

func sameService(a, b *corev1.Service) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) }

func sameEndpoints(a, b *discovery.EndpointSlice) bool {
	return equality.Semantic.DeepEqual(a.Endpoints, b.Endpoints) && equality.Semantic.DeepEqual(a.Ports, b.Ports) &&
		a.Labels[discovery.LabelServiceName] == b.Labels[discovery.LabelServiceName]
}

func sameSecret(a, b *corev1.Secret) bool { return equality.Semantic.DeepEqual(a.Data, b.Data) }
