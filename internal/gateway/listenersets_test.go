package gateway_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/plan/gateway/gatewayapi"
)

// setOf returns a ListenerSet of a Gateway with an HTTP listener for each host at port 80.
func setOf(name, gateway string, hosts ...string) *gatewayv1.ListenerSet {
	s := &gatewayv1.ListenerSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(epoch)},
		Spec:       gatewayv1.ListenerSetSpec{ParentRef: gatewayv1.ParentGatewayReference{Name: gatewayv1.ObjectName(gateway)}},
	}
	for _, host := range hosts {
		s.Spec.Listeners = append(s.Spec.Listeners, gatewayv1.ListenerEntry{
			Name: gatewayv1.SectionName(strings.ReplaceAll(host, ".", "-")), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
			Hostname: new(gatewayv1.Hostname(host)),
		})
	}
	return s
}

// takingSets returns a Gateway for one host that takes ListenerSets of namespaces.
func takingSets(name string, number int, from gatewayv1.FromNamespaces) *gatewayv1.Gateway {
	g := gateOf(name, number)
	g.Spec.Listeners[0].Hostname = new(gatewayv1.Hostname(name + ".example.com"))
	g.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: &from}}
	return g
}

// routeOfSet returns a route of a host whose parent is a ListenerSet.
func routeOfSet(name, host, set string) *gatewayv1.HTTPRoute {
	r := routeOf(name, host, "web", set)
	r.Spec.ParentRefs[0].Kind = new(gatewayv1.Kind(gatewayapi.KindSet))
	return r
}

// set returns the conditions of a ListenerSet as text.
func (w *cluster) set(name string) string {
	w.t.Helper()
	s, err := w.api.GatewayV1().ListenerSets("default").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return told(s.Status.Conditions, "Accepted", "Programmed")
}

// TestListenerSets has the scenarios of ListenerSets that come, change and go.
func TestListenerSets(t *testing.T) {
	const programmed = " Programmed=True/Programmed@1"
	scenario(t, "I71 a ListenerSet and its route come and go", func(t *testing.T) {
		w := newAPICluster(t, takingSets("one", 1, gatewayv1.NamespacesFromSame))
		w.start()
		defer w.stop()
		want(t, "hosts", w.hosts(), "")
		w.apply(setOf("more", "one", "a.example.com", "one.example.com"))
		w.apply(routeOfSet("web", "a.example.com", "more"))
		w.pass(5 * time.Second)
		want(t, "hosts", w.hosts(), "a.example.com")
		want(t, "set", w.set("more"), "Accepted=True/ListenersNotValid@1"+programmed)
		want(t, "route", w.parents("web"), "more "+accepted)
		want(t, "attached sets", *w.gateway("one").Status.AttachedListenerSets, 1)
		s, err := w.api.GatewayV1().ListenerSets("default").Get(t.Context(), "more", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "attached routes", s.Status.Listeners[0].AttachedRoutes, 1)
		want(t, "conflict", told(s.Status.Listeners[1].Conditions, "Conflicted"), "Conflicted=True/HostnameConflict@1")

		before := len(w.api.Actions())
		w.Forget()
		w.pass(time.Hour)
		want(t, "writes in an hour", len(w.Writes()), 0)
		want(t, "requests to the API server in an hour", len(w.api.Actions()), before)

		if err := w.api.GatewayV1().ListenerSets("default").Delete(t.Context(), "more", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		want(t, "hosts", w.hosts(), "")
		want(t, "route", w.parents("web"), "")
		want(t, "attached sets", *w.gateway("one").Status.AttachedListenerSets, 0)
	})
	scenario(t, "I71 a Gateway begins to allow a ListenerSet, and goes", func(t *testing.T) {
		w := newAPICluster(t, takingSets("one", 1, gatewayv1.NamespacesFromNone), setOf("more", "one", "a.example.com"),
			routeOfSet("web", "a.example.com", "more"))
		w.start()
		defer w.stop()
		want(t, "set", w.set("more"), "Accepted=False/NotAllowed@1 Programmed=False/NotAllowed@1")
		want(t, "route", w.parents("web"), "more Accepted=False/NoMatchingParent@1")
		want(t, "hosts", w.hosts(), "")
		w.apply(takingSets("one", 1, gatewayv1.NamespacesFromAll))
		w.pass(5 * time.Second)
		want(t, "set", w.set("more"), accepted+programmed)
		want(t, "route", w.parents("web"), "more "+accepted)
		want(t, "hosts", w.hosts(), "a.example.com")
		w.deleteGateway("one")
		w.pass(5 * time.Second)
		want(t, "hosts", w.hosts(), "")
		want(t, "route", w.parents("web"), "")
	})
	scenario(t, "I71 a Secret of a ListenerSet comes later", func(t *testing.T) {
		s := setOf("more", "one", "a.example.com")
		s.Spec.Listeners[0].Protocol, s.Spec.Listeners[0].Port = gatewayv1.HTTPSProtocolType, 443
		s.Spec.Listeners[0].TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "tls"}}}
		w := newAPICluster(t, takingSets("one", 1, gatewayv1.NamespacesFromSame), s, routeOfSet("web", "a.example.com", "more"))
		w.start()
		defer w.stop()
		want(t, "set", w.set("more"), "Accepted=False/ListenersNotValid@1 Programmed=False/ListenersNotValid@1")
		if _, err := w.kube.CoreV1().Secrets("default").Create(t.Context(), secret(t, "tls"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		want(t, "set", w.set("more"), accepted+programmed)
		want(t, "hosts", w.hosts(), "a.example.com")
	})
}
