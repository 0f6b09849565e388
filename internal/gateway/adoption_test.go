package gateway_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/gateway/explain"
	"kaz/internal/localazure/core"
	localgateway "kaz/internal/localazure/plane/gateway"
	"kaz/internal/plan/gateway/pfx"
	"kaz/internal/testkit"
)

// agicHash ends the names that AGIC makes of hashes.
func agicHash(n int) string { return fmt.Sprintf("%032x", n) }

// filledByAGIC is the document of a gateway that AGIC has written for the Ingresses of [agicIngresses]. AGIC has the gateway alone:
// its default pool, settings and probes are there, too.
func filledByAGIC(gate, ip azure.ID, certificate, password string) object {
	ref := func(list, name string) object { return object{"id": gate.Child(list, name)} }
	child := func(name string, properties object) object { return object{"name": name, "properties": properties} }
	listener := func(n int, port, protocol string, more object) object {
		p := object{
			"frontendIPConfiguration": ref("frontendIPConfigurations", "public"), "frontendPort": ref("frontendPorts", port), "protocol": protocol,
			"requireServerNameIndication": false,
		}
		maps.Copy(p, more)
		return child("fl-"+agicHash(n), p)
	}
	rule := func(n, priority int, more object) object {
		p := object{"ruleType": "Basic", "priority": priority, "httpListener": ref("httpListeners", "fl-"+agicHash(n))}
		maps.Copy(p, more)
		return child("rr-"+agicHash(n), p)
	}
	probe := func(name, protocol, host, path string) object {
		return child(name, object{"protocol": protocol, "host": host, "path": path, "interval": 30, "timeout": 30, "unhealthyThreshold": 3,
			"match": object{"statusCodes": []string{"200-399"}}})
	}
	settings := func(name, probe string, more object) object {
		p := object{"port": 8080, "protocol": "Http", "cookieBasedAffinity": "Disabled", "requestTimeout": 30, "probe": ref("probes", probe)}
		maps.Copy(p, more)
		return child(name, p)
	}
	shop, api := ref("backendAddressPools", "pool-default-shop-80-bp-8080"), ref("backendAddressPools", "pool-default-api-80-bp-8080")
	shopSet, apiSet := ref("backendHttpSettingsCollection", "bp-default-shop-80-8080-shop"),
		ref("backendHttpSettingsCollection", "bp-default-api-80-8080-api")
	return object{"location": testkit.Location, "tags": object{
		"managed-by-k8s-ingress": "1.8.1/abcdef/2025-01-01", "team": "web",
	}, "properties": object{
		"sku":                      object{"name": "Standard_v2", "tier": "Standard_v2", "capacity": 2},
		"gatewayIPConfigurations":  []object{child("subnet", object{"subnet": object{"id": subnetID}})},
		"frontendIPConfigurations": []object{child("public", object{"publicIPAddress": object{"id": ip}})},
		"frontendPorts":            []object{child("fp-80", object{"port": 80}), child("fp-443", object{"port": 443})},
		"sslCertificates":          []object{child("cert-default-tls", object{"data": certificate, "password": password})},
		"backendAddressPools": []object{
			child("defaultaddresspool", object{"backendAddresses": []object{}}),
			child("pool-default-shop-80-bp-8080", object{"backendAddresses": []object{{"ipAddress": "10.240.0.10"}, {"ipAddress": "10.240.0.11"}}}),
			child("pool-default-api-80-bp-8080", object{"backendAddresses": []object{{"ipAddress": "10.240.0.20"}}}),
		},
		"probes": []object{
			probe("defaultprobe-Http", "Http", "localhost", "/"), probe("defaultprobe-Https", "Https", "localhost", "/"),
			probe("pb-default-shop-80-shop", "Http", "shop.example.com", "/"), probe("pb-default-api-80-api", "Http", "api.example.com", "/v1/"),
		},
		"backendHttpSettingsCollection": []object{
			child("defaulthttpsetting", object{"port": 80, "protocol": "Http", "cookieBasedAffinity": "Disabled", "requestTimeout": 30}),
			settings("bp-default-shop-80-8080-shop", "pb-default-shop-80-shop", nil),
			settings("bp-default-api-80-8080-api", "pb-default-api-80-api", object{"path": "/v1/"}),
		},
		"httpListeners": []object{
			listener(1, "fp-443", "Https", object{
				"hostNames": []string{"shop.example.com"}, "sslCertificate": ref("sslCertificates", "cert-default-tls"),
			}),
			listener(2, "fp-80", "Http", object{"hostNames": []string{"shop.example.com"}}),
			listener(3, "fp-80", "Http", object{"hostNames": []string{"api.example.com"}}),
		},
		"redirectConfigurations": []object{child("sslr-fl-"+agicHash(1), object{
			"redirectType": "Permanent", "targetListener": ref("httpListeners", "fl-"+agicHash(1)), "includePath": true, "includeQueryString": true,
		})},
		"urlPathMaps": []object{child("url-"+agicHash(3), object{
			"defaultBackendAddressPool": shop, "defaultBackendHttpSettings": shopSet,
			"pathRules": []object{child("pr-default-api-rule-0-path-0", object{
				"paths": []string{"/api/*"}, "backendAddressPool": api, "backendHttpSettings": apiSet,
			})},
		})},
		"requestRoutingRules": []object{
			rule(1, 19000, object{"backendAddressPool": shop, "backendHttpSettings": shopSet}),
			rule(2, 19005, object{"redirectConfiguration": ref("redirectConfigurations", "sslr-fl-"+agicHash(1))}),
			rule(3, 19010, object{"ruleType": "PathBasedRouting", "urlPathMap": ref("urlPathMaps", "url-"+agicHash(3))}),
		},
	}}
}

// agicIngresses are a shop with TLS and a redirect, and an API with a prefix for its backends whose other paths lead to the shop.
func agicIngresses() []runtime.Object {
	shop := web("shop", "shop.example.com", "shop", 1, "ssl-redirect", "true")
	shop.Spec.TLS = []networking.IngressTLS{{SecretName: "tls"}}
	api := web("api", "api.example.com", "api", 2, "backend-path-prefix", "/v1/")
	api.Spec.Rules[0].HTTP.Paths[0].Path = "/api/"
	rest := web("rest", "api.example.com", "shop", 3)
	all := append(service("shop", "10.240.0.10", "10.240.0.11"), service("api", "10.240.0.20")...)
	return append(all, class(), shop, api, rest)
}

// clients send requests to the frontend of a gateway without a pause, and note the answers.
type clients struct {
	t       *testing.T
	client  *http.Client
	mu      sync.Mutex
	answers map[string]map[string]int // how often each answer came, by URL
	stop    context.CancelFunc
	work    sync.WaitGroup
}

func (c *clients) start(each int, urls ...string) {
	ctx, stop := context.WithCancel(c.t.Context())
	c.stop, c.answers = stop, map[string]map[string]int{}
	for _, url := range urls {
		c.answers[url] = map[string]int{}
		for range each {
			c.work.Go(func() {
				for ctx.Err() == nil {
					answer := ask(c.t, c.client, url)
					c.mu.Lock()
					c.answers[url][answer]++
					c.mu.Unlock()
				}
			})
		}
	}
}

// end stops the clients, and returns the answers by URL and the number of requests.
func (c *clients) end() (answers map[string]string, requests int) {
	c.stop()
	c.work.Wait()
	answers = map[string]string{}
	for url, all := range c.answers {
		for answer, n := range all {
			answers[url] = strings.TrimPrefix(answers[url]+" | "+answer, " | ")
			requests += n
		}
	}
	return answers, requests
}

// TestAdoption takes a gateway that AGIC has filled over while clients send requests: by one write, without a request that is lost or
// gets another answer than before. What others have made at the gateway stays.
func TestAdoption(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(rw, r.Host+" "+r.URL.Path) // a client that has gone does not read it
	}))
	defer backend.Close()
	tlsSecret := secret(t, "tls")
	w := newCluster(t, core.Options{}, append(agicIngresses(), tlsSecret)...)
	made, err := pfx.Encode(tlsSecret.Data["tls.crt"], tlsSecret.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	w.Put(gatewayID, filledByAGIC(gatewayID, azure.ID(publicIPs+"gate"), made.PFX.Reveal(), made.Password.Reveal()))
	w.Azure = w.Restarted(core.Options{Latency: 0.02})
	w.config.Azure, w.config.AGIC = w.Client, true
	loopback := &localgateway.Loopback{Backends: func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", backend.Listener.Addr().String())
	}}
	plane := localgateway.Start(t.Context(), localgateway.Options{Azure: w.Emulator, Network: loopback, Log: slog.New(slog.DiscardHandler)})
	defer func() {
		if err := plane.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := plane.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	transport := w.transport(loopback)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	expected := map[string]string{
		"https://shop.example.com/x":    "200 shop.example.com /x",
		"http://shop.example.com/x?y=1": "301 https://shop.example.com/x?y=1",
		"http://api.example.com/api/x":  "200 api.example.com /v1/x",
		"http://api.example.com/other":  "200 api.example.com /other",
	}
	load := &clients{t: t, client: client}
	var urls []string
	for url, answer := range expected {
		want(t, url+" of AGIC", ask(t, client, url), answer)
		urls = append(urls, url)
	}
	w.Forget()
	load.start(4, urls...)
	w.run(t)
	for deadline := time.Now().Add(time.Minute); !w.isAdopted(plane); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the gateway is not taken over\n%s", w.log)
		}
	}
	<-time.After(200 * time.Millisecond) // requests to what is there now
	answers, requests := load.end()
	w.stop()
	for url, answer := range expected {
		want(t, url, answers[url], answer)
	}
	if requests < 100 {
		t.Errorf("%d requests are no load", requests)
	}
	want(t, "writes", strings.Join(w.Writes(), ", "), "PUT gate")
	want(t, "tag of others", w.gate().Tags["team"], "web")
	want(t, "tag of AGIC", w.gate().Tags["managed-by-k8s-ingress"], "")
	for _, l := range w.gate().Properties.Listeners {
		want(t, "prefix of listener "+l.Name, w.config.Prefix.Has(l.Name), true)
	}
	t.Logf("%d requests while the gateway was taken over", requests)
}

// TestShadowOfAGIC decides about a gateway of AGIC without writing: all that the controller would make, and all of AGIC's that it would
// take away. After the controller has taken it over, nothing is left to write.
func TestShadowOfAGIC(t *testing.T) {
	scenario(t, "shadow of AGIC", func(t *testing.T) {
		tlsSecret := secret(t, "tls")
		w := newCluster(t, core.Options{}, append(agicIngresses(), tlsSecret)...)
		made, err := pfx.Encode(tlsSecret.Data["tls.crt"], tlsSecret.Data["tls.key"])
		if err != nil {
			t.Fatal(err)
		}
		w.Put(gatewayID, filledByAGIC(gatewayID, azure.ID(publicIPs+"gate"), made.PFX.Reveal(), made.Password.Reveal()))
		w.config.AGIC = true
		w.Forget()
		before := w.shadow()
		for object, write := range map[string]string{
			"Ingress/default/shop": "create sslCertificates/", "Ingress/default/api": "create urlPathMaps/",
			"Ingress/default/shop and Ingress/default/rest": "create backendAddressPools/",
			"application gateway gate":                      "delete httpListeners/fl-" + agicHash(1),
		} {
			if !strings.Contains(before[object], write) {
				t.Errorf("%s would %q, want %s in %q", object, before[object], write, slices.Sorted(maps.Keys(before)))
			}
		}
		if all := fmt.Sprint(before); strings.Contains(all, made.Password.Reveal()) || strings.Contains(all, made.PFX.Reveal()) {
			t.Error("the report has a certificate")
		}
		want(t, "writes of the shadow", strings.Join(w.Writes(), ", "), "")
		w.start()
		w.pass(30 * time.Second)
		w.stop()
		want(t, "writes of the switch", strings.Join(w.Writes(), ", "), "PUT gate")
		for object, writes := range w.shadow() {
			want(t, "left for "+object, writes, "")
		}
	})
}

// shadow returns what the controller would write, by object.
func (w *cluster) shadow() map[string]string {
	w.t.Helper()
	facts, err := explain.GatherAll(w.t.Context(), explain.Clients{Kube: w.kube}, w.Client.Fresh(),
		explain.Config{Config: w.config.Config, Class: w.config.Class})
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := facts.ExplainAll(time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	found := map[string]string{}
	for _, o := range all {
		found[o.Key] = strings.Join(append(o.Writes, o.Refused), "\n")
		found[o.Key] = strings.Trim(found[o.Key], "\n")
	}
	return found
}

// isAdopted reports whether AGIC's listeners have gone, and the data plane serves what came in their place.
func (w *cluster) isAdopted(plane *localgateway.Service) bool {
	g := w.gate()
	if g.Properties.ProvisioningState != "Succeeded" || len(g.Properties.Listeners) == 0 {
		return false
	}
	for _, l := range g.Properties.Listeners {
		if strings.HasPrefix(l.Name, "fl-") {
			return false
		}
	}
	return plane.Settle(w.t.Context()) == nil
}

// transport sends requests to the frontends of the gateway, whatever their host.
func (w *cluster) transport(loopback *localgateway.Loopback) *http.Transport {
	const each = 64
	return &http.Transport{
		MaxIdleConnsPerHost: each,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return loopback.Reach(ctx, network, net.JoinHostPort(w.address, port))
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
}

// TestAdoptionWithRefusals takes a gateway of AGIC over while Azure refuses an Ingress and does not say which. All others are taken over.
// What AGIC made for the refused one stays, until it is mended.
func TestAdoptionWithRefusals(t *testing.T) {
	scenario(t, "I25 I53 Azure names nothing", func(t *testing.T) {
		tlsSecret := secret(t, "tls")
		bad := web("bad", "bad.example.com", "api", 4)
		w := newCluster(t, core.Options{}, append(agicIngresses(), tlsSecret, bad)...)
		made, err := pfx.Encode(tlsSecret.Data["tls.crt"], tlsSecret.Data["tls.key"])
		if err != nil {
			t.Fatal(err)
		}
		doc := filledByAGIC(gatewayID, azure.ID(publicIPs+"gate"), made.PFX.Reveal(), made.Password.Reveal())
		addForBad(doc)
		w.Put(gatewayID, doc)
		refused := "k8s-" + clusterID
		r := &refusing{fullAzure: w.config.Azure.(fullAzure), when: func(body string) bool {
			g, err := azure.Decode[network.ApplicationGateway](azure.Document(body))
			return err != nil || slices.ContainsFunc(g.Properties.Listeners, func(l azure.Child[network.GatewayListener]) bool {
				return strings.HasPrefix(l.Name, refused) && slices.Contains(l.Properties.HostNames, "bad.example.com")
			})
		}}
		w.config.Azure, w.config.AGIC = r, true
		w.start()
		defer w.stop()
		w.pass(30 * time.Second)
		want(t, "other events", w.events.with("FailedApplyingAppGwConfig: "), w.events.with("default/bad FailedApplyingAppGwConfig: "))
		want(t, "conflicts", w.events.with("Conflict"), 0)
		want(t, "listeners", w.listeners(), "agic bad.example.com, own api.example.com, own shop.example.com, own shop.example.com")
		if r.tried.Load() > 8 {
			t.Errorf("%d writes", r.tried.Load())
		}
		refused = "nothing is refused any more"
		update(w, web("bad", "bad.example.com", "shop", 4))
		w.pass(time.Minute)
		want(t, "listeners", w.listeners(), "own api.example.com, own bad.example.com, own shop.example.com, own shop.example.com")
		want(t, "tag of AGIC", w.gate().Tags["managed-by-k8s-ingress"], "")
	})
}

// addForBad adds what AGIC makes for an Ingress that leads bad.example.com to the API.
func addForBad(doc object) {
	p := doc["properties"].(object)
	add := func(list string, more object) { p[list] = append(p[list].([]object), more) }
	ref := func(list, name string) object { return object{"id": gatewayID.Child(list, name)} }
	add("httpListeners", object{"name": "fl-" + agicHash(4), "properties": object{
		"frontendIPConfiguration": ref("frontendIPConfigurations", "public"), "frontendPort": ref("frontendPorts", "fp-80"), "protocol": "Http",
		"hostNames": []string{"bad.example.com"},
	}})
	add("requestRoutingRules", object{"name": "rr-" + agicHash(4), "properties": object{
		"ruleType": "Basic", "priority": 19015, "httpListener": ref("httpListeners", "fl-"+agicHash(4)),
		"backendAddressPool":  ref("backendAddressPools", "pool-default-api-80-bp-8080"),
		"backendHttpSettings": ref("backendHttpSettingsCollection", "bp-default-api-80-8080-api"),
	}})
}

// listeners returns the listeners of the gateway by their makers and hosts, sorted.
func (w *cluster) listeners() string {
	w.t.Helper()
	var all []string
	for _, l := range w.gate().Properties.Listeners {
		by := "agic"
		if w.config.Prefix.Has(l.Name) {
			by = "own"
		}
		all = append(all, by+" "+strings.Join(l.Properties.HostNames, " "))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
