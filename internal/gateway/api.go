package gateway

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayinformers "sigs.k8s.io/gateway-api/pkg/client/informers/externalversions"
	gatewaylisters "sigs.k8s.io/gateway-api/pkg/client/listers/apis/v1"

	"kaz/internal/pause"
	"kaz/internal/plan/gateway/gatewayapi"
	"kaz/internal/plan/gateway/ingress"
)

// api is what is known of the objects of the Gateway API, and of what they alone refer to.
type api struct {
	classes    informer[gatewaylisters.GatewayClassLister]
	namespaces informer[corelisters.NamespaceLister]
	scopes     []apiScope
}

// apiScope is a namespace, or all of them. An informer of a kind that the API server does not have is nil.
type apiScope struct {
	gateways   informer[gatewaylisters.GatewayLister]
	routes     informer[gatewaylisters.HTTPRouteLister]
	tcpRoutes  informer[gatewaylisters.TCPRouteLister]
	tlsRoutes  informer[gatewaylisters.TLSRouteLister]
	grants     informer[gatewaylisters.ReferenceGrantLister]
	policies   informer[gatewaylisters.BackendTLSPolicyLister]
	sets       informer[gatewaylisters.ListenerSetLister]
	configMaps informer[corelisters.ConfigMapLister]
}

// Resources of the Gateway API that are served; the first ones must be there.
const (
	classResource, gatewayResource, routeResource = "gatewayclasses", "gateways", "httproutes"
	grantResource, policyResource, setResource    = "referencegrants", "backendtlspolicies", "listenersets"
	tcpResource, tlsResource                      = "tcproutes", "tlsroutes"
)

// optional are the resources that need not be there.
var optional = []string{grantResource, policyResource, setResource, tcpResource, tlsResource}

// askAgain is the time until the API server is asked again for the kinds that it has.
const askAgain = 5 * time.Second

// discover returns the names of the resources of a group that the API server has, none if it has no such group.
func (c Config) discover(ctx context.Context, from discovery.DiscoveryInterface, group schema.GroupVersion) ([]string, error) {
	for {
		list, err := from.ServerResourcesForGroupVersion(group.String())
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err == nil {
			var names []string
			for _, r := range list.APIResources {
				names = append(names, r.Name)
			}
			return names, nil
		}
		c.Log.Warn("cannot ask the API server for its kinds", "group", group.String(), "error", err, "again_in", askAgain.String())
		if err := pause.For(ctx, askAgain); err != nil {
			return nil, err
		}
	}
}

// watchGatewayAPI makes the informers of the Gateway API, if the API server has it.
func (c *Controller) watchGatewayAPI(ctx context.Context) error {
	if c.config.GatewayAPI == nil {
		return nil
	}
	served, err := c.config.discover(ctx, c.config.GatewayAPI.Discovery(), schema.GroupVersion(gatewayv1.GroupVersion))
	if err != nil {
		return err
	}
	has := func(resource string) bool { return slices.Contains(served, resource) }
	if !has(classResource) || !has(gatewayResource) || !has(routeResource) {
		c.config.Log.Info("the API server has no Gateway API; Ingresses alone are served until the controller starts again",
			"wanted", gatewayv1.GroupVersion.String())
		return nil
	}
	if slices.ContainsFunc(optional, func(resource string) bool { return !has(resource) }) {
		c.config.Log.Warn("the API server does not have all kinds of the Gateway API",
			"wanted", optional, "version", gatewayv1.GroupVersion.String(), "has", served)
	}
	c.kube.addAPI(c.config, has)
	return c.listenToAPI()
}

// addAPI adds the informers of the Gateway API.
func (k *kube) addAPI(c Config, has func(resource string) bool) {
	whole := gatewayinformers.NewSharedInformerFactoryWithOptions(c.GatewayAPI, 0, gatewayinformers.WithTransform(slim))
	k.factories = append(k.factories, whole)
	classes, namespaces := whole.Gateway().V1().GatewayClasses(), k.cluster.Core().V1().Namespaces()
	a := &api{
		classes:    informer[gatewaylisters.GatewayClassLister]{classes.Informer(), classes.Lister()},
		namespaces: informer[corelisters.NamespaceLister]{namespaces.Informer(), namespaces.Lister()},
	}
	for n, namespace := range c.namespaces() {
		f := gatewayinformers.NewSharedInformerFactoryWithOptions(c.GatewayAPI, 0, gatewayinformers.WithNamespace(namespace),
			gatewayinformers.WithTransform(slim))
		k.factories = append(k.factories, f)
		a.scopes = append(a.scopes, newAPIScope(f, k.scopes[n].core, has))
	}
	k.api = a
}

func newAPIScope(f gatewayinformers.SharedInformerFactory, core informers.SharedInformerFactory, has func(resource string) bool) apiScope {
	v1, configMaps := f.Gateway().V1(), core.Core().V1().ConfigMaps()
	s := apiScope{
		gateways:   informer[gatewaylisters.GatewayLister]{v1.Gateways().Informer(), v1.Gateways().Lister()},
		routes:     informer[gatewaylisters.HTTPRouteLister]{v1.HTTPRoutes().Informer(), v1.HTTPRoutes().Lister()},
		configMaps: informer[corelisters.ConfigMapLister]{configMaps.Informer(), configMaps.Lister()},
	}
	if has(grantResource) {
		s.grants = informer[gatewaylisters.ReferenceGrantLister]{v1.ReferenceGrants().Informer(), v1.ReferenceGrants().Lister()}
	}
	if has(policyResource) {
		s.policies = informer[gatewaylisters.BackendTLSPolicyLister]{v1.BackendTLSPolicies().Informer(), v1.BackendTLSPolicies().Lister()}
	}
	if has(setResource) {
		s.sets = informer[gatewaylisters.ListenerSetLister]{v1.ListenerSets().Informer(), v1.ListenerSets().Lister()}
	}
	if has(tcpResource) {
		s.tcpRoutes = informer[gatewaylisters.TCPRouteLister]{v1.TCPRoutes().Informer(), v1.TCPRoutes().Lister()}
	}
	if has(tlsResource) {
		s.tlsRoutes = informer[gatewaylisters.TLSRouteLister]{v1.TLSRoutes().Informer(), v1.TLSRoutes().Lister()}
	}
	return s
}

// nameKind gives an object of the Gateway API its kind, which Events about it have. Lists of objects have none.
func nameKind(o any) {
	of, ok := o.(object)
	if !ok {
		return
	}
	if kind := kindOf(of); kind != "" && kind != ingress.Kind {
		of.GetObjectKind().SetGroupVersionKind(schema.GroupVersion(gatewayv1.GroupVersion).WithKind(kind))
	}
}

// authorityKey is the key of a ConfigMap with the certificates of authorities.
const authorityKey = "ca.crt"

// slimConfigMap is a ConfigMap with the certificates of authorities alone.
func slimConfigMap(m *corev1.ConfigMap) *corev1.ConfigMap {
	small := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
	}}
	if text, ok := m.Data[authorityKey]; ok {
		small.Data = map[string]string{authorityKey: text}
	}
	return small
}

// objects returns all objects as they are.
func (a *api) objects() gatewayapi.Objects {
	o := gatewayapi.Objects{Classes: listed(a.classes.list), Namespaces: listed(a.namespaces.list)}
	for _, s := range a.scopes {
		o.Gateways = append(o.Gateways, listed(s.gateways.list)...)
		o.Routes = append(o.Routes, s.allRoutes()...)
		o.ConfigMaps = append(o.ConfigMaps, listed(s.configMaps.list)...)
		if s.grants.list != nil {
			o.Grants = append(o.Grants, listed(s.grants.list)...)
		}
		if s.policies.list != nil {
			o.TLSPolicies = append(o.TLSPolicies, listed(s.policies.list)...)
		}
	}
	o.ListenerSets = a.sets()
	return o
}

// allRoutes returns the routes of all kinds.
func (s apiScope) allRoutes() []gatewayapi.Route {
	all := routesAmong(listed(s.routes.list))
	if s.tcpRoutes.list != nil {
		all = append(all, routesAmong(listed(s.tcpRoutes.list))...)
	}
	if s.tlsRoutes.list != nil {
		all = append(all, routesAmong(listed(s.tlsRoutes.list))...)
	}
	return all
}

// routesAmong returns the objects that are routes.
func routesAmong[T object](objects []T) (all []gatewayapi.Route) {
	for _, o := range objects {
		if gatewayapi.RouteKind(o) != "" {
			all = append(all, o)
		}
	}
	return all
}

// sets returns the ListenerSets.
func (a *api) sets() (all []*gatewayv1.ListenerSet) {
	for _, s := range a.scopes {
		if s.sets.list != nil {
			all = append(all, listed(s.sets.list)...)
		}
	}
	return all
}

// gatewaysOf returns the Gateways of a route by namespace/name.
func (a *api) gatewaysOf(r gatewayapi.Route) []string {
	return gatewayapi.Objects{ListenerSets: a.sets()}.GatewaysOf(r)
}

// isOurs reports whether a Gateway has a class of this controller.
func (a *api) isOurs(g *gatewayv1.Gateway) bool {
	return len(gatewayapi.Objects{Classes: listed(a.classes.list), Gateways: []*gatewayv1.Gateway{g}}.Ours()) > 0
}

// object returns an object, nil if there is none.
func (a *api) object(kind, namespace, name string) object {
	if kind == kindClass {
		return found(a.classes.list.Get(name))
	}
	for _, s := range a.scopes {
		o := s.route(kind, namespace, name)
		switch {
		case kind == gatewayapi.KindGateway:
			o = found(s.gateways.list.Gateways(namespace).Get(name))
		case kind == gatewayapi.KindSet && s.sets.list != nil:
			o = found(s.sets.list.ListenerSets(namespace).Get(name))
		case kind == kindPolicy && s.policies.list != nil:
			o = found(s.policies.list.BackendTLSPolicies(namespace).Get(name))
		}
		if o != nil {
			return o
		}
	}
	return nil
}

// route returns a route, nil if there is none.
func (s apiScope) route(kind, namespace, name string) object {
	switch {
	case kind == gatewayapi.KindRoute:
		return found(s.routes.list.HTTPRoutes(namespace).Get(name))
	case kind == gatewayapi.KindTCPRoute && s.tcpRoutes.list != nil:
		return found(s.tcpRoutes.list.TCPRoutes(namespace).Get(name))
	case kind == gatewayapi.KindTLSRoute && s.tlsRoutes.list != nil:
		return found(s.tlsRoutes.list.TLSRoutes(namespace).Get(name))
	}
	return nil
}

// found returns what a lister has found, nil for nothing.
func found[T object](o T, err error) object {
	if err != nil {
		return nil
	}
	return o
}
