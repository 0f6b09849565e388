package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayfake "sigs.k8s.io/gateway-api/pkg/client/clientset/versioned/fake"

	"kaz/internal/azure"
	"kaz/internal/gateway/explain"
	"kaz/internal/picture"
	"kaz/internal/plan/gateway/gatewayapi"
	"kaz/internal/plan/gateway/prohibited"
	"kaz/internal/plan/gateway/rewriteobject"
)

// serveAPI gives the cluster's API server the Gateway API with objects.
func (w *cluster) serveAPI(objects ...runtime.Object) {
	w.t.Helper()
	api := gatewayfake.NewSimpleClientset()
	list := &metav1.APIResourceList{GroupVersion: gatewayv1.GroupVersion.String()}
	resources := map[string]string{"*v1.GatewayClass": "gatewayclasses", "*v1.Gateway": "gateways", "*v1.HTTPRoute": "httproutes",
		"*v1.ReferenceGrant": "referencegrants", "*v1.BackendTLSPolicy": "backendtlspolicies", "*v1.ListenerSet": "listenersets", "*v1.TCPRoute": "tcproutes", "*v1.TLSRoute": "tlsroutes"}
	for _, name := range resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	api.Resources = append(api.Resources, list)
	for _, o := range objects {
		m := o.(metav1.Object)
		resource := schema.GroupVersion(gatewayv1.GroupVersion).WithResource(resources[fmt.Sprintf("%T", o)])
		if err := api.Tracker().Create(resource, o, m.GetNamespace()); err != nil {
			w.t.Fatal(err)
		}
	}
	w.clients.GatewayAPI = api
}

func gatewayClass() *gatewayv1.GatewayClass {
	return &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "azure"},
		Spec: gatewayv1.GatewayClassSpec{ControllerName: gatewayapi.Controller}}
}

// gate is the Gateway shop/gate with an HTTP listener and an HTTPS one for *.example.com.
func gate(change ...func(*gatewayv1.Gateway)) *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gate", Generation: 1,
		CreationTimestamp: metav1.NewTime(epoch)}}
	g.Spec = gatewayv1.GatewaySpec{GatewayClassName: "azure", Listeners: []gatewayv1.Listener{
		{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType},
		{Name: "https", Port: 443, Protocol: gatewayv1.HTTPSProtocolType, Hostname: new(gatewayv1.Hostname("*.example.com")),
			TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "tls"}}}},
	}}
	for _, c := range change {
		c(g)
	}
	return g
}

// streamed is a TCPRoute or a TLSRoute of the Service api at a listener.
func streamed(r gatewayapi.Route, listener gatewayv1.SectionName) gatewayapi.Route {
	r.SetNamespace("shop")
	r.SetName(string(listener))
	r.SetGeneration(1)
	r.SetCreationTimestamp(metav1.NewTime(epoch))
	parents := gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "gate", SectionName: &listener}}}
	backends := []gatewayv1.BackendRef{{BackendObjectReference: gatewayv1.BackendObjectReference{
		Name: "api", Port: new(gatewayv1.PortNumber(80)),
	}}}
	switch r := r.(type) {
	case *gatewayv1.TCPRoute:
		r.Spec = gatewayv1.TCPRouteSpec{CommonRouteSpec: parents, Rules: []gatewayv1.TCPRouteRule{{BackendRefs: backends}}}
	case *gatewayv1.TLSRoute:
		r.Spec = gatewayv1.TLSRouteSpec{CommonRouteSpec: parents, Rules: []gatewayv1.TLSRouteRule{{BackendRefs: backends}},
			Hostnames: []gatewayv1.Hostname{"mqtt.example.com"}}
	}
	return r
}

// routed is the HTTPRoute shop/web with a rule for each path and Service.
func routed(rules []string, change ...func(*gatewayv1.HTTPRoute)) *gatewayv1.HTTPRoute {
	r := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1,
		CreationTimestamp: metav1.NewTime(epoch)}}
	r.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "gate"}}
	r.Spec.Hostnames = []gatewayv1.Hostname{"a.example.com"}
	for _, text := range rules {
		path, service, _ := strings.Cut(text, " ")
		r.Spec.Rules = append(r.Spec.Rules, gatewayv1.HTTPRouteRule{
			Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: new(gatewayv1.PathMatchPathPrefix), Value: &path}}},
			BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{
				Name: gatewayv1.ObjectName(service), Port: new(gatewayv1.PortNumber(80))}}}},
		})
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func (w *cluster) explainAPI(kind, name string, from explain.Azure) (explain.Common, string, any) {
	w.t.Helper()
	facts, err := explain.Gather(w.t.Context(), w.clients, from, w.config, explain.Subject{Kind: kind, Namespace: "shop", Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	if kind == gatewayapi.KindGateway {
		v, err := facts.ExplainGateway(epoch)
		if err != nil {
			w.t.Fatal(err)
		}
		return v.Common, v.String(), v
	}
	v, err := facts.ExplainRoute(epoch)
	if err != nil {
		w.t.Fatal(err)
	}
	return v.Common, v.String(), v
}

// TestGatewayAPI compares the explanations of Gateways and routes in each state with the files in testdata.
func TestGatewayAPI(t *testing.T) {
	good := secret(t, "tls", epoch.AddDate(9, 0, 0))
	both := []string{"/ web", "/api api"}
	serve := func(w *cluster) { w.serve(); w.health() }
	for name, c := range map[string]struct {
		azure          func(*cluster)
		objects        []runtime.Object
		gateway, route explain.State
	}{
		"served": {serve, []runtime.Object{gate(), routed(both)}, explain.Served, explain.Served},
		"new":    {nil, []runtime.Object{gate(), routed(both)}, explain.Pending, explain.Pending},
		"partly": {serve, []runtime.Object{gate(), routed([]string{"/ web", "/none none"}, func(r *gatewayv1.HTTPRoute) {
			r.Spec.ParentRefs = append(r.Spec.ParentRefs, gatewayv1.ParentReference{Name: "other"})
			r.Spec.Rules[1].Filters = []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterRequestMirror}}
			r.Spec.Rules[0].BackendRefs = append(r.Spec.Rules[0].BackendRefs, r.Spec.Rules[1].BackendRefs...)
		})}, explain.Served, explain.Served},
		"stopped": {func(w *cluster) { w.serve(); w.stopGateway() }, []runtime.Object{gate(), routed(both)}, explain.Held, explain.Held},
		"refused listener": {serve, []runtime.Object{gate(func(g *gatewayv1.Gateway) {
			g.Spec.Listeners = g.Spec.Listeners[1:]
			g.Spec.Listeners[0].TLS.CertificateRefs[0].Name = "none"
		}), routed(both)}, explain.Unserved, explain.Unserved},
		"address": {nil, []runtime.Object{gate(func(g *gatewayv1.Gateway) {
			g.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "203.0.113.9"}}
		}), routed(both)}, explain.Unserved, explain.Unserved},
		"listener set": {serve, []runtime.Object{gate(func(g *gatewayv1.Gateway) {
			g.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: new(gatewayv1.NamespacesFromSame)}}
		}), &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "more", Generation: 1},
			Spec: gatewayv1.ListenerSetSpec{ParentRef: gatewayv1.ParentGatewayReference{Name: "gate"}, Listeners: []gatewayv1.ListenerEntry{
				{Name: "more", Port: 8080, Protocol: gatewayv1.HTTPProtocolType}}}},
			routed(both, func(r *gatewayv1.HTTPRoute) {
				r.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "more", Kind: new(gatewayv1.Kind("ListenerSet"))}}
			})}, explain.Served, explain.Served},
		"streams": {serve, []runtime.Object{gate(func(g *gatewayv1.Gateway) {
			g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{Name: "tcp", Port: 5432, Protocol: gatewayv1.TCPProtocolType},
				gatewayv1.Listener{Name: "tls", Port: 8883, Protocol: gatewayv1.TLSProtocolType, TLS: g.Spec.Listeners[1].TLS})
		}), routed(both), streamed(&gatewayv1.TCPRoute{}, "tcp").(*gatewayv1.TCPRoute), streamed(&gatewayv1.TLSRoute{}, "tls").(*gatewayv1.TLSRoute)},
			explain.Served, explain.Served},
		"class": {nil, []runtime.Object{gate(func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = "nginx" }), routed(both)},
			explain.Foreign, explain.Foreign},
		"elsewhere": {func(w *cluster) { w.config.Applications = []azure.ID{gatewayID, gatewayID + "2"} },
			[]runtime.Object{gate(func(g *gatewayv1.Gateway) {
				g.Status.Addresses = []gatewayv1.GatewayStatusAddress{{Value: "203.0.113.9"}}
			}), routed(both)}, explain.Foreign, explain.Foreign},
		"namespace": {func(w *cluster) { w.config.Namespaces = []string{"other"} }, []runtime.Object{gate(), routed(both)},
			explain.Foreign, explain.Foreign},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backends := append(service("web", "10.240.0.10", "10.240.0.11"), service("api", "10.240.0.20")...)
				w := newCluster(t, append(backends, class(), good)...)
				w.serveAPI(append(c.objects, gatewayClass())...)
				if c.azure != nil {
					c.azure(w)
				}
				states := map[string]explain.State{"Gateway": c.gateway, "HTTPRoute": c.route}
				if name == "streams" {
					states["TCPRoute"], states["TLSRoute"] = explain.Served, explain.Served
				}
				for kind, state := range states {
					object := map[string]string{"Gateway": "gate", "HTTPRoute": "web", "TCPRoute": "tcp", "TLSRoute": "tls"}[kind]
					got, text, v := w.explainAPI(kind, object, reader{w.Client.Fresh(), w.Client})
					if got.State != state {
						t.Errorf("the state of the %s is %s, want %s", kind, got.State, state)
					}
					file := strings.ToLower(kind) + "-" + strings.ReplaceAll(name, " ", "-")
					golden(t, file+".txt", text)
					if name == "served" {
						golden(t, file+".svg", v.(interface{ Picture() picture.Picture }).Picture().Inline(nil))
						checkFormats(t, file, v)
					}
				}
			})
		})
	}
}

// TestReadsOfGatewayAPI counts the requests to Azure about a route of many.
func TestReadsOfGatewayAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, append(service("web", "10.240.0.10"), class())...)
		objects := []runtime.Object{gatewayClass(), gate(), routed([]string{"/ web"})}
		for n := range 20 {
			objects = append(objects, routed([]string{"/ web"}, func(r *gatewayv1.HTTPRoute) {
				r.Name, r.Spec.Hostnames[0] = fmt.Sprint("more", n), gatewayv1.Hostname(fmt.Sprintf("m%d.example.com", n))
			}))
		}
		w.serveAPI(objects...)
		w.serve()
		for kind, name := range map[string]string{"Gateway": "gate", "HTTPRoute": "web"} {
			count := &counting{reader: reader{w.Client.Fresh(), w.Client}}
			w.explainAPI(kind, name, count)
			if count.gets != 2 || count.lists != 0 || count.begun != 1 {
				t.Errorf("%s: %d reads, %d lists and %d actions, want 2, 0 and 1", kind, count.gets, count.lists, count.begun)
			}
		}
	})
}

// TestSameInput checks that an Ingress is explained with all that the controller decides with: a rewrite object, and a Gateway that has its
// host at its port first. Nothing is to be written after the controller's write.
func TestSameInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, append(append(service("web", "10.240.0.10"), service("api", "10.240.0.20")...), class(),
			shop("web", "a.example.com", []string{"/ web", "/own web"}, younger, annotated("rewrite-rule-set-custom-resource", "rules")))...)
		w.serveAPI(gatewayClass(), gate(), routed([]string{"/ api"}))
		w.serveRewrites(object{"rewriteRules": []any{object{"name": "one", "ruleSequence": int64(1), "actions": object{
			"requestHeaderConfigurations": []any{object{"actionType": "set", "headerName": "X-Set", "headerValue": "one"}}}}}})
		w.serve()
		v := w.explain(reader{w.Client.Fresh(), w.Client})
		if v.State != explain.Served || len(v.Waits) > 0 {
			t.Errorf("%s, waits for %q", v.State, v.Waits)
		}
		for _, text := range []string{"HTTPRoute/shop/web", "rewritten by k8s-0c1d2e3f-crd-shop-rules"} {
			if !strings.Contains(v.String(), text) {
				t.Errorf("the explanation has no %s:\n%s", text, v)
			}
		}
	})
}

// TestProhibited checks that an Ingress is explained with AGIC's objects of what Ingresses do not get.
func TestProhibited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, append(service("web", "10.240.0.10"), class(), shop("web", "a.example.com", []string{"/ web"}))...)
		w.kube.Resources = append(w.kube.Resources, &metav1.APIResourceList{
			GroupVersion: prohibited.Group + "/" + prohibited.Version,
			APIResources: []metav1.APIResource{{Name: prohibited.Resource, Kind: prohibited.Kind, Namespaced: true}},
		})
		w.clients.Dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{prohibited.GroupVersionResource(): prohibited.Kind + "List"},
			&unstructured.Unstructured{Object: object{"apiVersion": prohibited.Group + "/" + prohibited.Version, "kind": prohibited.Kind,
				"metadata": object{"namespace": "other", "name": "one"}, "spec": object{"hostname": "a.example.com"}}})
		w.serve()
		v := w.explain(reader{w.Client.Fresh(), w.Client})
		if text := "AzureIngressProhibitedTarget other/one"; v.State == explain.Served || !strings.Contains(v.String(), text) {
			t.Errorf("%s, want one that is not served and %s:\n%s", v.State, text, v)
		}
	})
}

// serveRewrites gives the cluster's API server a rewrite object shop/rules.
func (w *cluster) serveRewrites(spec object) {
	w.t.Helper()
	w.kube.Resources = append(w.kube.Resources, &metav1.APIResourceList{
		GroupVersion: rewriteobject.Group + "/" + rewriteobject.Version,
		APIResources: []metav1.APIResource{{Name: rewriteobject.Resource, Kind: rewriteobject.Kind, Namespaced: true}},
	})
	w.clients.Dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{rewriteobject.GroupVersionResource(): rewriteobject.Kind + "List"},
		&unstructured.Unstructured{Object: object{"apiVersion": rewriteobject.Group + "/" + rewriteobject.Version,
			"kind": rewriteobject.Kind, "metadata": object{"namespace": "shop", "name": "rules"}, "spec": spec}})
}

// TestGatherRefusesAPI checks what cannot be explained of the Gateway API.
func TestGatherRefusesAPI(t *testing.T) {
	w := newCluster(t)
	gather := func() error {
		_, err := explain.Gather(t.Context(), w.clients, reader{w.Client.Fresh(), w.Client}, w.config,
			explain.Subject{Kind: "HTTPRoute", Namespace: "shop", Name: "web"})
		return err
	}
	want := "the controller serves no HTTPRoute: the API server has no gateway.networking.k8s.io/v1, or the controller has --gateway-api=false"
	if err := gather(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	w.serveAPI(gatewayClass())
	want = `read HTTPRoute shop/web: httproutes.gateway.networking.k8s.io "web" not found`
	if err := gather(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
