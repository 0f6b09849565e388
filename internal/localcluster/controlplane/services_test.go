package controlplane

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// called are a webhook and an aggregated API. Their pod is at 10.244.0.9:8443, their ClusterIP is another address. The
// placeholder is the certificate authority of the webhook.
const called = `
apiVersion: v1
kind: Service
metadata: {name: hook, namespace: default}
spec: {ports: [{port: 443, targetPort: 8443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: hook, namespace: default, labels: {kubernetes.io/service-name: hook}}
addressType: IPv4
endpoints: [{addresses: [10.244.0.9], conditions: {ready: true}}]
ports: [{name: "", port: 8443, protocol: TCP}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook}
webhooks:
- name: hook.kaz.dev
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: hook, namespace: default, path: /review}, caBundle: %s}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  matchConditions: [{name: name, expression: 'object.metadata.name == "unwanted"'}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.hook.kaz.dev}
spec:
  group: hook.kaz.dev
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 10
  insecureSkipTLSVerify: true
  service: {name: hook, namespace: default}
`

// egress is a CONNECT proxy that leads every connection to the pod, and knows what the API server asked for.
type egress struct {
	socket, pod string
	mu          sync.Mutex
	targets     map[string]bool
}

func (e *egress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	e.targets[r.Host] = true
	e.mu.Unlock()
	pod, err := net.Dial("tcp", e.pod)
	if err != nil || r.Method != http.MethodConnect {
		http.Error(w, fmt.Sprint(r.Method, err), http.StatusBadGateway)
		return
	}
	defer pod.Close()
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	_, _ = io.WriteString(client, "HTTP/1.1 200 Connection Established\r\n\r\n")
	go func() { _, _ = io.Copy(pod, client); pod.Close() }()
	_, _ = io.Copy(client, pod) // until either side closes
}

// pod answers as the webhook, which refuses everything, and as the aggregated API.
func pod(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/review" {
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"hook.kaz.dev/v1","resources":[]}`)
		return
	}
	var review map[string]any
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	request, _ := review["request"].(map[string]any)
	review["response"] = map[string]any{"uid": request["uid"], "allowed": false, "status": map[string]any{"message": "refused by the pod"}}
	_ = json.NewEncoder(w).Encode(review) // to the API server, which reports what it lacks
}

// startEgress serves the pod, and the way to it, until the end of the test. It returns the pod's certificate authority.
func startEgress(t *testing.T) (*egress, string) {
	t.Helper()
	dir := t.TempDir()
	a, err := openAuthority(dir, "hook-ca")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := a.issue("hook", request{user: "hook", names: []string{"hook.default.svc"}})
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(a.file)
	if err != nil {
		t.Fatal(err)
	}
	listen := func(network, address string, h http.Handler, files ...string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: h}
		var done sync.WaitGroup
		done.Go(func() {
			if len(files) > 0 {
				_ = server.ServeTLS(l, files[0], files[1]) // until it is closed
				return
			}
			_ = server.Serve(l)
		})
		t.Cleanup(func() { server.Close(); done.Wait() })
		return l
	}
	e := &egress{socket: dir + "/egress.sock", targets: map[string]bool{}}
	e.pod = listen("tcp", "127.0.0.1:0", http.HandlerFunc(pod), cert, key).Addr().String()
	listen("unix", e.socket, e)
	return e, base64.StdEncoding.EncodeToString(authority)
}

// reachesServices checks that the API server calls the pods of webhooks and of aggregated APIs by their own addresses:
// ClusterIPs exist only on nodes.
func (c *cluster) reachesServices(e *egress, authority string) {
	c.t.Helper()
	c.run(fmt.Sprintf(called, authority), "apply", "-f", "-")
	c.await("condition=Available", "apiservice/v1.hook.kaz.dev")
	if got := c.run("", "get", "--raw", "/apis/hook.kaz.dev/v1"); !strings.Contains(got, "hook.kaz.dev/v1") {
		c.t.Errorf("the aggregated API answers %s", got)
	}
	c.refusesConfigMap()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.targets) != 1 || !e.targets["10.244.0.9:8443"] {
		c.t.Errorf("the API server asked for %v", e.targets)
	}
}

// refusesConfigMap waits until the webhook refuses a ConfigMap: the API server learns of a webhook some time after its
// creation.
func (c *cluster) refusesConfigMap() {
	c.t.Helper()
	var out []byte
	for range 100 {
		cmd := exec.CommandContext(c.t.Context(), c.kubectl, "--kubeconfig", c.Kubeconfig, "create", "configmap", "unwanted")
		cmd.Env = []string{"HOME=" + c.t.TempDir()}
		var err error
		if out, err = cmd.CombinedOutput(); err != nil {
			break
		}
		c.run("", "delete", "configmap", "unwanted")
	}
	if !strings.Contains(string(out), "refused by the pod") {
		c.t.Errorf("the webhook's answer: %s", out)
	}
}
