package gateway

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"

	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/plan/gateway/gatewayapi"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/plan/gateway/readiness"
)

// kube is what is known of Kubernetes' objects.
type kube struct {
	scopes    []scope
	cluster   informers.SharedInformerFactory // of what is in no namespace
	classList networkinglisters.IngressClassLister
	factories []factory
	synced    []cache.InformerSynced
	answers   *answers // nil if a scope has it
	// AGIC's objects, none if the API server has no such objects.
	rewrites   rewrites
	prohibited prohibitedTargets
	api        *api // nil if the API server has no Gateway API, or the controller does not serve it
}

// factory has informers.
type factory interface {
	StartWithContext(ctx context.Context)
	Shutdown()
}

// scope is a namespace, or all of them.
type scope struct {
	ingresses informer[networkinglisters.IngressLister]
	services  informer[corelisters.ServiceLister]
	endpoints informer[discoverylisters.EndpointSliceLister]
	secrets   informer[corelisters.SecretLister]
	pods      informer[corelisters.PodLister]

	core informers.SharedInformerFactory
}

// answers is the Service that answers for the application gateway, in a namespace that has no scope.
type answers struct {
	services  informer[corelisters.ServiceLister]
	endpoints informer[discoverylisters.EndpointSliceLister]
}

// informer is an informer with its lister.
type informer[L any] struct {
	cache.SharedIndexInformer
	list L
}

// tlsSecrets is the field selector of Secrets with certificates: no other Secret is read.
const tlsSecrets = "type=" + string(corev1.SecretTypeTLS)

func newKube(c Config) *kube {
	k := &kube{cluster: informers.NewSharedInformerFactory(c.Kube, 0)}
	k.factories = append(k.factories, k.cluster)
	k.classList = k.cluster.Networking().V1().IngressClasses().Lister()
	for _, namespace := range c.namespaces() {
		all := informers.NewSharedInformerFactoryWithOptions(c.Kube, 0, informers.WithNamespace(namespace), informers.WithTransform(slim))
		secrets := informers.NewSharedInformerFactoryWithOptions(c.Kube, 0, informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = tlsSecrets }), informers.WithTransform(slim))
		k.factories = append(k.factories, all, secrets)
		core := all.Core().V1()
		ingresses, endpoints := all.Networking().V1().Ingresses(), all.Discovery().V1().EndpointSlices()
		k.scopes = append(k.scopes, scope{
			ingresses: informer[networkinglisters.IngressLister]{ingresses.Informer(), ingresses.Lister()},
			services:  informer[corelisters.ServiceLister]{core.Services().Informer(), core.Services().Lister()},
			endpoints: informer[discoverylisters.EndpointSliceLister]{endpoints.Informer(), endpoints.Lister()},
			secrets:   informer[corelisters.SecretLister]{secrets.Core().V1().Secrets().Informer(), secrets.Core().V1().Secrets().Lister()},
			pods:      informer[corelisters.PodLister]{core.Pods().Informer(), core.Pods().Lister()},
			core:      all,
		})
	}
	if namespace, name, ok := strings.Cut(c.Answers, "/"); ok && len(c.Namespaces) > 0 && !slices.Contains(c.Namespaces, namespace) {
		k.addAnswers(c, namespace, name)
	}
	return k
}

// addAnswers adds informers of one Service.
func (k *kube) addAnswers(c Config, namespace, name string) {
	of := func(tweak func(o *metav1.ListOptions)) informers.SharedInformerFactory {
		f := informers.NewSharedInformerFactoryWithOptions(c.Kube, 0, informers.WithNamespace(namespace), informers.WithTransform(slim),
			informers.WithTweakListOptions(tweak))
		k.factories = append(k.factories, f)
		return f
	}
	services := of(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}).Core().V1().Services()
	endpoints := of(func(o *metav1.ListOptions) {
		o.LabelSelector = labels.SelectorFromSet(labels.Set{discovery.LabelServiceName: name}).String()
	}).Discovery().V1().EndpointSlices()
	k.answers = &answers{
		services:  informer[corelisters.ServiceLister]{services.Informer(), services.Lister()},
		endpoints: informer[discoverylisters.EndpointSliceLister]{endpoints.Informer(), endpoints.Lister()},
	}
}

// namespaces returns the namespaces of the objects that are served; that of all stands for any.
func (c Config) namespaces() []string {
	if len(c.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return c.Namespaces
}

// slim leaves out what the controller does not read. Pods and ConfigMaps are many and large: of a pod, its labels, ports, probes
// and what its readiness follows from are kept, and of a ConfigMap the certificates of authorities.
func slim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	nameKind(object)
	if m, ok := object.(*corev1.ConfigMap); ok {
		return slimConfigMap(m), nil
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	small := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels,
		DeletionTimestamp: pod.DeletionTimestamp,
	}}
	if readiness.Has(pod) {
		small.Spec.ReadinessGates = pod.Spec.ReadinessGates
		small.Status.Conditions, small.Status.PodIPs = pod.Status.Conditions, pod.Status.PodIPs
	}
	for _, c := range pod.Spec.Containers {
		small.Spec.Containers = append(small.Spec.Containers,
			corev1.Container{Name: c.Name, Ports: c.Ports, ReadinessProbe: c.ReadinessProbe, LivenessProbe: c.LivenessProbe})
	}
	return small, nil
}

// start starts the informers. The result waits for their end, which ctx brings.
func (k *kube) start(ctx context.Context) (stop func()) {
	for _, f := range k.factories {
		f.StartWithContext(ctx)
	}
	return func() {
		for _, f := range k.factories {
			f.Shutdown()
		}
	}
}

func (k *kube) wait(ctx context.Context) error { return waitForCaches(ctx, k.synced) }

// listen registers a handler. The controller waits until the handler has got what was there at the start.
func (k *kube) listen(i cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
	registration, err := i.AddEventHandler(handler)
	if err == nil {
		k.synced = append(k.synced, registration.HasSynced)
	}
	return err
}

// lister lists objects of a type.
type lister[T runtime.Object] interface {
	List(selector labels.Selector) ([]T, error)
}

// listed returns the objects of a lister in memory.
func listed[T runtime.Object](l lister[T]) []T {
	all, err := l.List(labels.Everything())
	if err != nil {
		return nil // a cache in memory does not fail
	}
	return all
}

func (k *kube) ingresses() (all []*networking.Ingress) {
	for _, s := range k.scopes {
		all = append(all, listed(s.ingresses.list)...)
	}
	return all
}

func (k *kube) classes() []*networking.IngressClass { return listed(k.classList) }

// objects returns what Ingresses refer to.
func (k *kube) objects() *cluster.Objects {
	var services []*corev1.Service
	var endpoints []*discovery.EndpointSlice
	var secrets []*corev1.Secret
	var pods []*corev1.Pod
	for _, s := range k.scopes {
		services = append(services, listed(s.services.list)...)
		endpoints = append(endpoints, listed(s.endpoints.list)...)
		secrets = append(secrets, listed(s.secrets.list)...)
		pods = append(pods, listed(s.pods.list)...)
	}
	if k.answers != nil {
		services = append(services, listed(k.answers.services.list)...)
		endpoints = append(endpoints, listed(k.answers.endpoints.list)...)
	}
	return cluster.New(services, endpoints, secrets, pods)
}

// routes returns the routes of all kinds.
func (k *kube) routes() []gatewayapi.Route {
	if k.api == nil {
		return nil
	}
	return k.api.objects().Routes
}

// object returns an object by its key, nil if there is none.
func (k *kube) object(key string) object {
	kind, namespace, name := split(key)
	if kind != ingress.Kind {
		if k.api == nil {
			return nil
		}
		return k.api.object(kind, namespace, name)
	}
	for _, s := range k.scopes {
		if i, err := s.ingresses.list.Ingresses(namespace).Get(name); err == nil {
			return i
		}
	}
	return nil
}
