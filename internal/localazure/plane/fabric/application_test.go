package fabric_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/plane/fabric"
	"kaz/internal/localazure/plane/fabric/netns"
	"kaz/internal/localazure/plane/gateway"
)

const (
	applicationGateway = provider + "/applicationGateways/web"
	gateways           = vnet + "/subnets/gateways"
)

// web serves HTTP in a machine: its name, and from where the request came.
func (m *machine) web(address string) {
	m.w.Helper()
	s := &http.Server{ReadHeaderTimeout: generous, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := netip.MustParseAddrPort(r.RemoteAddr).Addr().Unmap()
		fmt.Fprintf(w, "%s %s %s", m.name, from, strings.SplitN(r.Header.Get("X-Forwarded-For"), ":", 2)[0])
	})}
	l := m.listen(address)
	go func() { _ = s.Serve(l) }()
	m.w.Cleanup(func() { s.Close() })
}

// fetch asks a web server from a machine, until it answers.
func (m *machine) fetch(address string) string {
	m.w.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (c net.Conn,
		err error) {
		err = netns.Do(m.path, func() error {
			c, err = (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
			return err
		})
		return c, err
	}}
	var failed error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		r, err := http.NewRequestWithContext(m.w.Context(), http.MethodGet, "http://"+address+"/", nil)
		if err != nil {
			m.w.Fatal(err)
		}
		response, err := transport.RoundTrip(r)
		if err != nil {
			failed = err
			continue
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return string(body)
		}
		failed = fmt.Errorf("%s: %s", response.Status, body)
	}
	m.w.Fatalf("%s does not reach %s: %v", m.name, address, failed)
	return ""
}

// An application gateway is reached from outside at its public frontend, and in the network at its private one. It reaches machines, and
// pods by the route table of its subnet, from an address of its subnet.
func TestApplicationGateway(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.open()
	public, front := w.publicIP("front", "IPv4")
	m := w.machine("m", nodes, object{"enableIPForwarding": true}, nil)
	const pod = "10.244.1.5"
	m.ip("addr add " + pod + "/32 dev lo")
	m.web(net.JoinHostPort(m.v4.String(), "8080"))
	m.web(net.JoinHostPort(pod, "8080"))
	w.put(provider+"/routeTables/pods", object{"location": "eastus", "properties": object{"routes": list{object{"name": "m",
		"properties": object{"addressPrefix": "10.244.1.0/24", "nextHopType": "VirtualAppliance", "nextHopIpAddress": m.v4.String()}}}}})
	w.put(gateways, object{"properties": object{"addressPrefix": "10.1.1.0/24", "routeTable": ref(provider + "/routeTables/pods")}})
	service := gateway.Start(t.Context(), gateway.Options{Azure: w.azure, Network: fabric.ApplicationGateways{Fabric: w.fabric}})
	t.Cleanup(func() { service.Close() })
	part := func(list, name string) object { return ref(applicationGateway + azure.ID("/"+list+"/"+name)) }
	child := func(name string, p object) object { return object{"name": name, "properties": p} }
	write := func(backend string) {
		listener := func(frontend string) object {
			return object{"protocol": "Http", "frontendIPConfiguration": part("frontendIPConfigurations", frontend),
				"frontendPort": part("frontendPorts", "80")}
		}
		rule := func(listener string, priority int) object {
			return object{"ruleType": "Basic", "priority": priority, "httpListener": part("httpListeners", listener),
				"backendAddressPool": part("backendAddressPools", "web"), "backendHttpSettings": part("backendHttpSettingsCollection",
					"set")}
		}
		w.put(applicationGateway, object{"location": "eastus", "properties": object{
			"sku":                     object{"name": "Standard_v2", "capacity": 1},
			"gatewayIPConfigurations": list{child("i", object{"subnet": ref(gateways)})},
			"frontendIPConfigurations": list{child("public", object{"publicIPAddress": ref(public)}),
				child("private", object{"subnet": ref(gateways), "privateIPAllocationMethod": "Static", "privateIPAddress": "10.1.1.100"})},
			"frontendPorts":                 list{child("80", object{"port": 80})},
			"backendAddressPools":           list{child("web", object{"backendAddresses": list{object{"ipAddress": backend}}})},
			"backendHttpSettingsCollection": list{child("set", object{"port": 8080, "protocol": "Http"})},
			"httpListeners":                 list{child("public", listener("public")), child("private", listener("private"))},
			"requestRoutingRules":           list{child("public", rule("public", 1)), child("private", rule("private", 2))}}})
		if err := service.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	host, _ := outsideAddresses()
	for _, backend := range []string{m.v4.String(), pod} {
		write(backend)
		if got, want := w.outside.fetch(at(front, 80)), "m 10.1.1.4 "+host.String(); got != want {
			t.Errorf("from outside to %s: %q, want %q", backend, got, want)
		}
	}
	c := w.machine("c", nodes, nil, nil)
	if got, want := c.fetch("10.1.1.100:80"), "m 10.1.1.4 "+c.v4.String(); got != want {
		t.Errorf("from inside: %q, want %q", got, want)
	}
	if got, want := c.fetch(at(front, 80)), "m 10.1.1.4 "+c.v4.String(); got != want {
		t.Errorf("from inside to the public frontend: %q, want %q", got, want)
	}
	w.outside.misses("10.1.1.100:80")
}
