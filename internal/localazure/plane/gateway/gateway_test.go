package gateway_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"strings"
	"testing"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/core"
)

// A gateway passes requests on to the members of its pool in turn, and tells them about the client.
func TestPassesRequestsOn(t *testing.T) {
	w := start(t)
	b := w.backends("a", "b")
	w.serve(site(b[0].address, b[1].address))
	w.probed(b...)
	met := map[string]int{}
	c := w.client()
	for range 10 {
		got := w.ask(c, "http://example.com/x/y?z=1", "X-Forwarded-For", "192.0.2.1", "X-Secret", "1",
			"Connection", "X-Secret, X-Forwarded-Proto", "Connection", "X-Original-Host")
		name, rest, _ := strings.Cut(got.body, " ")
		met[name]++
		if rest != "GET example.com/x/y?z=1" {
			t.Errorf("the backend says %q", got.body)
		}
		for header, want := range map[string]string{"X-Forwarded-Proto": "http", "X-Forwarded-Port": "80", "X-Original-Host": "example.com",
			"X-Secret": "", "X-Original-Url": ""} {
			if had := got.Header.Get("Got-" + header); had != want {
				t.Errorf("the backend got %s: %q, want %q", header, had, want)
			}
		}
		if had := got.Header.Get("Got-X-Forwarded-For"); !strings.HasPrefix(had, "192.0.2.1, 127.0.0.1:") {
			t.Errorf("the backend got X-Forwarded-For: %q", had)
		}
	}
	if met["a"] != 5 || met["b"] != 5 {
		t.Errorf("the backends got %v requests, want 5 each", met)
	}
}

// A gateway without a backend for a request answers itself.
func TestNoBackend(t *testing.T) {
	w := start(t)
	b := w.backends("a")
	p := site(b[0].address)
	p["httpListeners"] = list{child("any", listener("80", "a.example.com")), child("empty", listener("80", "empty.example.com"))}
	p["backendAddressPools"] = list{pool("web", b[0].address), pool("empty")}
	p["requestRoutingRules"] = list{child("any", rule(10, "any", "web")), child("empty", rule(20, "empty", "empty"))}
	w.serve(p)
	w.status("http://a.example.com/", http.StatusOK)
	if got := w.status("http://empty.example.com/", http.StatusBadGateway); got.Header.Get("Server") !=
		"Microsoft-Azure-Application-Gateway/v2" {
		t.Errorf("the server is %q", got.Header.Get("Server"))
	}
	w.status("http://other.example.com/", http.StatusNotFound)
}

// hostsAndPaths are the properties of a gateway with three pools, a, b and c, of one backend each.
func three(w *gatewaySite) (object, []*backend) {
	b := w.backends("a", "b", "c")
	p := site(b[0].address)
	p["backendAddressPools"] = list{pool("a", b[0].address), pool("b", b[1].address), pool("c", b[2].address)}
	p["requestRoutingRules"] = list{child("any", rule(10, "any", "a"))}
	return p, b
}

// The rule with the least priority wins, whatever is more specific.
func TestHosts(t *testing.T) {
	w := start(t)
	p, _ := three(w)
	p["httpListeners"] = list{child("wild", listener("80", "*.example.com", "x?.test")), child("exact", listener("80", "a.example.com")),
		child("any", listener("80"))}
	p["requestRoutingRules"] = list{child("wild", rule(20, "wild", "a")), child("exact", rule(10, "exact", "b")),
		child("any", rule(30, "any", "c"))}
	w.serve(p)
	for host, want := range map[string]string{"a.example.com": "b", "A.EXAMPLE.com:80": "b", "z.example.com": "a", "y.z.example.com": "a",
		"example.com": "c", "x1.test": "a", "x.test": "c", "192.0.2.1": "c"} {
		if got := w.ask(w.client(), "http://"+host+"/"); !strings.HasPrefix(got.body, want+" ") {
			t.Errorf("host %s: %q, want backend %s", host, got.body, want)
		}
	}
	p["requestRoutingRules"] = list{child("wild", rule(1, "wild", "a")), child("exact", rule(10, "exact", "b")),
		child("any", rule(30, "any", "c"))}
	w.serve(p)
	w.says("http://a.example.com/", "a GET a.example.com/")
}

func pathRule(name, pool string, paths ...string) object {
	return child(name, object{"paths": paths, "backendAddressPool": ref("backendAddressPools", pool),
		"backendHttpSettings": ref("backendHttpSettingsCollection", "set")})
}

// byPath changes the properties so that the path rules decide, and pool a is for the rest.
func byPath(p object, rules ...any) {
	p["urlPathMaps"] = list{child("map", object{"defaultBackendAddressPool": ref("backendAddressPools", "a"),
		"defaultBackendHttpSettings": ref("backendHttpSettingsCollection", "set"), "pathRules": rules})}
	p["requestRoutingRules"] = list{child("any", object{"ruleType": "PathBasedRouting", "priority": 10,
		"httpListener": ref("httpListeners", "any"), "urlPathMap": ref("urlPathMaps", "map")})}
}

// The first path that matches wins, in the order of the document.
func TestPaths(t *testing.T) {
	w := start(t)
	p, _ := three(w)
	byPath(p, pathRule("exact", "b", "/x/y"), pathRule("all", "c", "/x/*", "/z*"), pathRule("late", "b", "/x/w"))
	w.serve(p)
	for path, want := range map[string]string{"/": "a", "/x": "a", "/x/": "c", "/x/y": "b", "/x/y?q=/": "b", "/X/Y": "b", "/x/y/": "c",
		"/x/w": "c", "/zz/top": "c", "/q/../x/y": "b", "/x/%79": "b", "//x/y": "b", "/y": "a"} {
		if got := w.ask(w.client(), "http://h"+path); !strings.HasPrefix(got.body, want+" ") {
			t.Errorf("path %s: %q, want backend %s", path, got.body, want)
		}
	}
}

// The path of the settings replaces what the pattern fixes.
func TestPathOverride(t *testing.T) {
	w := start(t)
	p, b := three(w)
	byPath(p, pathRule("api", "b", "/api/*"), pathRule("one", "b", "/one"))
	s := setting(b[0].address)
	s["path"], s["hostName"] = "/v2/", "inner.example.com"
	p["backendHttpSettingsCollection"] = list{child("set", s)}
	w.serve(p)
	w.says("http://h/api/x%20y/z?q=1", "b GET inner.example.com/v2/x%20y/z?q=1")
	w.says("http://h/api/", "b GET inner.example.com/v2/")
	w.says("http://h/one", "b GET inner.example.com/v2/")
	w.says("http://h/other", "a GET inner.example.com/v2/other")
}

func TestRedirects(t *testing.T) {
	w := start(t)
	p, _ := three(w)
	data, _, _ := pfx(t, "", "a.example.com")
	p["sslCertificates"] = list{child("c", object{"data": data})}
	secure := func(hosts ...string) object {
		l := listener("443", hosts...)
		l["protocol"], l["sslCertificate"] = "Https", ref("sslCertificates", "c")
		return l
	}
	p["frontendPorts"] = list{child("80", object{"port": 80}), child("443", object{"port": 443}), child("8443", object{"port": 8443})}
	odd := secure()
	odd["frontendPort"] = ref("frontendPorts", "8443")
	p["httpListeners"] = list{child("any", listener("80")), child("secure", secure("a.example.com")), child("odd", odd)}
	redirect := func(name string, more object) any {
		more["redirectType"] = name
		return child(strings.ToLower(name), more)
	}
	p["redirectConfigurations"] = list{
		redirect("Permanent", object{"targetListener": ref("httpListeners", "secure"), "includePath": true, "includeQueryString": true}),
		redirect("Found", object{"targetUrl": "https://other.example.com/base?x=1", "includePath": false, "includeQueryString": true}),
		redirect("SeeOther", object{"targetListener": ref("httpListeners", "odd"), "includePath": true}),
		redirect("Temporary", object{"targetUrl": "https://other.example.com/base/", "includePath": true}),
	}
	var rules list
	for _, name := range []string{"permanent", "found", "seeother", "temporary"} {
		rules = append(rules, child(name, object{"paths": list{"/" + name + "*"}, "redirectConfiguration": ref("redirectConfigurations",
			name)}))
	}
	byPath(p, rules...)
	p["requestRoutingRules"] = append(p["requestRoutingRules"].(list), child("secure", rule(20, "secure", "b")), child("odd", rule(30,
		"odd", "b")))
	w.serve(p)
	for path, want := range map[string]string{
		"/permanent/x?y=1": "301 https://a.example.com/permanent/x?y=1",
		"/found/x?y=1":     "302 https://other.example.com/base?x=1&y=1",
		"/seeother/x?y=1":  "303 https://h:8443/seeother/x",
		"/temporary/x?y=1": "307 https://other.example.com/base/temporary/x",
	} {
		got := w.ask(w.client(), "http://h"+path)
		if had := fmt.Sprint(got.StatusCode, " ", got.Header.Get("Location")); had != want {
			t.Errorf("%s: %s, want %s", path, had, want)
		}
	}
}

// The server name chooses the certificate, and the host the rule.
func TestTLS(t *testing.T) {
	w := start(t)
	p, _ := three(w)
	one, _, _ := pfx(t, "secret", "a.example.com")
	wild, _, _ := pfx(t, "", "*.example.com")
	p["sslCertificates"] = list{child("One", object{"data": one, "password": "secret"}), child("wild", object{"data": wild})}
	secure := func(certificate string, hosts ...string) object {
		l := listener("443", hosts...)
		l["protocol"], l["sslCertificate"] = "Https", ref("sslCertificates", certificate)
		return l
	}
	p["enableHttp2"] = true
	p["httpListeners"] = list{child("wild", secure("wild", "*.example.com")), child("one", secure("One", "a.example.com"))}
	p["requestRoutingRules"] = list{child("wild", rule(20, "wild", "a")), child("one", rule(10, "one", "b"))}
	w.serve(p)
	for host, want := range map[string]string{"a.example.com": "a.example.com b HTTP/2.0", "b.example.com": "*.example.com a HTTP/2.0"} {
		got := w.ask(w.client(), "https://"+host+"/")
		name, _, _ := strings.Cut(got.body, " ")
		if had := fmt.Sprint(got.TLS.PeerCertificates[0].DNSNames[0], " ", name, " ", got.Proto); had != want {
			t.Errorf("%s: %s, want %s", host, had, want)
		}
	}
	// A name that no listener has gets the certificate of the first rule, and no site.
	if got := w.ask(w.client(), "https://other.test/"); got.TLS.PeerCertificates[0].DNSNames[0] != "a.example.com" ||
		got.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown name gets %v and %d", got.TLS.PeerCertificates[0].DNSNames, got.StatusCode)
	}
	// A PUT without the data keeps the certificates. Without HTTP/2 clients get HTTP/1.1.
	p["sslCertificates"] = list{child("one", object{}), child("wild", object{})}
	p["enableHttp2"] = false
	w.serve(p)
	if got := w.ask(w.client(), "https://a.example.com/"); got.Proto != "HTTP/1.1" || got.StatusCode != http.StatusOK {
		t.Errorf("after the second PUT: %s %d", got.Proto, got.StatusCode)
	}
	// A new certificate replaces the old one.
	renewed, _, _ := pfx(t, "", "a.example.com", "renewed.example.com")
	p["sslCertificates"] = list{child("one", object{"data": renewed}), child("wild", object{})}
	w.serve(p)
	if got := w.ask(w.client(), "https://a.example.com/"); len(got.TLS.PeerCertificates[0].DNSNames) != 2 {
		t.Error("the old certificate is served after its renewal")
	}
}

// A gateway checks the certificates of its backends against the trusted roots.
func TestTLSToBackends(t *testing.T) {
	w := start(t)
	_, root, pair := pfx(t, "", "inner.example.com")
	_, other, _ := pfx(t, "", "inner.example.com")
	l, err := tls.Listen("tcp", "127.0.0.2:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.TLS.ServerName, r.Host)
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	p := site(l.Addr().String())
	serve := func(root []byte, more object) {
		set := setting(l.Addr().String())
		set["protocol"], set["trustedRootCertificates"] = "Https", list{ref("trustedRootCertificates", "r")}
		maps.Copy(set, more)
		p["backendHttpSettingsCollection"] = list{child("set", set)}
		p["trustedRootCertificates"] = list{child("r", object{"data": base64.StdEncoding.EncodeToString(root)})}
		w.serve(p)
	}
	serve(root.Raw, object{"hostName": "inner.example.com"})
	w.says("http://h/", "inner.example.com inner.example.com")
	serve(root.Raw, object{"hostName": "wrong.example.com"})
	w.status("http://h/", http.StatusBadGateway)
	serve(root.Raw, object{})
	w.says("http://h/", " h")
	serve(other.Raw, object{"hostName": "inner.example.com"})
	w.status("http://h/", http.StatusBadGateway)
}

func TestRewrites(t *testing.T) {
	w := start(t)
	p, b := three(w)
	b[0].handler = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://inner/next")
		w.Header().Set("X-Remove", "1")
		_, _ = fmt.Fprintf(w, "a %s%s %q %q", r.Host, r.URL.RequestURI(), r.Header.Get("X-Who"), r.Header.Get("X-Drop"))
	}
	header := func(name, value string) object { return object{"headerName": name, "headerValue": value} }
	condition := func(variable, pattern string) object {
		return object{"variable": variable, "pattern": pattern, "ignoreCase": true}
	}
	p["rewriteRuleSets"] = list{child("set", object{"rewriteRules": list{
		object{"name": "late", "ruleSequence": 200, "conditions": list{condition("http_resp_Location", "^http://inner(/.*)$")},
			"actionSet": object{"responseHeaderConfigurations": list{header("Location", "https://{var_host}{http_resp_Location_1}"),
				header("X-Remove", "")}}},
		object{"name": "first", "ruleSequence": 100, "conditions": list{condition("var_uri_path", "^/old/(.*)$")},
			"actionSet": object{"requestHeaderConfigurations": list{header("X-Who", "{http_req_User-Agent}:{var_uri_path_1}"),
				header("X-Drop", ""),
				header("Host", "rewritten.example.com")},
				"urlConfiguration": object{"modifiedPath": "/new/{var_uri_path_1}", "modifiedQueryString": "was={var_query_string}"}}},
		object{"name": "addresses only", "ruleSequence": 100, "conditions": list{condition("http_req_X-Bare", "1")},
			"actionSet": object{"requestHeaderConfigurations": list{header("X-Forwarded-For", "{var_add_x_forwarded_for_proxy}"),
				header("X-Who", "{http_req_X-Forwarded-For}")}}},
		object{"name": "never", "ruleSequence": 100, "conditions": list{object{"variable": "var_request_method", "pattern": "GET",
			"negate": true}},
			"actionSet": object{"requestHeaderConfigurations": list{header("X-Who", "never")}}},
	}})}
	r := rule(10, "any", "a")
	r["rewriteRuleSet"] = ref("rewriteRuleSets", "set")
	p["requestRoutingRules"] = list{child("any", r)}
	w.serve(p)
	got := w.ask(w.client(), "http://h/old/x?y=1", "User-Agent", "me", "X-Drop", "1")
	if want := `a rewritten.example.com/new/x?was=y=1 "me:x" ""`; got.body != want {
		t.Errorf("the backend says %q, want %q", got.body, want)
	}
	if got.Header.Get("Location") != "https://h/next" || got.Header.Get("X-Remove") != "" {
		t.Errorf("the response has %v", got.Header)
	}
	if got := w.ask(w.client(), "http://h/", "X-Bare", "1", "X-Forwarded-For", "192.0.2.1"); got.body != `a h/ "192.0.2.1, 127.0.0.1" ""` {
		t.Errorf("with a rewrite of X-Forwarded-For: %q", got.body)
	}
	if got := w.ask(w.client(), "http://h/other", "User-Agent", "me", "X-Drop", "1"); got.body != `a h/other "" "1"` {
		t.Errorf("without its condition: %q", got.body)
	}
}

// A rewrite can choose the path rule again, so a header decides about the backend.
func TestReroute(t *testing.T) {
	w := start(t)
	p, b := three(w)
	p["rewriteRuleSets"] = list{child("set", object{"rewriteRules": list{object{"name": "canary", "ruleSequence": 1,
		"conditions": list{object{"variable": "http_req_X-Canary", "pattern": "^yes$"}},
		"actionSet":  object{"urlConfiguration": object{"modifiedPath": "/canary{var_uri_path}", "reroute": true}}}}})}
	restoring := setting(b[0].address)
	restoring["path"] = "/"
	p["backendHttpSettingsCollection"] = list{child("set", setting(b[0].address)), child("restoring", restoring)}
	first := pathRule("first", "b", "/x*")
	first["properties"].(object)["rewriteRuleSet"] = ref("rewriteRuleSets", "set")
	second := pathRule("canary", "c", "/canary/*")
	second["properties"].(object)["backendHttpSettings"] = ref("backendHttpSettingsCollection", "restoring")
	byPath(p, first, second)
	w.serve(p)
	w.says("http://h/x/y?z=1", "b GET h/x/y?z=1")
	got := w.ask(w.client(), "http://h/x/y?z=1", "X-Canary", "yes")
	if got.body != "c GET h/x/y?z=1" || got.Header.Get("Got-X-Original-Url") != "/x/y?z=1" {
		t.Errorf("%q %v", got.body, got.Header)
	}
}

// The path rule that is chosen again has rewrites of its own, which see the path that the client sent. What leads in a circle gets 500.
func TestRewritesOfTheNextPathRule(t *testing.T) {
	w := start(t)
	p, _ := three(w)
	change := func(name, header, path string, reroute bool) object {
		return child(name, object{"rewriteRules": list{object{"name": name, "ruleSequence": 1,
			"conditions": list{object{"variable": "http_req_" + header, "pattern": "."}},
			"actionSet":  object{"urlConfiguration": object{"modifiedPath": path, "reroute": reroute}}}}})
	}
	p["rewriteRuleSets"] = list{change("to-second", "X-Go", "/second", true), change("restore", "X-Go", "{var_uri_path}", false),
		change("circle", "X-Circle", "/third", true)}
	with := func(rule object, set string) object {
		rule["properties"].(object)["rewriteRuleSet"] = ref("rewriteRuleSets", set)
		return rule
	}
	byPath(p, with(pathRule("first", "b", "/x*"), "to-second"), with(pathRule("second", "c", "/second"), "restore"),
		with(pathRule("third", "c", "/third"), "circle"))
	w.serve(p)
	if got := w.ask(w.client(), "http://h/x/y?z=1", "X-Go", "1"); got.body != "c GET h/x/y?z=1" {
		t.Errorf("by two path rules: %q", got.body)
	}
	w.says("http://h/x/y?z=1", "b GET h/x/y?z=1")
	w.says("http://h/third", "c GET h/third")
	if got := w.ask(w.client(), "http://h/third", "X-Circle", "1"); got.StatusCode != http.StatusInternalServerError {
		t.Errorf("a circle gets %d, want 500", got.StatusCode)
	}
}

// A client stays with its backend by a cookie, also while the backend leaves the pool.
func TestAffinityAndDraining(t *testing.T) {
	w := start(t)
	b := w.backends("a", "b")
	p := site(b[0].address, b[1].address)
	s := setting(b[0].address)
	s["cookieBasedAffinity"], s["connectionDraining"] = "Enabled", object{"enabled": true, "drainTimeoutInSec": 60}
	p["backendHttpSettingsCollection"] = list{child("set", s)}
	w.serve(p)
	c := w.client()
	c.Jar, _ = cookiejar.New(nil)
	got := w.ask(c, "http://h/")
	if cookies := got.Header.Values("Set-Cookie"); len(cookies) != 2 || !strings.HasPrefix(cookies[0], "ApplicationGatewayAffinity=") ||
		!strings.HasPrefix(cookies[1], "ApplicationGatewayAffinityCORS=") {
		t.Errorf("the cookies are %q", cookies)
	}
	mine, other := b[0], b[1]
	if strings.HasPrefix(got.body, "b ") {
		mine, other = other, mine
	}
	for range 6 {
		got := w.ask(c, "http://h/")
		if !strings.HasPrefix(got.body, mine.name+" ") || len(got.Header.Values("Set-Cookie")) > 0 {
			t.Fatalf("the client of %s gets %q with the cookies %q", mine.name, got.body, got.Header.Values("Set-Cookie"))
		}
	}
	p["backendAddressPools"] = list{pool("web", other.address)}
	w.serve(p)
	if got := w.ask(c, "http://h/"); !strings.HasPrefix(got.body, mine.name+" ") {
		t.Errorf("while %s drains, its client gets %q", mine.name, got.body)
	}
	for range 4 {
		if got := w.ask(w.client(), "http://h/"); !strings.HasPrefix(got.body, other.name+" ") {
			t.Errorf("while %s drains, a new client gets %q", mine.name, got.body)
		}
	}
	w.clock.pass()
	w.eventually("the client leaves a drained backend", func() bool {
		return strings.HasPrefix(w.ask(c, "http://h/").body,
			other.name+" ")
	})
}

// eventually waits for a condition, which becomes true soon.
func (w *gatewaySite) eventually(what string, is func() bool) {
	w.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if is() {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-w.Context().Done():
		}
	}
	w.Errorf("%s: not in time", what)
}

// The health of a backend changes after as many failures as the threshold says, and after one success.
func TestProbes(t *testing.T) {
	w := start(t)
	b := w.backends("a", "b")
	status := make(chan int, 100)
	now := http.StatusOK
	b[0].handler = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" {
			_, _ = io.WriteString(w, "a ")
			return
		}
		select {
		case now = <-status:
		default:
		}
		if r.Host != "probe.example.com" {
			now = http.StatusTeapot
		}
		w.WriteHeader(now)
	}
	p := site(b[0].address, b[1].address)
	s := setting(b[0].address)
	s["probe"] = ref("probes", "p")
	p["backendHttpSettingsCollection"] = list{child("set", s)}
	p["probes"] = list{child("p", object{"protocol": "Http", "host": "probe.example.com", "path": "/health", "interval": 5, "timeout": 5,
		"unhealthyThreshold": 2, "match": object{"statusCodes": list{"200-299", "401"}}})}
	w.serve(p)
	is := func(want string) func() bool {
		return func() bool { w.clock.pass(); return w.health(b[0]) == want && w.health(b[1]) == "Healthy" }
	}
	w.eventually("both are healthy", is("Healthy"))
	status <- http.StatusServiceUnavailable
	w.eventually("a is unhealthy", is("Unhealthy"))
	for range 4 {
		if got := w.ask(w.client(), "http://h/"); !strings.HasPrefix(got.body, "b ") {
			t.Errorf("an unhealthy backend gets a request: %q", got.body)
		}
	}
	status <- http.StatusUnauthorized
	w.eventually("a is healthy again", is("Healthy"))
	b[0].server.Close()
	b[1].server.Close()
	w.eventually("all are unhealthy", func() bool {
		w.clock.pass()
		return w.health(b[0]) == "Unhealthy" && w.health(b[1]) == "Unhealthy"
	})
	w.status("http://h/", http.StatusBadGateway)
}

// probed waits until backends are healthy.
func (w *gatewaySite) probed(all ...*backend) {
	w.Helper()
	w.eventually("all backends are healthy", func() bool {
		return !slices.ContainsFunc(all, func(b *backend) bool { return w.health(b) != "Healthy" })
	})
}

// health is the health of a backend, as the action backendhealth answers.
func (w *gatewaySite) health(b *backend) string {
	w.Helper()
	began := w.azure.Request("POST", gateID+"/backendhealth", "")
	if began.Status != http.StatusAccepted {
		w.Fatalf("backendhealth: %d %v", began.Status, began.Body)
	}
	got := w.azure.Request("GET", began.Header.Get("Location"), "").Body
	for _, pool := range behaviour.Objects(got, "backendAddressPools") {
		for _, set := range behaviour.Objects(pool, "backendHttpSettingsCollection") {
			for _, server := range behaviour.Objects(set, "servers") {
				if behaviour.Text(server, "address")+":" == b.address[:strings.LastIndexByte(b.address, ':')+1] {
					return behaviour.Text(server, "health")
				}
			}
		}
	}
	return ""
}

// A backend that does not answer in time gets the client a 504, one that cannot be reached is passed over.
func TestTimeouts(t *testing.T) {
	w := start(t)
	b := w.backends("a")
	release := make(chan struct{})
	b[0].handler = func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-release
		}
	}
	p := site(b[0].address)
	s := setting(b[0].address)
	s["requestTimeout"] = 1
	p["backendHttpSettingsCollection"] = list{child("set", s)}
	w.serve(p)
	w.status("http://h/slow", http.StatusGatewayTimeout)
	close(release)
	p["backendAddressPools"] = list{pool("web", "127.0.0.99:1", b[0].address)}
	w.serve(p)
	for range 4 {
		w.status("http://h/", http.StatusOK)
	}
}

// A WebSocket goes through, also while the gateway gets another document.
func TestWebSocket(t *testing.T) {
	w := start(t)
	b := w.backends("a")
	b[0].handler = func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			return
		}
		c, buffered, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(c, buffered)
	}
	p := site(b[0].address)
	w.serve(p)
	c, err := w.network.Reach(t.Context(), "tcp", net.JoinHostPort(w.public.String(), "80"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	r := bufio.NewReader(c)
	response, err := http.ReadResponse(r, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %v", response, err)
	}
	defer response.Body.Close()
	for _, message := range []string{"hello\n", "again\n"} {
		_, _ = io.WriteString(c, message)
		if got, err := r.ReadString('\n'); got != message {
			t.Fatalf("%q %v, want %q", got, err, message)
		}
		p["enableHttp2"] = true
		w.serve(p)
	}
}

// A gateway that is stopped does not listen. A PUT starts it.
func TestStopAndStart(t *testing.T) {
	w := start(t)
	b := w.backends("a")
	w.serve(site(b[0].address))
	w.status("http://h/", http.StatusOK)
	turn := func(action string) {
		if got := w.azure.Request("POST", gateID+"/"+action, ""); got.Status != http.StatusAccepted {
			t.Fatalf("%s: %d %v", action, got.Status, got.Body)
		}
		if err := w.service.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	refused := func() {
		if c, err := w.client().Transport.(*http.Transport).DialContext(t.Context(), "tcp", "h:80"); err == nil {
			t.Error("a gateway that does not run answers")
			c.Close()
		}
	}
	turn("stop")
	refused()
	turn("start")
	w.status("http://h/", http.StatusOK)
	turn("stop")
	w.serve(site(b[0].address))
	w.status("http://h/", http.StatusOK)
	if got := w.azure.Request("DELETE", gateID, ""); got.Status != http.StatusAccepted {
		t.Fatalf("DELETE: %d %v", got.Status, got.Body)
	}
	if err := w.service.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused()
}

// A load distribution policy shares the requests by the weights of its pools.
func TestLoadDistribution(t *testing.T) {
	w := start(t)
	p, b := three(w)
	target := func(name string, weight int) object {
		return child(name, object{"backendAddressPool": ref("backendAddressPools", name), "weightPerServer": weight})
	}
	p["loadDistributionPolicies"] = list{child("spread", object{"loadDistributionAlgorithm": "RoundRobin",
		"loadDistributionTargets": list{target("a", 9), target("b", 1)}})}
	p["requestRoutingRules"] = list{child("any", object{"ruleType": "Basic", "priority": 10, "httpListener": ref("httpListeners", "any"),
		"loadDistributionPolicy": ref("loadDistributionPolicies", "spread"), "backendHttpSettings": ref("backendHttpSettingsCollection",
			"set")})}
	w.serve(p)
	met := map[string]int{}
	c := w.client()
	w.probed(b[:2]...)
	for range 100 {
		name, _, _ := strings.Cut(w.ask(c, "http://h/").body, " ")
		met[name]++
	}
	if met["a"] < 88 || met["a"] > 92 {
		t.Errorf("the backends got %v of 100 requests, want 90 and 10", met)
	}
}

// Listeners of layer 4 pass bytes on, with TLS or without.
func TestStreams(t *testing.T) {
	w := start(t)
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); _, _ = io.Copy(c, c) }()
		}
	}()
	p := site(l.Addr().String())
	data, _, _ := pfx(t, "", "a.example.com")
	p["sslCertificates"] = list{child("c", object{"data": data})}
	s := setting(l.Addr().String())
	s["protocol"], s["timeout"] = "Tcp", 60
	p["backendSettingsCollection"] = list{child("stream", s)}
	plain, secure := listener("80"), listener("443")
	plain["protocol"], secure["protocol"], secure["sslCertificate"] = "Tcp", "Tls", ref("sslCertificates", "c")
	p["httpListeners"], p["requestRoutingRules"] = list{}, list{}
	p["listeners"] = list{child("plain", plain), child("secure", secure)}
	stream := func(priority int, listener string) object {
		return object{"ruleType": "Basic", "priority": priority, "listener": ref("listeners", listener),
			"backendAddressPool": ref("backendAddressPools", "web"), "backendSettings": ref("backendSettingsCollection", "stream")}
	}
	p["routingRules"] = list{child("plain", stream(1, "plain")), child("secure", stream(2, "secure"))}
	w.serve(p)
	for port, wrap := range map[string]func(net.Conn) net.Conn{"80": func(c net.Conn) net.Conn { return c },
		"443": func(c net.Conn) net.Conn { return tls.Client(c, &tls.Config{InsecureSkipVerify: true}) }} {
		c, err := w.network.Reach(context.WithoutCancel(t.Context()), "tcp", net.JoinHostPort(w.public.String(), port))
		if err != nil {
			t.Fatal(err)
		}
		c = wrap(c)
		_, _ = io.WriteString(c, "hello\n")
		if got, err := bufio.NewReader(c).ReadString('\n'); got != "hello\n" {
			t.Errorf("port %s: %q %v", port, got, err)
		}
		c.Close()
	}
}

// A certificate in a key vault is served, and renewed when the secret is.
func TestCertificateFromVault(t *testing.T) {
	w := start(t)
	b := w.backends("a")
	const vaults = behaviourtest.Group + "/providers/Microsoft.KeyVault/vaults/vault"
	w.put(vaults, object{"location": "eastus", "properties": object{"tenantId": core.DefaultTenant,
		"sku": object{"family": "A", "name": "standard"}, "accessPolicies": list{}}})
	secret := func(hosts ...string) {
		data, _, _ := pfx(t, "", hosts...)
		w.put(vaults+"/secrets/c", object{"properties": object{"value": data}})
		if err := w.service.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	secret("a.example.com")
	p := site(b[0].address)
	l := listener("443")
	l["protocol"], l["sslCertificate"] = "Https", ref("sslCertificates", "c")
	p["httpListeners"] = list{child("any", l)}
	p["sslCertificates"] = list{child("c", object{"keyVaultSecretId": "https://vault.vault.azure.net:443/secrets/c/"})}
	identity := behaviourtest.Group + "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i"
	w.put(identity, object{"location": "eastus"})
	w.put(gateID, object{"location": "eastus", "properties": p, "identity": object{"type": "UserAssigned",
		"userAssignedIdentities": object{identity: object{}}}})
	if err := w.service.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	has := func(n int) {
		t.Helper()
		if got := w.ask(w.client(), "https://a.example.com/"); len(got.TLS.PeerCertificates[0].DNSNames) != n {
			t.Errorf("the certificate is for %v", got.TLS.PeerCertificates[0].DNSNames)
		}
	}
	has(1)
	secret("a.example.com", "b.example.com")
	has(2)
}
