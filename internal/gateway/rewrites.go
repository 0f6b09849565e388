package gateway

import (
	"context"
	"errors"
	"slices"

	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"kaz/internal/key"
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

// watchRewrites makes the informers of rewrite rules, if the API server has such objects.
func (c *Controller) watchRewrites(ctx context.Context) error {
	if c.config.Dynamic == nil {
		return nil
	}
	resource := rewriteobject.GroupVersionResource()
	served, err := c.config.discover(ctx, c.config.Kube.Discovery(), resource.GroupVersion())
	if err != nil || !slices.Contains(served, resource.Resource) {
		return err
	}
	handler := watcher(func(a, b *unstructured.Unstructured) bool {
		return equality.Semantic.DeepEqual(a.Object["spec"], b.Object["spec"])
	}, func(o *unstructured.Unstructured) {
		c.markUsers(o.GetNamespace(), func(i *networking.Ingress) bool {
			name, _ := key.RewriteObject.Read(i.Annotations)
			return name == o.GetName()
		})
	})
	var errs []error
	for _, namespace := range c.config.namespaces() {
		f := dynamicFactory{dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.config.Dynamic, 0, namespace, nil)}
		informer := f.ForResource(resource).Informer()
		c.kube.factories = append(c.kube.factories, f)
		c.kube.rewrites = append(c.kube.rewrites, informer)
		errs = append(errs, c.kube.listen(informer, handler))
	}
	return errors.Join(errs...)
}
