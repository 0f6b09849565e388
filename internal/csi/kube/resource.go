package kube

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Creator creates objects. The clients of client-go implement it, too.
type Creator[T any] interface {
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
}

// Resource reads, watches and writes objects of type T, with lists of type L. The clients of client-go implement it, too.
type Resource[T, L any] interface {
	Creator[T]
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	Update(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (
		T, error)
}

type (
	objectOf[T any] interface {
		*T
		runtime.Object
		metav1.Object
	}
	listOf[L any] interface {
		*L
		runtime.Object
	}
)

// creator implements [Creator].
type creator[T any, P objectOf[T]] struct {
	group
	name, namespace string
}

// resource implements [Resource].
type resource[T, L any, P objectOf[T], Q listOf[L]] struct{ creator[T, P] }

func newResource[T, L any, P objectOf[T], Q listOf[L]](g group, name, namespace string) *resource[T, L, P, Q] {
	return &resource[T, L, P, Q]{creator[T, P]{group: g, name: name, namespace: namespace}}
}

// request completes a request. Objects are sent and received as protobuf unless the configuration has a content type.
func (c *creator[T, P]) request(r *rest.Request, options runtime.Object) *rest.Request {
	return r.UseProtobufAsDefault().NamespaceIfScoped(c.namespace, c.namespace != "").Resource(c.name).VersionedParams(options, c.codec)
}

func send[T runtime.Object](ctx context.Context, r *rest.Request, result T) (T, error) {
	return result, r.Do(ctx).Into(result)
}

func (c *creator[T, P]) Create(ctx context.Context, object P, options metav1.CreateOptions) (P, error) {
	return send(ctx, c.request(c.client.Post(), &options).Body(object), P(new(T)))
}

func (r *resource[T, L, P, Q]) Get(ctx context.Context, name string, options metav1.GetOptions) (P, error) {
	return send(ctx, r.request(r.client.Get(), &options).Name(name), P(new(T)))
}

func (r *resource[T, L, P, Q]) Update(ctx context.Context, object P, options metav1.UpdateOptions) (P, error) {
	return send(ctx, r.request(r.client.Put(), &options).Name(object.GetName()).Body(object), P(new(T)))
}

func (r *resource[T, L, P, Q]) Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions,
	subresources ...string) (P, error) {
	return send(ctx, r.request(r.client.Patch(kind), &options).Name(name).SubResource(subresources...).Body(patch), P(new(T)))
}

func (r *resource[T, L, P, Q]) List(ctx context.Context, options metav1.ListOptions) (Q, error) {
	return send(ctx, r.request(r.client.Get(), &options).Timeout(timeoutOf(options)), Q(new(L)))
}

func (r *resource[T, L, P, Q]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return r.request(r.client.Get(), &options).Timeout(timeoutOf(options)).Watch(ctx)
}

func timeoutOf(options metav1.ListOptions) time.Duration {
	if options.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*options.TimeoutSeconds) * time.Second
}
