package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayfake "sigs.k8s.io/gateway-api/pkg/client/clientset/versioned/fake"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/gateway/gatewayapi"
)

// apiResources are the resources of the Gateway API by the Go types of their objects.
var apiResources = map[string]string{
	"*v1.GatewayClass": "gatewayclasses", "*v1.Gateway": "gateways", "*v1.HTTPRoute": "httproutes", "*v1.ReferenceGrant": "referencegrants",
	"*v1.BackendTLSPolicy": "backendtlspolicies", "*v1.ListenerSet": "listenersets", "*v1.TCPRoute": "tcproutes", "*v1.TLSRoute": "tlsroutes",
}

// serveAPI gives the cluster's API server the Gateway API with objects.
func (w *cluster) serveAPI(objects ...runtime.Object) {
	w.t.Helper()
	w.api = gatewayfake.NewSimpleClientset()
	list := &metav1.APIResourceList{GroupVersion: gatewayv1.GroupVersion.String()}
	for _, name := range apiResources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	w.api.Resources = append(w.api.Resources, list)
	w.config.GatewayAPI = w.api
	for _, o := range objects {
		w.apply(o)
	}
}

// apply writes an object of the Gateway API. The status of one that is there stays, and its generation grows.
func (w *cluster) apply(o runtime.Object) {
	w.t.Helper()
	resource := schema.GroupVersion(gatewayv1.GroupVersion).WithResource(apiResources[fmt.Sprintf("%T", o)])
	m, err := meta.Accessor(o)
	if err != nil {
		w.t.Fatal(err)
	}
	have, err := w.api.Tracker().Get(resource, m.GetNamespace(), m.GetName())
	if err != nil {
		m.SetGeneration(1)
		err = w.api.Tracker().Create(resource, o, m.GetNamespace())
	} else {
		was, _ := meta.Accessor(have)
		m.SetGeneration(was.GetGeneration() + 1)
		switch o := o.(type) {
		case *gatewayv1.Gateway:
			o.Status = have.(*gatewayv1.Gateway).Status
		case *gatewayv1.HTTPRoute:
			o.Status = have.(*gatewayv1.HTTPRoute).Status
		case *gatewayv1.TCPRoute:
			o.Status = have.(*gatewayv1.TCPRoute).Status
		}
		err = w.api.Tracker().Update(resource, o, m.GetNamespace())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *cluster) deleteGateway(name string) {
	w.t.Helper()
	if err := w.api.GatewayV1().Gateways("default").Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func gatewayClass() *gatewayv1.GatewayClass {
	return &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: "azure"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: gatewayapi.Controller},
	}
}

// gateOf returns a Gateway with an HTTP listener at port 80 for any host. The number orders Gateways by age.
func gateOf(name string, number int) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(number) * time.Second)),
		},
		Spec: gatewayv1.GatewaySpec{
			GatewayClassName: "azure", Listeners: []gatewayv1.Listener{{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
		},
	}
}

// routeOf returns a route of a host to port 80 of a Service, with Gateways as its parents.
func routeOf(name, host, service string, parents ...string) *gatewayv1.HTTPRoute {
	r := &gatewayv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(epoch)},
		Spec: gatewayv1.HTTPRouteSpec{Hostnames: []gatewayv1.Hostname{gatewayv1.Hostname(host)}, Rules: []gatewayv1.HTTPRouteRule{{
			Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: new(gatewayv1.PathMatchPathPrefix), Value: new("/")}}},
			BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
				BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(service), Port: new(gatewayv1.PortNumber(80))},
			}}},
		}}},
	}
	for _, p := range parents {
		r.Spec.ParentRefs = append(r.Spec.ParentRefs, gatewayv1.ParentReference{Name: gatewayv1.ObjectName(p)})
	}
	return r
}

// told returns conditions as text, such as "Accepted=True/Accepted@1".
func told(conditions []metav1.Condition, kinds ...string) string {
	var all []string
	for _, kind := range kinds {
		for _, c := range conditions {
			if c.Type == kind {
				all = append(all, fmt.Sprintf("%s=%s/%s@%d", c.Type, c.Status, c.Reason, c.ObservedGeneration))
			}
		}
	}
	return strings.Join(all, " ")
}

func (w *cluster) gateway(name string) *gatewayv1.Gateway {
	w.t.Helper()
	g, err := w.api.GatewayV1().Gateways("default").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

// programmed returns the conditions of a Gateway and its first address as text.
func (w *cluster) programmed(name string) string {
	w.t.Helper()
	g := w.gateway(name)
	text := told(g.Status.Conditions, "Accepted", "Programmed")
	for _, a := range g.Status.Addresses {
		text += " " + a.Value
	}
	return text
}

func (w *cluster) route(name string) *gatewayv1.HTTPRoute {
	w.t.Helper()
	r, err := w.api.GatewayV1().HTTPRoutes("default").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// parents returns the parents in the status of a route as text, such as "one Accepted=True/Accepted@1".
func (w *cluster) parents(name string) string {
	w.t.Helper()
	var all []string
	for _, p := range w.route(name).Status.Parents {
		all = append(all, string(p.ParentRef.Name)+" "+told(p.Conditions, "Accepted"))
	}
	return strings.Join(all, ", ")
}

// newAPICluster returns a cluster with the Gateway API, a GatewayClass, and a Service web with one endpoint.
func newAPICluster(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class())...)
	w.serveAPI(append([]runtime.Object{gatewayClass()}, objects...)...)
	return w
}

const accepted = "Accepted=True/Accepted@1"

// TestGatewayAPI has the scenarios of Gateways and routes that come, change and go.
func TestGatewayAPI(t *testing.T) {
	scenario(t, "I44 a route is served", func(t *testing.T) {
		w := newAPICluster(t, gateOf("one", 1), routeOf("web", "a.example.com", "web", "one"))
		w.Forget()
		w.start()
		defer w.stop()
		want(t, "writes", strings.Join(w.Writes(), ", "), "PUT gate")
		want(t, "hosts", w.hosts(), "a.example.com")
		want(t, "backends", w.backends(), "10.240.0.10 10.9.9.9")
		want(t, "Gateway", w.programmed("one"), accepted+" Programmed=True/Programmed@1 "+w.address)
		want(t, "attached routes", w.gateway("one").Status.Listeners[0].AttachedRoutes, 1)
		want(t, "route", w.parents("web"), "one "+accepted)
		c, err := w.api.GatewayV1().GatewayClasses().Get(t.Context(), "azure", metav1.GetOptions{})
		if err != nil || told(c.Status.Conditions, "Accepted") != accepted || len(c.Status.SupportedFeatures) == 0 {
			t.Errorf("class %+v, %v", c.Status, err)
		}
		before := len(w.api.Actions())
		w.Forget()
		w.pass(time.Hour)
		want(t, "writes in an hour", len(w.Writes()), 0)
		want(t, "requests to the API server in an hour", len(w.api.Actions()), before)
	})
	scenario(t, "I44 a changed Gateway keeps the times of its conditions", func(t *testing.T) {
		w := newAPICluster(t, gateOf("one", 1), routeOf("web", "a.example.com", "web", "one"))
		w.start()
		defer w.stop()
		since := w.gateway("one").Status.Conditions[0].LastTransitionTime
		w.pass(time.Hour)
		g := gateOf("one", 1)
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{Name: "more", Port: 8080, Protocol: gatewayv1.HTTPProtocolType})
		w.apply(g)
		w.pass(5 * time.Second)
		want(t, "Gateway", w.programmed("one"), "Accepted=True/Accepted@2 Programmed=True/Programmed@2 "+w.address)
		want(t, "listeners", len(w.gateway("one").Status.Listeners), 2)
		want(t, "since", w.gateway("one").Status.Conditions[0].LastTransitionTime.Time.Equal(since.Time), true)
	})
	scenario(t, "a route comes before its Gateway, and stays when that goes", func(t *testing.T) {
		w := newAPICluster(t, routeOf("web", "a.example.com", "web", "one"))
		w.start()
		defer w.stop()
		want(t, "hosts", w.hosts(), "")
		w.apply(gateOf("one", 1))
		w.pass(5 * time.Second)
		want(t, "hosts", w.hosts(), "a.example.com")
		want(t, "route", w.parents("web"), "one "+accepted)
		w.deleteGateway("one")
		w.pass(5 * time.Second)
		want(t, "hosts", w.hosts(), "")
		want(t, "route", w.parents("web"), "")
		w.pass(time.Hour)
		want(t, "doubts", strings.Count(w.log.String(), "nothing is removed"), 0) // there was nothing at the start
	})
	scenario(t, "I17 an endpoint of a route changes", func(t *testing.T) {
		w := newAPICluster(t, gateOf("one", 1), routeOf("web", "a.example.com", "web", "one"))
		w.start()
		defer w.stop()
		w.Forget()
		update(w, endpoints("web", "10.240.0.77"))
		w.pass(5 * time.Second)
		want(t, "backends", w.backends(), "10.240.0.77 10.9.9.9")
		want(t, "writes", w.WritesBy("PUT"), 1)
	})
	scenario(t, "I46 a grant allows a backend", func(t *testing.T) {
		r := routeOf("web", "a.example.com", "far", "one")
		r.Spec.Rules[0].BackendRefs[0].Namespace = new(gatewayv1.Namespace("other"))
		w := newAPICluster(t, gateOf("one", 1), r)
		for _, o := range service("far", "10.240.0.99") {
			m, _ := meta.Accessor(o)
			m.SetNamespace("other")
			if err := w.kube.Tracker().Add(o); err != nil {
				t.Fatal(err)
			}
		}
		w.start()
		defer w.stop()
		want(t, "backends", w.backends(), "10.9.9.9")
		want(t, "route", told(w.route("web").Status.Parents[0].Conditions, "ResolvedRefs"), "ResolvedRefs=False/RefNotPermitted@1")
		w.apply(&gatewayv1.ReferenceGrant{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "web"}, Spec: gatewayv1.ReferenceGrantSpec{
			From: []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: "HTTPRoute", Namespace: "default"}},
			To:   []gatewayv1.ReferenceGrantTo{{Kind: "Service"}},
		}})
		w.pass(5 * time.Second)
		want(t, "backends", w.backends(), "10.240.0.99 10.9.9.9")
		want(t, "route", told(w.route("web").Status.Parents[0].Conditions, "ResolvedRefs"), "ResolvedRefs=True/ResolvedRefs@1")
	})
	scenario(t, "I70 a Secret of a listener comes later", func(t *testing.T) {
		g := gateOf("one", 1)
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{
			Name: "https", Port: 443, Protocol: gatewayv1.HTTPSProtocolType,
			TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "tls"}}},
		})
		w := newAPICluster(t, g, routeOf("web", "a.example.com", "web", "one"))
		w.start()
		defer w.stop()
		listener := func() string {
			return told(w.gateway("one").Status.Listeners[1].Conditions, "ResolvedRefs", "Programmed")
		}
		want(t, "listener", listener(), "ResolvedRefs=False/InvalidCertificateRef@1 Programmed=False/Invalid@1")
		want(t, "hosts", w.hosts(), "a.example.com")
		if err := w.kube.Tracker().Add(secret(t, "tls")); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		want(t, "listener", listener(), "ResolvedRefs=True/ResolvedRefs@1 Programmed=True/Programmed@1")
		want(t, "hosts", w.hosts(), "a.example.com a.example.com")
	})
	scenario(t, "I49 certificates of authorities come later", func(t *testing.T) {
		policy := &gatewayv1.BackendTLSPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tls"}, Spec: gatewayv1.BackendTLSPolicySpec{
			TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{
				LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Kind: "Service", Name: "web"},
			}},
			Validation: gatewayv1.BackendTLSPolicyValidation{
				Hostname: "inner.example.com", CACertificateRefs: []gatewayv1.LocalObjectReference{{Kind: "ConfigMap", Name: "authority"}},
			},
		}}
		policy.Status.Ancestors = []gatewayv1.PolicyAncestorStatus{{ControllerName: "example.com/other"}}
		w := newAPICluster(t, gateOf("one", 1), routeOf("web", "a.example.com", "web", "one"), policy)
		w.start()
		defer w.stop()
		ancestors := func() string {
			p, err := w.api.GatewayV1().BackendTLSPolicies("default").Get(t.Context(), "tls", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, a := range p.Status.Ancestors {
				all = append(all, strings.TrimSpace(string(a.ControllerName)+" "+told(a.Conditions, "Accepted", "ResolvedRefs")))
			}
			return strings.Join(all, ", ")
		}
		want(t, "ancestors", ancestors(),
			"example.com/other, azure/application-gateway Accepted=False/NoValidCACertificate@1 ResolvedRefs=False/InvalidCACertificateRef@1")
		certificate, _ := issue(t)
		authority := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "authority"}, Data: map[string]string{"ca.crt": string(certificate)},
		}
		if err := w.kube.Tracker().Add(authority); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		want(t, "ancestors", ancestors(), "example.com/other, azure/application-gateway "+accepted+" ResolvedRefs=True/ResolvedRefs@1")
		want(t, "backends", w.backends(), "10.240.0.10 10.9.9.9")
		if err := w.api.GatewayV1().HTTPRoutes("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		want(t, "ancestors", ancestors(), "example.com/other")
	})
	scenario(t, "a Service of another namespace answers", func(t *testing.T) {
		r := routeOf("web", "a.example.com", "none", "one")
		w := newAPICluster(t, gateOf("one", 1), r)
		at := func(address string) *discovery.EndpointSlice {
			e := endpoints("answers", address)
			e.Namespace, e.Ports[0].Name, e.Ports[0].Port = "kube-system", new("answers"), new(int32(8124))
			return e
		}
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "answers"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "answers", Port: 8124}}},
		}
		for _, o := range []runtime.Object{s, at("10.240.0.50")} {
			if err := w.kube.Tracker().Add(o); err != nil {
				t.Fatal(err)
			}
		}
		w.config.Namespaces, w.config.Answers = []string{"default"}, "kube-system/answers"
		w.start()
		defer w.stop()
		want(t, "backends", w.backends(), "10.240.0.50 10.9.9.9")
		if err := w.kube.Tracker().Update(discovery.SchemeGroupVersion.WithResource("endpointslices"), at("10.240.0.51"), "kube-system"); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		want(t, "backends", w.backends(), "10.240.0.51 10.9.9.9")
	})
	scenario(t, "labels of a namespace let its routes in", func(t *testing.T) {
		g := gateOf("one", 1)
		g.Spec.Listeners[0].AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{
			From: new(gatewayv1.NamespacesFromSelector), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"web": "yes"}},
		}}
		w := newAPICluster(t, g, routeOf("web", "a.example.com", "web", "one"))
		if err := w.kube.Tracker().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}); err != nil {
			t.Fatal(err)
		}
		w.start()
		defer w.stop()
		want(t, "route", w.parents("web"), "one Accepted=False/NotAllowedByListeners@1")
		labelled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"web": "yes"}}}
		if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("namespaces"), labelled, ""); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		want(t, "route", w.parents("web"), "one "+accepted)
		want(t, "hosts", w.hosts(), "a.example.com")
	})
	scenario(t, "the API server has no Gateway API", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), web("web", "a.example.com", "web", 1))...)
		w.serveAPI()
		w.api.Resources = nil
		w.start()
		defer w.stop()
		want(t, "hosts", w.hosts(), "a.example.com")
		want(t, "lines", strings.Count(w.log.String(), "the API server has no Gateway API"), 1)
	})
	scenario(t, "Ingresses and Gateways are at one application gateway", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), web("web", "a.example.com", "web", 1))...)
		w.serveAPI(gatewayClass(), gateOf("one", 1), routeOf("web", "b.example.com", "web", "one"))
		w.Forget()
		w.start()
		defer w.stop()
		want(t, "hosts", w.hosts(), "a.example.com b.example.com")
		want(t, "writes", w.WritesBy("PUT"), 1)
	})
}

// TestStatuses has the scenarios of statuses that others have written, and of application gateways that are not written.
func TestStatuses(t *testing.T) {
	scenario(t, "the parents of other controllers stay", func(t *testing.T) {
		r := routeOf("web", "a.example.com", "web", "one", "theirs")
		foreign := gatewayv1.RouteParentStatus{
			ParentRef: gatewayv1.ParentReference{Name: "theirs"}, ControllerName: "example.com/other",
			Conditions: []metav1.Condition{{Type: "Accepted", Status: "False", Reason: "Odd", LastTransitionTime: metav1.NewTime(epoch)}},
		}
		gone := gatewayv1.RouteParentStatus{ParentRef: gatewayv1.ParentReference{Name: "gone"}, ControllerName: gatewayapi.Controller}
		r.Status.Parents = []gatewayv1.RouteParentStatus{gone, foreign}
		w := newAPICluster(t, gateOf("one", 1), r)
		w.start()
		defer w.stop()
		want(t, "parents", w.parents("web"), "theirs Accepted=False/Odd@0, one "+accepted)
		want(t, "its time", w.route("web").Status.Parents[0].Conditions[0].LastTransitionTime.Time.Equal(epoch), true)
	})
	scenario(t, "I72 a GatewayClass with parameters", func(t *testing.T) {
		c := gatewayClass()
		c.Name, c.Spec.ParametersRef = "other", &gatewayv1.ParametersReference{Group: "example.com", Kind: "Parameters", Name: "none"}
		w := newAPICluster(t, c)
		w.start()
		defer w.stop()
		now, err := w.api.GatewayV1().GatewayClasses().Get(t.Context(), "other", metav1.GetOptions{})
		if err != nil || len(now.Status.Conditions) != 1 {
			t.Fatal(err, now.Status.Conditions)
		}
		got := now.Status.Conditions[0]
		want(t, "condition", got.Type+"="+string(got.Status)+"/"+got.Reason, "Accepted=False/InvalidParameters")
		want(t, "the message names the object", strings.Contains(got.Message, "spec.parametersRef: Parameters none"), true)
	})
	scenario(t, "I31 a stopped application gateway", func(t *testing.T) {
		w := newAPICluster(t, gateOf("one", 1), routeOf("web", "a.example.com", "web", "one"))
		act := func(action string) {
			if _, err := azure.Do(t.Context(), w.OtherClient(), azure.Request{Verb: azure.Post, ID: gatewayID, Action: action}); err != nil {
				t.Fatal(err)
			}
		}
		act("stop")
		w.Forget()
		w.start()
		defer w.stop()
		want(t, "writes", len(w.Writes()), 0)
		want(t, "Gateway", w.programmed("one"), accepted+" Programmed=False/NoResources@1 "+w.address)
		want(t, "route", w.parents("web"), "one "+accepted)
		act("start")
		w.pass(5 * time.Minute)
		want(t, "Gateway", w.programmed("one"), accepted+" Programmed=True/Programmed@1 "+w.address)
	})
	scenario(t, "there is no application gateway", func(t *testing.T) {
		w := newAPICluster(t, gateOf("one", 1), routeOf("web", "a.example.com", "web", "one"))
		w.config.Gateway = azure.ID(gateways + "none")
		w.start()
		defer w.stop()
		want(t, "Gateway", w.programmed("one"), accepted+" Programmed=False/NoResources@1")
		want(t, "route", w.parents("web"), "one "+accepted)
	})
	scenario(t, "a Gateway is pending during its write", func(t *testing.T) {
		w := newAPICluster(t, gateOf("one", 1), routeOf("web", "a.example.com", "web", "one"))
		w.Azure = w.Restarted(core.Options{Latency: 1})
		w.config.Azure = w.Client
		w.start()
		defer w.stop()
		want(t, "Gateway", w.programmed("one"), accepted+" Programmed=False/Pending@1 "+w.address)
		w.pass(10 * time.Minute)
		want(t, "Gateway", w.programmed("one"), accepted+" Programmed=True/Programmed@1 "+w.address)
	})
	scenario(t, "I24 Azure refuses a route", func(t *testing.T) {
		w := newAPICluster(t, gateOf("one", 1), routeOf("good", "a.example.com", "web", "one"), routeOf("bad", "a7.example.com", "web", "one"))
		w.config.Azure = &refusing{
			fullAzure: w.config.Azure.(fullAzure), target: "name", when: func(body string) bool { return strings.Contains(body, "a7.example.com") },
		}
		w.start()
		defer w.stop()
		w.pass(10 * time.Second)
		want(t, "hosts", w.hosts(), "a.example.com")
		want(t, "good route", w.parents("good"), "one "+accepted)
		want(t, "bad route", w.parents("bad"), "one Accepted=False/AzureRejected@1")
		want(t, "Gateway", w.programmed("one"), accepted+" Programmed=True/Programmed@1 "+w.address)
		want(t, "events", w.events.with("default/bad FailedApplyingAppGwConfig: Azure refuses the application gateway with this HTTPRoute"), 1)
		want(t, "other events", w.events.with("FailedApplyingAppGwConfig"), 1)
		w.apply(routeOf("bad", "b.example.com", "web", "one"))
		w.pass(10 * time.Second)
		want(t, "bad route", w.parents("bad"), "one Accepted=True/Accepted@2")
		want(t, "hosts", w.hosts(), "a.example.com b.example.com")
	})
	scenario(t, "I24 Azure refuses a route at the first write after a start", func(t *testing.T) {
		w := newAPICluster(t, gateOf("one", 1), routeOf("good", "a.example.com", "web", "one"), routeOf("bad", "b.example.com", "web", "one"),
			routeOf("old", "c.example.com", "web", "one"))
		w.start()
		w.stop()
		want(t, "hosts", w.hosts(), "a.example.com b.example.com c.example.com")
		bad := routeOf("bad", "b.example.com", "web", "one")
		bad.Spec.Rules[0].Filters = []gatewayv1.HTTPRouteFilter{{
			Type: gatewayv1.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: &gatewayv1.HTTPHeaderFilter{
				Set: []gatewayv1.HTTPHeader{{Name: "X-Set", Value: "refuse-me"}},
			},
		}}
		w.apply(bad)
		if err := w.api.Tracker().Delete(schema.GroupVersion(gatewayv1.GroupVersion).WithResource("httproutes"), "default", "old"); err != nil {
			t.Fatal(err)
		}
		w.config.Azure = &refusing{
			fullAzure: w.config.Azure.(fullAzure), when: func(body string) bool { return strings.Contains(body, "refuse-me") },
		}
		w.start()
		defer w.stop()
		w.pass(2 * time.Minute)
		want(t, "bad route", w.parents("bad"), "one Accepted=False/AzureRejected@2")
		want(t, "hosts", w.hosts(), "a.example.com b.example.com")
	})
	scenario(t, "I25 Azure refuses a Gateway, and names nothing", func(t *testing.T) {
		g := gateOf("two", 2)
		g.Spec.Listeners[0].Port = 9999
		w := newAPICluster(t, gateOf("one", 1), g, routeOf("good", "a.example.com", "web", "one"), routeOf("bad", "b.example.com", "web", "two"))
		w.config.Azure = &refusing{
			fullAzure: w.config.Azure.(fullAzure), when: func(body string) bool { return strings.Contains(body, "9999") },
		}
		w.start()
		defer w.stop()
		w.pass(10 * time.Second)
		want(t, "hosts", w.hosts(), "a.example.com")
		want(t, "Gateway", w.programmed("one"), accepted+" Programmed=True/Programmed@1 "+w.address)
		refused := strings.Contains(w.programmed("two"), "Programmed=False/Invalid@1") || strings.Contains(w.parents("bad"), "AzureRejected")
		want(t, "the Gateway or its route is refused", refused, true)
	})
}

// TestSeveral has the scenarios of several application gateways.
func TestSeveral(t *testing.T) {
	newSeveral := func(t *testing.T, objects ...runtime.Object) (w *cluster, other azure.ID, address string) {
		w = newAPICluster(t, objects...)
		other = azure.ID(gateways + "other")
		address = w.makeGateway("other", "10.1.0.11")
		w.config.Applications = []azure.ID{gatewayID, other}
		return w, other, address
	}
	scenario(t, "each of two Gateways with one port has its own", func(t *testing.T) {
		w, other, address := newSeveral(t, gateOf("one", 1), gateOf("two", 2), gateOf("three", 3), routeOf("web", "a.example.com", "web", "one"),
			routeOf("api", "b.example.com", "web", "two", "three"))
		w.start()
		defer w.stop()
		want(t, "first", w.hosts(), "a.example.com")
		want(t, "second", w.hostsOf(other), "b.example.com")
		want(t, "one", w.programmed("one"), accepted+" Programmed=True/Programmed@1 "+w.address)
		want(t, "two", w.programmed("two"), accepted+" Programmed=True/Programmed@1 "+address)
		want(t, "three", w.programmed("three"), accepted+" Programmed=False/NoResources@1")
		want(t, "route of two and three", w.parents("api"), "three "+accepted+", two "+accepted)
		w.deleteGateway("one")
		w.pass(5 * time.Second)
		want(t, "first", w.hosts(), "b.example.com")
		want(t, "three", w.programmed("three"), accepted+" Programmed=True/Programmed@1 "+w.address)
		want(t, "two", w.programmed("two"), accepted+" Programmed=True/Programmed@1 "+address)
		want(t, "route of one", w.parents("web"), "")
	})
	scenario(t, "a Gateway stays where it is after a restart", func(t *testing.T) {
		w, other, address := newSeveral(t, gateOf("one", 1), gateOf("two", 2), routeOf("api", "b.example.com", "web", "two"))
		w.start()
		w.stop()
		if err := w.SetFaults([]core.Fault{
			{Method: "GET", Type: network.ApplicationGateways, Name: "other", Fault: "error", Status: 503, Times: 3},
		}); err != nil {
			t.Fatal(err)
		}
		if err := w.api.Tracker().Delete(schema.GroupVersion(gatewayv1.GroupVersion).WithResource("gateways"), "default", "one"); err != nil {
			t.Fatal(err)
		}
		w.Forget()
		w.start()
		defer w.stop()
		w.pass(15 * time.Minute)
		want(t, "second", w.hostsOf(other), "b.example.com")
		want(t, "two", w.programmed("two"), accepted+" Programmed=True/Programmed@1 "+address)
		want(t, "writes", strings.Join(w.Writes(), ", "), "")
	})
	scenario(t, "an unusable application gateway leaves the other one alone", func(t *testing.T) {
		w, other, _ := newSeveral(t, gateOf("one", 1), gateOf("two", 2), routeOf("web", "a.example.com", "web", "one", "two"))
		if _, err := azure.Do(t.Context(), w.OtherClient(), azure.Request{Verb: azure.Delete, ID: other}); err != nil {
			t.Fatal(err)
		}
		w.start()
		defer w.stop()
		want(t, "hosts", w.hosts(), "a.example.com")
		want(t, "one", w.programmed("one"), accepted+" Programmed=True/Programmed@1 "+w.address)
		want(t, "two", w.programmed("two"), accepted+" Programmed=False/NoResources@1")
	})
	scenario(t, "without objects, the API server is asked once more", func(t *testing.T) {
		w, _, _ := newSeveral(t)
		w.start()
		defer w.stop()
		w.pass(2 * time.Minute)
		before := len(w.api.Actions()) + len(w.kube.Actions())
		w.pass(time.Hour)
		want(t, "requests in an hour", len(w.api.Actions())+len(w.kube.Actions()), before)
	})
	scenario(t, "I35 an empty list of Gateways empties no application gateway", func(t *testing.T) {
		w, other, _ := newSeveral(t, gateOf("one", 1), gateOf("two", 2), routeOf("web", "b.example.com", "web", "two"))
		w.start()
		w.stop()
		w.serveAPI(gatewayClass())
		w.Forget()
		w.start()
		defer w.stop()
		w.pass(20 * time.Second)
		want(t, "hosts while the list is new", w.hostsOf(other), "b.example.com")
		w.pass(2 * time.Minute) // a second list is empty, too
		want(t, "hosts", w.hostsOf(other), "")
	})
}
