package cluster_test

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// access is a Kubernetes right that a request uses.
type access struct{ verb, group, resource string }

func (a access) String() string {
	if a.group == "" {
		return a.verb + " " + a.resource
	}
	return a.verb + " " + a.resource + "." + a.group
}

// observer is a proxy between a program and the API server. It records the rights that the program
// uses and the requests that are denied.
type observer struct {
	mu      sync.Mutex
	used    map[access]bool
	refused map[string]bool
	url     string
	ca      []byte
}

// observe starts an observer of the cluster's API server.
func (c *cluster) observe() *observer {
	c.t.Helper()
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
	}
	if err := yaml.Unmarshal(readFile(c.t, c.status.Kubeconfig), &config); err != nil {
		c.t.Fatal(err)
	}
	server, err := url.Parse(config.Clusters[0].Cluster.Server)
	if err != nil {
		c.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.Clusters[0].Cluster.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	o := &observer{used: map[access]bool{}, refused: map[string]bool{}}
	// TLS, because clients send tokens over TLS only.
	front := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(server) },
		Transport:      transport,
		FlushInterval:  -1, // watches
		ModifyResponse: o.note,
		// A program may end its watches.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	front.EnableHTTP2 = true
	front.StartTLS()
	c.t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		transport.CloseIdleConnections()
	})
	o.url, o.ca = front.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	return o
}

// has reports whether a right was used.
func (o *observer) has(a access) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.used[a]
}

func (o *observer) note(r *http.Response) error {
	a, ok := accessOf(r.Request)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case r.StatusCode == http.StatusForbidden || r.StatusCode == http.StatusUnauthorized:
		o.refused[fmt.Sprintf("%s %s: %s", r.Request.Method, r.Request.URL.Path, r.Status)] = true
	case ok:
		o.used[a] = true
	}
	return nil
}

// accessOf returns the right that a request needs. Requests for discovery and health need none.
func accessOf(r *http.Request) (access, bool) {
	var a access
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		a.group, parts = parts[1], parts[3:]
	default:
		return a, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	a.resource = parts[0]
	if len(parts) > 2 {
		a.resource += "/" + parts[2]
	}
	a.verb = map[string]string{
		http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
	}[r.Method]
	if a.verb == "get" && len(parts) == 1 {
		a.verb = "list"
	}
	if watching := r.URL.Query().Get("watch"); watching == "true" || watching == "1" {
		a.verb = "watch"
	}
	return a, true
}

// rightsOf returns the rights that the chart grants to a program, from the roles that name it.
func (c *cluster) rightsOf(program string) map[access]bool {
	c.t.Helper()
	var rules []rbacv1.PolicyRule
	for _, role := range get[rbacv1.ClusterRoleList](c, "clusterroles", "-l", "app.kubernetes.io/component="+program).Items {
		rules = append(rules, role.Rules...)
	}
	for _, role := range get[rbacv1.RoleList](c, "roles", "-A", "-l", "app.kubernetes.io/component="+program).Items {
		rules = append(rules, role.Rules...)
	}
	all := map[access]bool{}
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					all[access{verb, group, resource}] = true
				}
			}
		}
	}
	return all
}

// fallback returns the rights that a program needs only sometimes: lists if the API server does not
// stream them, and updates of repeated events.
func (o *observer) fallback(a access) bool {
	return a.verb == "list" && o.used[access{"watch", a.group, a.resource}] ||
		a == access{"patch", "", "events"} && o.used[access{"create", "", "events"}]
}

// narrow checks that a program used every right that the chart grants, and that no request was
// denied.
func (c *cluster) narrow(program string, o *observer) {
	c.t.Helper()
	given := c.rightsOf(program)
	if len(given) == 0 {
		c.t.Fatalf("%s has no rights", program)
	}
	var unused []string
	o.mu.Lock()
	defer o.mu.Unlock()
	for a := range given {
		if !o.used[a] && !o.fallback(a) {
			unused = append(unused, a.String())
		}
	}
	slices.Sort(unused)
	if len(unused) > 0 {
		c.t.Errorf("%s has rights that it makes no use of: %s", program, strings.Join(unused, ", "))
	}
	for what := range o.refused {
		c.t.Errorf("%s was refused %s", program, what)
	}
}

// account writes a kubeconfig with a service account's token, for the API server behind an observer.
func (c *cluster) account(name string, o *observer) string {
	c.t.Helper()
	token := strings.TrimSpace(c.must("", "create", "token", name, "-n", "kube-system", "--duration", "1h"))
	return c.kubeconfig(name, o, map[string]any{"token": token})
}

// accountOn is a kubeconfig of a service account in a pod on a node, which need not exist. The API server has the name of the node from
// the token of a pod. Here there is no pod: an administrator acts as its service account.
func (c *cluster) accountOn(name, node string, o *observer) string {
	c.t.Helper()
	const administrator = "administrator-of-tests"
	if c.must("", "get", "serviceaccount", administrator, "-n", "kube-system", "--ignore-not-found", "-o", "name") == "" {
		c.must("", "create", "serviceaccount", administrator, "-n", "kube-system")
		c.must("", "create", "clusterrolebinding", administrator, "--clusterrole=cluster-admin",
			"--serviceaccount=kube-system:"+administrator)
	}
	token := strings.TrimSpace(c.must("", "create", "token", administrator, "-n", "kube-system", "--duration", "1h"))
	return c.kubeconfig(name, o, map[string]any{
		"token": token, "as": "system:serviceaccount:kube-system:" + name,
		"as-groups":     []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
		"as-user-extra": map[string][]string{"authentication.kubernetes.io/node-name": {node}},
	})
}

// kubeconfig writes a kubeconfig of a user who is observed.
func (c *cluster) kubeconfig(name string, o *observer, user map[string]any) string {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), name+".json")
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": o.url, "certificate-authority-data": o.ca}}},
		"users":    []any{map[string]any{"name": "u", "user": user}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "u"}}},
	})
	if err := cmp.Or(err, os.WriteFile(file, text, 0o600)); err != nil {
		c.t.Fatal(err)
	}
	return file
}
