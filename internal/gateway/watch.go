package gateway

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"

	"kaz/internal/controller"
)

// watch marks Ingresses when something changes that they depend on.
func (c *Controller) watch() error {
	var errs []error
	for _, s := range c.kube.scopes {
		errs = append(errs,
			c.kube.listen(s.ingresses, c.ingressHandler()),
			c.kube.listen(s.services, watcher(sameService, func(o *corev1.Service) {
				c.markUsers(o.Namespace, func(i *networking.Ingress) bool { return usesService(i, o.Name) })
			})),
			c.kube.listen(s.endpoints, watcher(sameEndpoints, func(o *discovery.EndpointSlice) {
				c.markUsers(o.Namespace, func(i *networking.Ingress) bool { return usesService(i, o.Labels[discovery.LabelServiceName]) })
			})),
			c.kube.listen(s.secrets, watcher(sameSecret, func(o *corev1.Secret) {
				c.markUsers(o.Namespace, func(i *networking.Ingress) bool { return usesSecret(i, o.Name) })
			})),
			// A pod matters for its probes alone; the comparison with Azure that a changed endpoint brings reads them.
			c.kube.listen(s.pods, controller.Watch[*corev1.Pod]{}.Handler()),
		)
	}
	sameClass := func(a, b *networking.IngressClass) bool { return a.Spec.Controller == b.Spec.Controller }
	classes := watcher(sameClass, func(*networking.IngressClass) {
		for _, i := range c.kube.ingresses() {
			c.queue.Mark(keyOf(i), reasons{})
		}
	})
	errs = append(errs, c.kube.listen(c.kube.cluster.Networking().V1().IngressClasses().Informer(), classes))
	return errors.Join(errs...)
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
	mark := func(i *networking.Ingress) { c.queue.Mark(keyOf(i), reasons{}) }
	watch := controller.Watch[*networking.Ingress]{
		Added: func(i *networking.Ingress, atStart bool) {
			if c.isOurs(i) && !atStart {
				mark(i)
			}
		},
		Changed: func(old, i *networking.Ingress) {
			if !equality.Semantic.DeepEqual(old.Spec, i.Spec) || !equality.Semantic.DeepEqual(old.Annotations, i.Annotations) ||
				(old.DeletionTimestamp == nil) != (i.DeletionTimestamp == nil) {
				c.empty.left(keyOf(i), !c.isOurs(i))
				mark(i)
			}
		},
		Deleted: mark,
	}.Handler()
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, atStart bool) {
			if i, ok := object.(*networking.Ingress); ok {
				c.empty.left(keyOf(i), false) // it may have been there before
			}
			watch.OnAdd(object, atStart)
		},
		UpdateFunc: watch.OnUpdate,
		DeleteFunc: func(object any) {
			if i, reported := object.(*networking.Ingress); reported {
				c.empty.left(keyOf(i), true)
			}
			watch.OnDelete(object)
		},
	}
}

func (c *Controller) markUsers(namespace string, uses func(*networking.Ingress) bool) {
	for _, i := range c.kube.ingresses() {
		if i.Namespace == namespace && c.isOurs(i) && uses(i) {
			c.queue.Mark(keyOf(i), reasons{})
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
