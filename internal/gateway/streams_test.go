package gateway_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/localazure/core"
	localgateway "kaz/internal/localazure/plane/gateway"
	"kaz/internal/plan/gateway/gatewayapi"
)

// streamsOf returns a Gateway with an HTTP listener at port 80, one for TCP at 5432 and one for TLS at 8883.
func streamsOf(name string) *gatewayv1.Gateway {
	g := gateOf(name, 1)
	g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{Name: "tcp", Port: 5432, Protocol: gatewayv1.TCPProtocolType},
		gatewayv1.Listener{Name: "tls", Port: 8883, Protocol: gatewayv1.TLSProtocolType, TLS: &gatewayv1.ListenerTLSConfig{
			CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "tls"}},
		}})
	return g
}

func backendsOf(service string) []gatewayv1.BackendRef {
	return []gatewayv1.BackendRef{{BackendObjectReference: gatewayv1.BackendObjectReference{
		Name: gatewayv1.ObjectName(service), Port: new(gatewayv1.PortNumber(80)),
	}}}
}

// tcpOf returns a TCPRoute at a listener of a Gateway to port 80 of a Service. The number orders routes by age.
func tcpOf(name, service, gateway string, number int) *gatewayv1.TCPRoute {
	return &gatewayv1.TCPRoute{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(number) * time.Second)),
		},
		Spec: gatewayv1.TCPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{
				Name: gatewayv1.ObjectName(gateway), SectionName: new(gatewayv1.SectionName("tcp")),
			}}},
			Rules: []gatewayv1.TCPRouteRule{{BackendRefs: backendsOf(service)}},
		},
	}
}

// tlsOf returns a TLSRoute of a server name.
func tlsOf(name, host, service, gateway string) *gatewayv1.TLSRoute {
	return &gatewayv1.TLSRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(epoch)},
		Spec: gatewayv1.TLSRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{
				Name: gatewayv1.ObjectName(gateway), SectionName: new(gatewayv1.SectionName("tls")),
			}}},
			Hostnames: []gatewayv1.Hostname{gatewayv1.Hostname(host)},
			Rules:     []gatewayv1.TLSRouteRule{{BackendRefs: backendsOf(service)}},
		},
	}
}

// streamStatus returns the conditions of a TCPRoute or a TLSRoute as text.
func (w *cluster) streamStatus(kind, name string) string {
	w.t.Helper()
	var route gatewayapi.Route
	var err error
	if kind == gatewayapi.KindTCPRoute {
		route, err = w.api.GatewayV1().TCPRoutes("default").Get(w.t.Context(), name, metav1.GetOptions{})
	} else {
		route, err = w.api.GatewayV1().TLSRoutes("default").Get(w.t.Context(), name, metav1.GetOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	_, parents := gatewayapi.ParentsOf(route)
	for _, p := range *parents {
		all = append(all, string(p.ParentRef.Name)+" "+told(p.Conditions, "Accepted", "ResolvedRefs", "PartiallyInvalid"))
	}
	return strings.Join(all, ", ")
}

// streams returns the listeners of TCP and TLS as text.
func (w *cluster) streams() string {
	w.t.Helper()
	var all []string
	for _, l := range w.gate().Properties.StreamListeners {
		all = append(all, strings.TrimSpace(l.Properties.Protocol+" "+strings.Join(l.Properties.HostNames, " ")))
	}
	return strings.Join(all, ", ")
}

const resolved = " ResolvedRefs=True/ResolvedRefs@1"

func TestStreams(t *testing.T) {
	scenario(t, "L1 routes of TCP and TLS are served", func(t *testing.T) {
		w := newAPICluster(t, streamsOf("one"), tcpOf("db", "web", "one", 1), tlsOf("mqtt", "a.example.com", "web", "one"))
		if err := w.kube.Tracker().Add(secret(t, "tls")); err != nil {
			t.Fatal(err)
		}
		theirs := w.raw("httpListeners", "other")
		w.start()
		defer w.stop()
		want(t, "listeners", w.streams(), "Tcp, Tls a.example.com")
		want(t, "backends", w.backends(), "10.240.0.10 10.9.9.9")
		want(t, "Gateway", w.programmed("one"), accepted+" Programmed=True/Programmed@1 "+w.address)
		want(t, "TCPRoute", w.streamStatus(gatewayapi.KindTCPRoute, "db"), "one "+accepted+resolved)
		want(t, "TLSRoute", w.streamStatus(gatewayapi.KindTLSRoute, "mqtt"), "one "+accepted+resolved)
		want(t, "the listener of others", withoutEtag(w.raw("httpListeners", "other")), withoutEtag(theirs))
		before := len(w.api.Actions())
		w.Forget()
		w.pass(time.Hour)
		want(t, "writes in an hour", len(w.Writes()), 0)
		want(t, "requests to the API server in an hour", len(w.api.Actions()), before)
	})
	scenario(t, "L2 an endpoint, a rule and a Service change, a route goes", func(t *testing.T) {
		w := newAPICluster(t, streamsOf("one"), tcpOf("db", "web", "one", 1), tcpOf("late", "web", "one", 2))
		w.start()
		defer w.stop()
		late := " PartiallyInvalid=True/Conflict@1"
		want(t, "the younger route", w.streamStatus(gatewayapi.KindTCPRoute, "late"), "one "+accepted+resolved+late)
		update(w, endpoints("web", "10.240.0.77"))
		w.pass(5 * time.Second)
		want(t, "backends", w.backends(), "10.240.0.77 10.9.9.9")
		w.apply(tcpOf("db", "none", "one", 1))
		w.pass(5 * time.Second)
		want(t, "TCPRoute without a Service", w.streamStatus(gatewayapi.KindTCPRoute, "db"),
			"one Accepted=True/Accepted@2 ResolvedRefs=False/BackendNotFound@2")
		want(t, "backends", w.backends(), "10.9.9.9")
		if err := w.api.GatewayV1().TCPRoutes("default").Delete(t.Context(), "db", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		want(t, "backends of the younger route", w.backends(), "10.240.0.77 10.9.9.9")
		if err := w.api.GatewayV1().TCPRoutes("default").Delete(t.Context(), "late", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		want(t, "listeners", w.streams(), "")
		want(t, "pools", len(w.gate().Properties.Pools), 1)
	})
	scenario(t, "L3 a listener of TCP that others have made stays, and its port is taken", func(t *testing.T) {
		w := newAPICluster(t, streamsOf("one"), tcpOf("db", "web", "one", 1))
		w.addStream()
		theirs := withoutEtag(w.raw("listeners", "theirs") + w.raw("backendSettingsCollection", "theirs") + w.raw("routingRules", "theirs"))
		w.start()
		w.apply(routeOf("web", "a.example.com", "web", "one"))
		w.pass(5 * time.Second)
		defer w.stop()
		want(t, "hosts", w.hosts(), "a.example.com")
		want(t, "TCPRoute", w.streamStatus(gatewayapi.KindTCPRoute, "db"), "one Accepted=False/Conflict@1"+resolved)
		want(t, "children of others",
			withoutEtag(w.raw("listeners", "theirs")+w.raw("backendSettingsCollection", "theirs")+w.raw("routingRules", "theirs")), theirs)
	})
	scenario(t, "L4 Azure refuses a TCPRoute, and others are served", func(t *testing.T) {
		w := newAPICluster(t, streamsOf("one"), tcpOf("db", "web", "one", 1), routeOf("web", "a.example.com", "web", "one"))
		w.config.Azure = &refusing{
			fullAzure: w.config.Azure.(fullAzure), when: func(body string) bool { return strings.Contains(body, "\"routingRules\":[{") },
		}
		w.start()
		defer w.stop()
		w.pass(2 * time.Minute)
		want(t, "hosts", w.hosts(), "a.example.com")
		want(t, "TCPRoute", w.streamStatus(gatewayapi.KindTCPRoute, "db"), "one Accepted=False/AzureRejected@1"+resolved)
	})
	scenario(t, "L5 an API server without the kinds", func(t *testing.T) {
		w := newAPICluster(t, streamsOf("one"), routeOf("web", "a.example.com", "web", "one"))
		all := w.api.Resources[len(w.api.Resources)-1]
		all.APIResources = nil
		for _, name := range []string{"gatewayclasses", "gateways", "httproutes"} {
			all.APIResources = append(all.APIResources, metav1.APIResource{Name: name})
		}
		w.start()
		defer w.stop()
		want(t, "hosts", w.hosts(), "a.example.com")
	})
}

// addStream adds a listener of TCP at port 5432 as another writer.
func (w *cluster) addStream() {
	w.edit(func(g object) {
		ref := func(list, name string) object { return object{"id": gatewayID.Child(list, name)} }
		p := g["properties"].(object)
		p["frontendPorts"] = append(childrenOf(g, "frontendPorts"), object{"name": "theirs", "properties": object{"port": 5432}})
		p["listeners"] = []object{{"name": "theirs", "properties": object{
			"frontendIPConfiguration": ref("frontendIPConfigurations", "public"), "frontendPort": ref("frontendPorts", "theirs"), "protocol": "Tcp",
		}}}
		p["backendSettingsCollection"] = []object{{"name": "theirs", "properties": object{
			"port": 5432, "protocol": "Tcp", "timeout": 20, "enableL4ClientIpPreservation": true,
		}}}
		p["routingRules"] = []object{{"name": "theirs", "properties": object{
			"ruleType": "Basic", "priority": 18800, "listener": ref("listeners", "theirs"),
			"backendAddressPool": ref("backendAddressPools", "other"), "backendSettings": ref("backendSettingsCollection", "theirs"),
		}}}
	})
}

// TestStreamTraffic sends bytes over TCP and TLS to the frontends of the local Azure's gateway, which the controller has written for routes.
func TestStreamTraffic(t *testing.T) {
	backend, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); echo(backend) }()
	defer func() { _ = backend.Close(); <-done }()
	w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), secret(t, "tls"))...)
	w.serveAPI(gatewayClass(), streamsOf("one"), tcpOf("db", "web", "one", 1), tlsOf("mqtt", "a.example.com", "web", "one"),
		tlsOf("none", "none.example.com", "none", "one"))
	var asked sync.Map
	loopback := &localgateway.Loopback{Backends: func(ctx context.Context, address string) (net.Conn, error) {
		asked.Store(address, true)
		return (&net.Dialer{}).DialContext(ctx, "tcp", backend.Addr().String())
	}}
	plane := localgateway.Start(t.Context(), localgateway.Options{Azure: w.Emulator, Network: loopback, Log: slog.New(slog.DiscardHandler)})
	defer func() {
		if err := plane.Close(); err != nil {
			t.Error(err)
		}
	}()
	w.config.Calm = time.Millisecond
	w.run(t)
	defer w.stop()
	say := func(port, host string) string {
		c, err := loopback.Reach(t.Context(), "tcp", net.JoinHostPort(w.address, port))
		if err != nil {
			return err.Error()
		}
		defer func() { _ = c.Close() }()
		if host != "" {
			c = tls.Client(c, &tls.Config{ServerName: host, InsecureSkipVerify: true})
		}
		if _, err := fmt.Fprintf(c, "hello %s\n", host); err != nil {
			return err.Error()
		}
		answer, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			return "closed"
		}
		return strings.TrimSpace(answer)
	}
	for _, c := range []struct{ port, host, answer string }{
		{"5432", "", "echo hello"}, {"8883", "a.example.com", "echo hello a.example.com"}, {"8883", "none.example.com", "closed"},
	} {
		got := ""
		for deadline := time.Now().Add(20 * time.Second); got != c.answer && time.Now().Before(deadline); {
			got = say(c.port, c.host)
		}
		want(t, c.port+" "+c.host, got, c.answer)
	}
	_, reached := asked.Load("10.240.0.10:8080")
	want(t, "connections to the pod", reached, true)
}

// echo answers each line of each connection until the listener is closed.
func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = c.Close() }()
			for lines := bufio.NewScanner(c); lines.Scan(); {
				if _, err := io.WriteString(c, "echo "+strings.TrimSpace(lines.Text())+"\n"); err != nil {
					return
				}
			}
		}()
	}
}
