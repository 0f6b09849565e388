package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"
	"time"

	"kaz/internal/localazure/behaviour"
)

// second renders a gateway's document for nginx, which is a second reading of the document: nginx compares hosts and paths by its own
// regular expressions, and resolves paths by itself. It knows listeners of the frontend at port 80, path maps and redirects to URLs.
func second(doc behaviour.Object, backends map[string]string, port, dir string) string {
	type line struct{ Match, Value string }
	data := struct {
		Port, Dir           string
		Sites, Paths, Pools []line
		Codes, Locations    []line
	}{Port: port, Dir: dir}
	named := func(list, id string) behaviour.Object {
		return behaviour.Named(doc, "properties."+list, id[strings.LastIndexByte(id, '/')+1:])
	}
	wild := func(pattern string) string {
		return strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	}
	// target returns the name of what a rule, path rule or path map leads to.
	target := func(properties behaviour.Object, prefix, redirect string) string {
		if id := behaviour.Text(properties, redirect+".id"); id != "" {
			return "redirect-" + id[strings.LastIndexByte(id, '/')+1:]
		}
		id := behaviour.Text(properties, prefix+".id")
		return id[strings.LastIndexByte(id, '/')+1:]
	}
	rules := behaviour.Objects(doc, "properties.requestRoutingRules")
	for n := 1; n <= 20000; n++ {
		for i, r := range rules {
			p := behaviour.Sub(r, "properties")
			if priority, _ := behaviour.Int(p, "priority"); priority != n {
				continue
			}
			site := fmt.Sprint("s", i)
			hosts := behaviour.Texts(named("httpListeners", behaviour.Text(p, "httpListener.id")), "properties.hostNames")
			if len(hosts) == 0 {
				hosts = []string{"*"}
			}
			for _, h := range hosts {
				data.Sites = append(data.Sites, line{"^" + wild(h) + "$", site})
			}
			last := target(p, "backendAddressPool", "redirectConfiguration")
			if id := behaviour.Text(p, "urlPathMap.id"); id != "" {
				m := behaviour.Sub(named("urlPathMaps", id), "properties")
				for _, rule := range behaviour.Objects(m, "pathRules") {
					q := behaviour.Sub(rule, "properties")
					for _, path := range behaviour.Texts(q, "paths") {
						data.Paths = append(data.Paths, line{"^" + site + ":" + wild(path) + "$",
							target(q, "backendAddressPool", "redirectConfiguration")})
					}
				}
				last = target(m, "defaultBackendAddressPool", "defaultRedirectConfiguration")
			}
			data.Paths = append(data.Paths, line{"^" + site + ":", last})
		}
	}
	for _, r := range behaviour.Objects(doc, "properties.redirectConfigurations") {
		name := "redirect-" + behaviour.Text(r, "name")
		code := map[string]string{"Permanent": "301", "Found": "302", "SeeOther": "303", "Temporary": "307"}
		data.Codes = append(data.Codes, line{name, code[behaviour.Text(r, "properties.redirectType")]})
		to := behaviour.Text(r, "properties.targetUrl")
		if behaviour.Bool(r, "properties.includePath") {
			to += "$path"
		}
		if behaviour.Bool(r, "properties.includeQueryString") {
			to += "$is_args$args"
		}
		data.Locations = append(data.Locations, line{name, to})
	}
	for name, address := range backends {
		data.Pools = append(data.Pools, line{name, address})
	}
	var b strings.Builder
	if err := nginxConfig.Execute(&b, data); err != nil {
		panic(err)
	}
	return b.String()
}

var nginxConfig = template.Must(template.New("nginx").Parse(`daemon off; pid {{.Dir}}/pid; error_log stderr; worker_processes 1;
events {}
http {
  access_log off; client_body_temp_path {{.Dir}}/body; proxy_temp_path {{.Dir}}/proxy; fastcgi_temp_path {{.Dir}}/f;
  uwsgi_temp_path {{.Dir}}/u; scgi_temp_path {{.Dir}}/s;
  map $request_uri $path { "~^(?<p>[^?]*)" $p; }
  map $host $site { default none;{{range .Sites}} "~*{{.Match}}" {{.Value}};{{end}} }
  map "$site:$uri" $to { default none;{{range .Paths}} "~*{{.Match}}" {{.Value}};{{end}} }
  map $to $code { default "";{{range .Codes}} {{.Match}} {{.Value}};{{end}} }
  map $to $location { default "";{{range .Locations}} {{.Match}} "{{.Value}}";{{end}} }
  map $to $pool { default "";{{range .Pools}} {{.Match}} {{.Value}};{{end}} }
  server {
    listen {{.Port}};
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
}
`))

// nginx serves a configuration until the test ends, and returns its address.
func (w *world) nginx(render func(port, dir string) string) string {
	w.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		w.Skip("there is no second reading of the document: install the package nginx")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	dir := w.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		w.Fatal(err)
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(render(address, dir)), 0o600); err != nil {
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
	w.eventually("nginx serves", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return address
}

// outcome is what a client sees of a request.
func (w *world) outcome(c *http.Client, method, host, path string) string {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, "http://"+host+path, nil)
	if err != nil {
		w.Fatal(err)
	}
	got, err := c.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer got.Body.Close()
	body, _ := io.ReadAll(got.Body)
	if got.StatusCode != http.StatusOK {
		return fmt.Sprint(got.StatusCode, " ", got.Header.Get("Location"))
	}
	return fmt.Sprint(got.Header.Get("X-Backend"), " ", string(body))
}

// The gateway and nginx read the same document in the same way: a corpus of hosts, paths and methods.
func TestASecondReading(t *testing.T) {
	w := start(t)
	p, b := three(w)
	p["httpListeners"] = list{child("wild", listener("80", "*.example.com", "x?.test")), child("exact", listener("80", "a.example.com", "b.test")),
		child("one", listener("80", "redirect.test"))}
	redirect := func(kind, to string, path, query bool) object {
		return child(strings.ToLower(kind), object{"redirectType": kind, "targetUrl": to, "includePath": path, "includeQueryString": query})
	}
	p["redirectConfigurations"] = list{redirect("Permanent", "https://to.test", true, true), redirect("Found", "https://to.test/x", false, false),
		redirect("SeeOther", "https://to.test", true, false), redirect("Temporary", "https://to.test/y", false, true)}
	toRedirect := func(name string, paths ...string) object {
		return child(name, object{"paths": paths, "redirectConfiguration": ref("redirectConfigurations", name)})
	}
	byPath(p, pathRule("p1", "b", "/a/b", "/A/c*"), toRedirect("found", "/go"), pathRule("p2", "c", "/a/*"), toRedirect("seeother", "/see/*"),
		toRedirect("temporary", "/tmp*"), pathRule("p3", "b", "/a/late"), pathRule("p4", "c", "/d.e/*"))
	mapped := p["requestRoutingRules"].(list)[0].(object)["properties"].(object)
	mapped["httpListener"], mapped["priority"] = ref("httpListeners", "wild"), 50
	p["requestRoutingRules"] = list{child("wild", mapped), child("exact", rule(40, "exact", "c")),
		child("one", object{"ruleType": "Basic", "priority": 60, "httpListener": ref("httpListeners", "one"),
			"redirectConfiguration": ref("redirectConfigurations", "permanent")})}
	w.serve(p)
	address := w.nginx(func(listen, dir string) string {
		return second(w.get(gateID), map[string]string{"a": b[0].address, "b": b[1].address, "c": b[2].address}, listen, dir)
	})
	gate := w.client()
	other := w.client()
	other.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	compared := 0
	for _, host := range []string{"a.example.com", "A.EXAMPLE.com", "z.example.com", "y.z.example.com", "example.com", "xy.test", "x.test", "b.test",
		"redirect.test", "b.test:80", "192.0.2.1"} {
		for _, path := range []string{"/", "/a", "/a/", "/a/b", "/a/b/", "/A/B", "/a/c", "/a/cd", "/a/x?y=/a/b", "/a/late", "/a//b", "//a/b", "/q/../a/b",
			"/a/%62", "/a/b%2Fc", "/a/./b", "/go", "/go/", "/see/x?y=1", "/tmp", "/tmpx?z=1&z=2", "/see", "/d.e/x", "/dxe/x", "/%C3%A4", "/a/b/.."} {
			for _, method := range []string{"GET", "POST", "DELETE"} {
				compared++
				if first, second := w.outcome(gate, method, host, path), w.outcome(other, method, host, path); first != second {
					t.Errorf("%s %s%s: the gateway %q, nginx %q", method, host, path, first, second)
				}
			}
		}
	}
	t.Logf("%d requests compared", compared)
}
