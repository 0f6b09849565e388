package explain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayclient "sigs.k8s.io/gateway-api/pkg/client/clientset/versioned"

	"kaz/internal/azure"
	"kaz/internal/plan/gateway/gatewayapi"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/plan/gateway/prohibited"
	"kaz/internal/plan/gateway/rewriteobject"
)

// served returns the names of the resources of a group that the API server has, none if it has no such group.
func served(from discovery.DiscoveryInterface, group schema.GroupVersion) ([]string, error) {
	list, err := from.ServerResourcesForGroupVersion(group.String())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the resources of %s: %w", group, err)
	}
	var names []string
	for _, r := range list.APIResources {
		names = append(names, r.Name)
	}
	return names, nil
}

// contents are objects by namespace/name.
type contents map[string]map[string]any

// Rewrite implements [rewriteobject.Reader].
func (c contents) Rewrite(namespace, name string) (map[string]any, bool) {
	o, ok := c[namespace+"/"+name]
	return o, ok
}

// readObjectsOfAGIC reads AGIC's objects with rewrite rules and with what Ingresses do not get, if the API server has such objects.
func (f *Facts) readObjectsOfAGIC(ctx context.Context, clients Clients) error {
	if clients.Dynamic == nil {
		return nil
	}
	found, err := f.contentsOf(ctx, clients, rewriteobject.GroupVersionResource())
	if err != nil {
		return err
	}
	f.Rewrites = found
	if found, err = f.contentsOf(ctx, clients, prohibited.GroupVersionResource()); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if t, err := prohibited.Decode(found[name]); err == nil { // the controller leaves out the others, too
			f.Prohibited = append(f.Prohibited, t)
		}
	}
	return nil
}

// contentsOf lists objects, none if the API server has no such objects.
func (f *Facts) contentsOf(ctx context.Context, clients Clients, resource schema.GroupVersionResource) (contents, error) {
	found := contents{}
	names, err := served(clients.Kube.Discovery(), resource.GroupVersion())
	if err != nil || !slices.Contains(names, resource.Resource) {
		return found, err
	}
	for _, namespace := range f.watched() {
		all, err := clients.Dynamic.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource.Resource, err)
		}
		for _, o := range all.Items {
			found[o.GetNamespace()+"/"+o.GetName()] = o.Object
		}
	}
	return found, nil
}

// readAPI reads the objects of the Gateway API, if the API server has them and the controller serves them.
func (f *Facts) readAPI(ctx context.Context, clients Clients) error {
	var names []string
	if clients.GatewayAPI != nil {
		var err error
		if names, err = served(clients.GatewayAPI.Discovery(), schema.GroupVersion(gatewayv1.GroupVersion)); err != nil {
			return err
		}
	}
	has := func(resource string) bool { return slices.Contains(names, resource) }
	if !has("gatewayclasses") || !has("gateways") || !has("httproutes") {
		if f.Subject.Kind == ingress.Kind || f.Subject.Kind == "" {
			return nil
		}
		return fmt.Errorf("the controller serves no %s: the API server has no %s, or the controller has --gateway-api=false",
			f.Subject.Kind, gatewayv1.GroupVersion)
	}
	if err := f.readClasses(ctx, clients); err != nil {
		return err
	}
	for _, namespace := range f.watched() {
		if err := f.readAPIOf(ctx, clients.GatewayAPI, namespace, has); err != nil {
			return err
		}
	}
	return errors.Join(f.readAuthorities(ctx, clients.Kube), f.readSubject(ctx, clients.GatewayAPI))
}

func (f *Facts) readClasses(ctx context.Context, clients Clients) error {
	classes, err := clients.GatewayAPI.GatewayV1().GatewayClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list gatewayclasses: %w", err)
	}
	namespaces, err := clients.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	f.API.Classes, f.API.Namespaces = pointers(classes.Items), pointers(namespaces.Items)
	return nil
}

// readAPIOf reads the objects of a namespace, or of all.
func (f *Facts) readAPIOf(ctx context.Context, client gatewayclient.Interface, namespace string, has func(string) bool) error {
	v1 := client.GatewayV1()
	gateways, err := v1.Gateways(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list gateways: %w", err)
	}
	routes, err := v1.HTTPRoutes(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list httproutes: %w", err)
	}
	f.API.Gateways = append(f.API.Gateways, pointers(gateways.Items)...)
	addRoutes(f, pointers(routes.Items))
	if err := f.readStreams(ctx, client, namespace, has); err != nil {
		return err
	}
	if has("listenersets") {
		all, err := v1.ListenerSets(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list listenersets: %w", err)
		}
		f.API.ListenerSets = append(f.API.ListenerSets, pointers(all.Items)...)
	}
	if has("referencegrants") {
		all, err := v1.ReferenceGrants(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list referencegrants: %w", err)
		}
		f.API.Grants = append(f.API.Grants, pointers(all.Items)...)
	}
	if has("backendtlspolicies") {
		all, err := v1.BackendTLSPolicies(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list backendtlspolicies: %w", err)
		}
		f.API.TLSPolicies = append(f.API.TLSPolicies, pointers(all.Items)...)
	}
	return nil
}

// readStreams reads the TCPRoutes and TLSRoutes of a namespace, or of all.
func (f *Facts) readStreams(ctx context.Context, client gatewayclient.Interface, namespace string, has func(string) bool) error {
	v1 := client.GatewayV1()
	if has("tcproutes") {
		all, err := v1.TCPRoutes(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list tcproutes: %w", err)
		}
		addRoutes(f, pointers(all.Items))
	}
	if has("tlsroutes") {
		all, err := v1.TLSRoutes(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list tlsroutes: %w", err)
		}
		addRoutes(f, pointers(all.Items))
	}
	return nil
}

func addRoutes[T gatewayapi.Route](f *Facts, routes []T) {
	for _, r := range routes {
		f.API.Routes = append(f.API.Routes, r)
	}
}

// readAuthorities reads the ConfigMaps of policies alone: there are many others.
func (f *Facts) readAuthorities(ctx context.Context, client kubernetes.Interface) error {
	read := map[string]bool{}
	for _, p := range f.API.TLSPolicies {
		for _, ref := range p.Spec.Validation.CACertificateRefs {
			key := p.Namespace + "/" + string(ref.Name)
			if ref.Kind != "ConfigMap" || read[key] {
				continue
			}
			read[key] = true
			m, err := client.CoreV1().ConfigMaps(p.Namespace).Get(ctx, string(ref.Name), metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("read configmap %s/%s: %w", p.Namespace, ref.Name, err)
			}
			f.API.ConfigMaps = append(f.API.ConfigMaps, m)
		}
	}
	return nil
}

// readSubject reads the subject if it is an object of the Gateway API: the controller need not watch its namespace.
func (f *Facts) readSubject(ctx context.Context, client gatewayclient.Interface) error {
	of := f.Subject
	var err error
	switch of.Kind {
	case gatewayapi.KindGateway:
		f.gateway, err = client.GatewayV1().Gateways(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	case gatewayapi.KindRoute:
		f.route, err = client.GatewayV1().HTTPRoutes(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	case gatewayapi.KindTCPRoute:
		f.route, err = client.GatewayV1().TCPRoutes(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	case gatewayapi.KindTLSRoute:
		f.route, err = client.GatewayV1().TLSRoutes(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	}
	if err != nil {
		return fmt.Errorf("read %s %s/%s: %w", of.Kind, of.Namespace, of.Name, err)
	}
	return nil
}

// referred are the Services and Secrets that objects of the Gateway API refer to, by namespace/name.
func (f *Facts) referred() (all []string) {
	for _, g := range f.API.Ours() {
		all = append(append(all, gatewayapi.KeyOf(g)), gatewayapi.GatewayUses(g).Secrets...)
	}
	for _, s := range f.API.ListenerSets {
		all = append(all, gatewayapi.SetUses(s).Secrets...)
	}
	for _, r := range f.API.Routes {
		all = append(all, gatewayapi.RouteUses(r).Services...)
	}
	return all
}

// assign leaves the Gateways that this application gateway serves. Of several application gateways, only the addresses of this one are
// known: a Gateway with another address is at another one.
func (f *Facts) assign() {
	id := f.Gateway
	own := slices.DeleteFunc([]string{f.PublicIP, f.PrivateIP}, func(a string) bool { return a == "" })
	applications := slices.Clone(f.Applications)
	if !slices.Contains(applications, id) {
		applications = append(applications, id)
	}
	o := f.API
	if len(applications) > 1 {
		o.Gateways = slices.DeleteFunc(slices.Clone(o.Gateways), func(g *gatewayv1.Gateway) bool {
			address := gatewayapi.AddressOf(g)
			return address != "" && !slices.Contains(own, address)
		})
	}
	at := gatewayapi.Assign(o, applications, map[azure.ID][]string{id: own})
	f.API.Gateways = slices.DeleteFunc(slices.Clone(o.Gateways), func(g *gatewayv1.Gateway) bool {
		return at[gatewayapi.KeyOf(g)] != id
	})
}
