package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"

	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"kaz/internal/key"
	"kaz/internal/plan/gateway/prohibited"
	"kaz/internal/plan/gateway/rewriteobject"
)

// rewrites are AGIC's objects with rewrite rules, as the API server has them.
type rewrites []cache.SharedIndexInformer

// Rewrite implements [rewriteobject.Reader].
func (r rewrites) Rewrite(namespace, name string) (map[string]any, bool) {
	for _, i := range r {
		if o, there, err := i.GetStore().GetByKey(namespace + "/" + name); err == nil && there {
			if u, ok := o.(*unstructured.Unstructured); ok {
				return u.Object, true
			}
		}
	}
	return nil, false
}

// dynamicFactory is a factory of informers of objects without types.
type dynamicFactory struct {
	dynamicinformer.DynamicSharedInformerFactory
}

// StartWithContext implements [factory].
func (f dynamicFactory) StartWithContext(ctx context.Context) { f.Start(ctx.Done()) }

// prohibitedTargets are AGIC's objects with what Ingresses do not get, as the API server has them.
type prohibitedTargets []cache.SharedIndexInformer

// targets returns the targets in the order of their objects, and the errors of those that cannot be read.
func (p prohibitedTargets) targets() (all prohibited.Targets, wrong error) {
	var errs []error
	for _, i := range p {
		for _, o := range i.GetStore().List() {
			u, ok := o.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			t, err := prohibited.Decode(u.Object)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b prohibited.Target) int { return strings.Compare(a.Object, b.Object) })
	return all, errors.Join(errs...)
}

// watchProhibited makes the informers of what Ingresses do not get, if the API server has such objects. A change matters to all Ingresses.
func (c *Controller) watchProhibited(ctx context.Context) (err error) {
	c.kube.prohibited, err = c.watchObjects(ctx, prohibited.GroupVersionResource(), func(*unstructured.Unstructured) {
		for _, i := range c.kube.ingresses() {
			if c.isOurs(i) {
				c.markIngress(i)
			}
		}
	})
	return err
}

// watchRewrites makes the informers of rewrite rules, if the API server has such objects.
func (c *Controller) watchRewrites(ctx context.Context) (err error) {
	c.kube.rewrites, err = c.watchObjects(ctx, rewriteobject.GroupVersionResource(), func(o *unstructured.Unstructured) {
		c.markUsers(o.GetNamespace(), func(i *networking.Ingress) bool {
			name, _ := key.RewriteObject.Read(i.Annotations)
			return name == o.GetName()
		})
	})
	return err
}

// watchObjects makes the informers of objects of AGIC, none if the API server has no such objects.
func (c *Controller) watchObjects(ctx context.Context, resource schema.GroupVersionResource, mark func(*unstructured.Unstructured)) (
	all []cache.SharedIndexInformer, err error,
) {
	if c.config.Dynamic == nil {
		return nil, nil
	}
	served, err := c.config.discover(ctx, c.config.Kube.Discovery(), resource.GroupVersion())
	if err != nil || !slices.Contains(served, resource.Resource) {
		return nil, err
	}
	handler := watcher(func(a, b *unstructured.Unstructured) bool {
		return equality.Semantic.DeepEqual(a.Object["spec"], b.Object["spec"])
	}, mark)
	var errs []error
	for _, namespace := range c.config.namespaces() {
		f := dynamicFactory{dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.config.Dynamic, 0, namespace, nil)}
		informer := f.ForResource(resource).Informer()
		c.kube.factories = append(c.kube.factories, f)
		all = append(all, informer)
		errs = append(errs, c.kube.listen(informer, handler))
	}
	return all, errors.Join(errs...)
}
