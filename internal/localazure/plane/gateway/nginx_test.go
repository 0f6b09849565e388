package gateway_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"kaz/internal/localazure/behaviour"
)

// second renders a gateway's document for nginx, which is a second reading of the document: nginx compares hosts and paths by its own
// regular expressions, resolves paths by itself, and chooses certificates by its own rules for server names. It knows listeners of the
// frontend, path maps and redirects.
type second struct {
	doc behaviour.Object
	// Dir is a directory of nginx, with the certificates and keys of the document as NAME.crt and NAME.key.
	Dir string
	// Plain and Secure are the addresses that nginx listens at for the schemes http and https.
	Plain, Secure string
	// What follows is computed from the document.
	Sites, Paths, Pools []line // Sites match "SCHEME:HOST", and Paths "SITE:PATH"
	Codes, Locations    []line
	Certified           []line // server names by certificate, that of the default server first
	HTTP2               bool
}

type line struct{ Match, Value string }

// render returns the configuration. The pools are those of backends, which have their addresses.
func (s second) render(backends map[string]string) string {
	for _, r := range s.rules() {
		s.addRule(r)
	}
	for _, r := range behaviour.Objects(s.doc, "properties.redirectConfigurations") {
		s.addRedirect(r)
	}
	for name, address := range backends {
		s.Pools = append(s.Pools, line{name, address})
	}
	s.HTTP2 = behaviour.Bool(s.doc, "properties.enableHttp2")
	var b strings.Builder
	if err := nginxConfig.Execute(&b, s); err != nil {
		panic(err)
	}
	return b.String()
}

// rules returns the rules in the order of their priorities.
func (s *second) rules() []behaviour.Object {
	priority := func(r behaviour.Object) int { n, _ := behaviour.Int(r, "properties.priority"); return n }
	return slices.SortedFunc(slices.Values(behaviour.Objects(s.doc, "properties.requestRoutingRules")), func(a, b behaviour.Object) int {
		return cmp.Compare(priority(a), priority(b))
	})
}

func (s *second) named(list, id string) behaviour.Object {
	return behaviour.Named(s.doc, "properties."+list, last(id))
}

func last(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }

func wild(pattern string) string {
	return strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
}

func (s *second) addRule(r behaviour.Object) {
	site, p := "s"+strconv.Itoa(len(s.Sites)), behaviour.Sub(r, "properties")
	listener := behaviour.Sub(s.named("httpListeners", behaviour.Text(p, "httpListener.id")), "properties")
	scheme, hosts := strings.ToLower(behaviour.Text(listener, "protocol")), behaviour.Texts(listener, "hostNames")
	if scheme == "https" {
		s.certify(hosts, last(behaviour.Text(listener, "sslCertificate.id")))
	}
	if len(hosts) == 0 {
		hosts = []string{"*"}
	}
	for _, h := range hosts {
		s.Sites = append(s.Sites, line{"^" + scheme + ":" + wild(h) + "$", site})
	}
	rest := target(p, "backendAddressPool", "redirectConfiguration")
	if id := behaviour.Text(p, "urlPathMap.id"); id != "" {
		m := behaviour.Sub(s.named("urlPathMaps", id), "properties")
		for _, rule := range behaviour.Objects(m, "pathRules") {
			q := behaviour.Sub(rule, "properties")
			for _, path := range behaviour.Texts(q, "paths") {
				s.Paths = append(s.Paths, line{"^" + site + ":" + wild(path) + "$", target(q, "backendAddressPool", "redirectConfiguration")})
			}
		}
		rest = target(m, "defaultBackendAddressPool", "defaultRedirectConfiguration")
	}
	s.Paths = append(s.Paths, line{"^" + site + ":", rest})
}

// certify gives server names a certificate. nginx itself prefers an exact name to *., and that to a regular expression.
func (s *second) certify(hosts []string, certificate string) {
	if len(s.Certified) == 0 {
		s.Certified = append(s.Certified, line{`""`, certificate})
	}
	for _, h := range hosts {
		if strings.Contains(h, "?") {
			h = `"~^` + wild(h) + `$"`
		}
		s.Certified = append(s.Certified, line{h, certificate})
	}
}

// target returns the name of what a rule, path rule or path map leads to.
func target(properties behaviour.Object, prefix, redirect string) string {
	if id := behaviour.Text(properties, redirect+".id"); id != "" {
		return "redirect-" + last(id)
	}
	return last(behaviour.Text(properties, prefix+".id"))
}

func (s *second) addRedirect(r behaviour.Object) {
	name := "redirect-" + behaviour.Text(r, "name")
	code := map[string]string{"Permanent": "301", "Found": "302", "SeeOther": "303", "Temporary": "307"}
	s.Codes = append(s.Codes, line{name, code[behaviour.Text(r, "properties.redirectType")]})
	to := behaviour.Text(r, "properties.targetUrl")
	if id := behaviour.Text(r, "properties.targetListener.id"); id != "" { // all of them have the port 443
		listener := behaviour.Sub(s.named("httpListeners", id), "properties")
		to = strings.ToLower(behaviour.Text(listener, "protocol")) + "://$host"
		if hosts := behaviour.Texts(listener, "hostNames"); len(hosts) == 1 && !strings.ContainsAny(hosts[0], "*?") {
			to = strings.ToLower(behaviour.Text(listener, "protocol")) + "://" + hosts[0]
		}
	}
	if behaviour.Bool(r, "properties.includePath") {
		to += "$path"
	}
	if behaviour.Bool(r, "properties.includeQueryString") {
		to += "$is_args$args"
	}
	s.Locations = append(s.Locations, line{name, to})
}

var nginxConfig = template.Must(template.New("nginx").Parse(`daemon off; pid {{.Dir}}/pid; error_log stderr; worker_processes 1;
events {}
http {
  access_log off; client_body_temp_path {{.Dir}}/body; proxy_temp_path {{.Dir}}/proxy; fastcgi_temp_path {{.Dir}}/f;
  uwsgi_temp_path {{.Dir}}/u; scgi_temp_path {{.Dir}}/s;
  map $request_uri $path { "~^(?<p>[^?]*)" $p; }
  map "$scheme:$host" $site { default none;{{range .Sites}} "~*{{.Match}}" {{.Value}};{{end}} }
  map "$site:$uri" $to { default none;{{range .Paths}} "~*{{.Match}}" {{.Value}};{{end}} }
  map $to $code { default "";{{range .Codes}} {{.Match}} {{.Value}};{{end}} }
  map $to $location { default "";{{range .Locations}} {{.Match}} "{{.Value}}";{{end}} }
  map $to $pool { default "";{{range .Pools}} {{.Match}} {{.Value}};{{end}} }
{{- define "site"}}
    location / {
      if ($to = none) { return 404; }
      if ($code = 301) { return 301 $location; }
      if ($code = 302) { return 302 $location; }
      if ($code = 303) { return 303 $location; }
      if ($code = 307) { return 307 $location; }
      if ($pool = "") { return 502; }
      proxy_set_header Host $http_host;
      proxy_pass http://$pool$request_uri;
    }
  }
{{end}}
  server {
    listen {{.Plain}};
{{- template "site"}}
{{- range $i, $c := .Certified}}
  server {
    listen {{$.Secure}} ssl{{if $.HTTP2}} http2{{end}}{{if eq $i 0}} default_server{{end}};
    server_name {{$c.Match}};
    ssl_certificate {{$.Dir}}/{{$c.Value}}.crt; ssl_certificate_key {{$.Dir}}/{{$c.Value}}.key;
{{- template "site"}}
{{- end}}
}
`))

// nginx serves a document until the test ends, and returns the addresses for the schemes http and https. The certificates are those of the
// document by name, and the pools have the addresses of backends.
func (w *gatewaySite) nginx(certificates map[string]tls.Certificate, backends map[string]string) map[string]string {
	w.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		w.Skip("there is no second reading of the document: install the package nginx")
	}
	dir := w.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		w.Fatal(err)
	}
	w.write(dir, certificates)
	s := second{doc: w.get(gateID), Dir: dir, Plain: w.free(), Secure: w.free()}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(s.render(backends)), 0o600); err != nil {
		w.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(w.Context()))
	command := exec.CommandContext(ctx, program, "-e", "stderr", "-c", file)
	command.Stdout, command.Stderr = w.Output(), w.Output()
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	if err := command.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { stop(); _ = command.Wait() })
	for _, address := range []string{s.Plain, s.Secure} {
		w.eventually("nginx serves", func() bool {
			c, err := net.Dial("tcp", address)
			if err == nil {
				c.Close()
			}
			return err == nil
		})
	}
	return map[string]string{"http": s.Plain, "https": s.Secure}
}

// free returns an address where nothing listens.
func (w *gatewaySite) free() string {
	w.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// write writes certificates and their keys to files.
func (w *gatewaySite) write(dir string, certificates map[string]tls.Certificate) {
	w.Helper()
	for name, c := range certificates {
		key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
		if err != nil {
			w.Fatal(err)
		}
		for file, block := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, ".key": {Type: "PRIVATE KEY", Bytes: key}} {
			if err := os.WriteFile(filepath.Join(dir, name+file), pem.EncodeToMemory(block), 0o600); err != nil {
				w.Fatal(err)
			}
		}
	}
}

// corpus is a request, without the rest of its address.
type corpus struct {
	Method, Scheme, Host, Path string
	// Name is the server name of TLS, "" for the host.
	Name string
}

func (q corpus) String() string {
	text := q.Method + " " + q.Scheme + "://" + q.Host + q.Path
	if q.Name != "" {
		text += " at the server name " + q.Name
	}
	return text
}

// outcome is what a client sees of a request: the version of HTTP, the certificate, and the answer.
func (w *gatewaySite) outcome(c *http.Client, q corpus) string {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), q.Method, q.Scheme+"://"+q.Host+q.Path, nil)
	if err != nil {
		w.Fatal(err)
	}
	got, err := c.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer got.Body.Close()
	body, _ := io.ReadAll(got.Body)
	seen := got.Proto
	if got.TLS != nil {
		seen += fmt.Sprint(" ", got.TLS.PeerCertificates[0].DNSNames)
	}
	if got.StatusCode != http.StatusOK {
		return fmt.Sprint(seen, " ", got.StatusCode, " ", got.Header.Get("Location"))
	}
	return fmt.Sprint(seen, " ", got.Header.Get("X-Backend"), " ", string(body))
}

// twoReadings has the gateway and nginx answer the same requests.
type twoReadings struct {
	*gatewaySite
	first, second *http.Transport
	compared      int
}

func (w *twoReadings) compare(q corpus) {
	w.Helper()
	w.compared++
	ask := func(from *http.Transport) string {
		c := *w.client()
		c.Transport = from
		if q.Name != "" { // connections of a server name are not those of another
			own := from.Clone()
			own.TLSClientConfig.ServerName = q.Name
			defer own.CloseIdleConnections()
			c.Transport = own
		}
		return w.outcome(&c, q)
	}
	if first, second := ask(w.first), ask(w.second); first != second {
		w.Errorf("%s: the gateway %q, nginx %q", q, first, second)
	}
}

// readTwice serves a document with redirects, path maps, and listeners of both schemes, by the gateway and by nginx.
func readTwice(t *testing.T) *twoReadings {
	w := start(t)
	p, b := three(w)
	certificates := map[string]tls.Certificate{}
	stored := list{}
	for name, host := range map[string]string{"exact": "a.example.com", "wild": "*.example.com", "deep": "*.deep.example.com", "one": "x?.test"} {
		data, _, certificate := pfx(t, "", host)
		certificates[name] = certificate
		stored = append(stored, child(name, object{"data": data}))
	}
	secure := func(certificate string, hosts ...string) object {
		l := listener("443", hosts...)
		l["protocol"], l["sslCertificate"] = "Https", ref("sslCertificates", certificate)
		return l
	}
	p["sslCertificates"], p["enableHttp2"] = stored, true
	p["httpListeners"] = list{child("wild", listener("80", "*.example.com", "x?.test")), child("exact", listener("80", "a.example.com", "b.test")),
		child("one", listener("80", "redirect.test")), child("upgrade", listener("80", "up.test", "*.up.test")),
		child("wild-s", secure("wild", "*.example.com")), child("deep-s", secure("deep", "*.deep.example.com")),
		child("exact-s", secure("exact", "a.example.com", "b.test")), child("one-s", secure("one", "x?.test"))}
	redirect := func(kind, to string, path, query bool) object {
		return child(strings.ToLower(kind), object{"redirectType": kind, "targetUrl": to, "includePath": path, "includeQueryString": query})
	}
	toListener := func(name, listener string) object {
		return child(name, object{"redirectType": "Permanent", "targetListener": ref("httpListeners", listener), "includePath": true,
			"includeQueryString": true})
	}
	p["redirectConfigurations"] = list{redirect("Permanent", "https://to.test", true, true), redirect("Found", "https://to.test/x", false, false),
		redirect("SeeOther", "https://to.test", true, false), redirect("Temporary", "https://to.test/y", false, true),
		toListener("tls", "exact-s"), toListener("down", "redirecting")}
	p["httpListeners"] = append(p["httpListeners"].(list), child("redirecting", secure("exact", "single.test")))
	toRedirect := func(name string, paths ...string) object {
		return child(name, object{"paths": paths, "redirectConfiguration": ref("redirectConfigurations", name)})
	}
	byPath(p, pathRule("p1", "b", "/a/b", "/A/c*"), toRedirect("found", "/go"), pathRule("p2", "c", "/a/*"), toRedirect("seeother", "/see/*"),
		toRedirect("temporary", "/tmp*"), pathRule("p3", "b", "/a/late"), pathRule("p4", "c", "/d.e/*"), toRedirect("down", "/down"))
	mapped := func(listener string, priority int) object {
		return child(listener, object{"ruleType": "PathBasedRouting", "priority": priority, "httpListener": ref("httpListeners", listener),
			"urlPathMap": ref("urlPathMaps", "map")})
	}
	redirected := func(listener string, priority int, to string) object {
		return child(listener, object{"ruleType": "Basic", "priority": priority, "httpListener": ref("httpListeners", listener),
			"redirectConfiguration": ref("redirectConfigurations", to)})
	}
	p["requestRoutingRules"] = list{mapped("wild", 50), child("exact", rule(40, "exact", "c")), redirected("one", 60, "permanent"),
		redirected("upgrade", 70, "tls"), mapped("wild-s", 80), child("deep-s", rule(75, "deep-s", "b")), child("exact-s", rule(90, "exact-s", "c")),
		mapped("one-s", 100), redirected("redirecting", 110, "seeother")}
	w.serve(p)
	addresses := w.nginx(certificates, map[string]string{"a": b[0].address, "b": b[1].address, "c": b[2].address})
	first := w.client().Transport.(*http.Transport)
	second := first.Clone()
	second.DialContext = func(ctx context.Context, network, at string) (net.Conn, error) {
		scheme := "http"
		if strings.HasSuffix(at, ":443") {
			scheme = "https"
		}
		return (&net.Dialer{}).DialContext(ctx, network, addresses[scheme])
	}
	w.Cleanup(second.CloseIdleConnections)
	return &twoReadings{gatewaySite: w, first: first, second: second}
}

// The gateway and nginx read the same document in the same way: a corpus of hosts, paths, schemes, methods and server names.
func TestASecondReading(t *testing.T) {
	w := readTwice(t)
	hosts := []string{"a.example.com", "A.EXAMPLE.com", "z.example.com", "y.z.example.com", "z.deep.example.com", "example.com", "xy.test", "x.test",
		"b.test", "redirect.test", "up.test", "z.up.test", "single.test", "b.test:PORT", "192.0.2.1"}
	paths := []string{"/", "/a", "/a/", "/a/b", "/a/b/", "/A/B", "/a/c", "/a/cd", "/a/x?y=/a/b", "/a/late", "/a//b", "//a/b", "/q/../a/b",
		"/a/%62", "/a/b%2Fc", "/a/./b", "/go", "/go/", "/see/x?y=1", "/tmp", "/tmpx?z=1&z=2", "/see", "/d.e/x", "/dxe/x", "/%C3%A4", "/a/b/..", "/down"}
	for scheme, port := range map[string]string{"http": "80", "https": "443"} {
		for _, host := range hosts {
			host = strings.ReplaceAll(host, "PORT", port)
			for _, path := range paths {
				for _, method := range []string{"GET", "POST", "DELETE"} {
					w.compare(corpus{Method: method, Scheme: scheme, Host: host, Path: path})
				}
			}
		}
	}
	// The certificate follows the server name, and the rule the host.
	for _, name := range append(hosts, "unknown.test", "com") {
		if strings.ContainsAny(name, ":") || net.ParseIP(name) != nil {
			continue
		}
		for _, host := range []string{"a.example.com", "z.example.com", "xy.test", "unknown.test"} {
			w.compare(corpus{Method: "GET", Scheme: "https", Host: host, Path: "/a/b", Name: name})
		}
	}
	t.Logf("%d requests compared", w.compared)
}
