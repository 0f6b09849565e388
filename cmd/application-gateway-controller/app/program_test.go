package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/component-base/cli"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/host/freeport"
	"kaz/internal/localazure/server"
)

// asProgram has the test binary be the program, in a process of its own with the environment of a container.
const asProgram = "KAZ_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Run(Command(os.LookupEnv)))
	}
	os.Exit(m.Run())
}

type object = map[string]any

// TestProgram runs the program as AGIC is run, by its environment. It serves an Ingress and a Gateway, writes their statuses, and answers
// with status codes.
func TestProgram(t *testing.T) {
	local, config := serveAzure(t)
	group := azure.GroupID(local.Info().Subscription, "kaz")
	gate := group.Resource(network.ApplicationGateways, "gate")
	client := layDocuments(t, local, group, gate)
	ports, err := freeport.Choose("127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	kube := &api{statuses: map[string]chan string{"ingresses": make(chan string, 1), "gateways": make(chan string, 1)}}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "--cloud-config="+config, "--kubeconfig="+kube.serve(t),
		"--leader-elect=false", "--metrics-address="+ports[1], "--answers-service=kube-system/answers", "--answers-address="+ports[0])
	command.Env = []string{asProgram + "=1", "SSL_CERT_FILE=" + local.Info().CAFile, "APPGW_RESOURCE_ID=" + string(gate)}
	var log bytes.Buffer
	command.Stderr = &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	doc, err := client.Get(t.Context(), group.Resource("Microsoft.Network/publicIPAddresses", "gate"))
	ip, wrong := azure.Decode[network.PublicIPAddress](doc)
	if err != nil || wrong != nil {
		t.Error(err, wrong)
	}
	kube.wait(t, "ingresses", ip.Properties.IPAddress)
	kube.wait(t, "gateways", ip.Properties.IPAddress)
	answersWith(t, "http://"+ports[0]+"/500/x", http.StatusInternalServerError)
	checkDiagnostics(t, "http://"+ports[1])
	if err := errors.Join(command.Process.Signal(syscall.SIGTERM), command.Wait()); err != nil {
		t.Error(err)
	}
	doc, err = client.Get(t.Context(), gate)
	for _, part := range []string{"a.example.com", "b.example.com", `"team":"web"`} {
		if err != nil || !strings.Contains(string(doc), part) {
			t.Errorf("%v: no %s in %s\n%s", err, part, doc, log.String())
		}
	}
	if t.Failed() {
		t.Log(log.String())
	}
}

// layDocuments writes a gateway with its network.
func layDocuments(t *testing.T, local *server.Server, group, gate azure.ID) *arm.Client {
	t.Helper()
	client, err := local.Client()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents(group, gate) {
		text, err := json.Marshal(d.body)
		if err == nil {
			_, err = azure.Do(t.Context(), client, azure.Request{Verb: azure.Put, ID: d.id, Body: text})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return client
}

// checkDiagnostics reads what the program serves about itself, also at the paths of AGIC.
func checkDiagnostics(t *testing.T, url string) {
	t.Helper()
	for path, wants := range map[string][]string{
		"/healthz": {"ok"}, "/readyz": {"ok"}, "/health/alive": {"ok"}, "/health/ready": {"ok"},
		"/metrics": {
			`kaz_gateway_writes_total{result="succeeded"} `,
			`appgw_ingress_controller_arm_api_update_call_success_counter{controller_appgw_name="gate"`,
			`workqueue_adds_total{name="ingresses"}`, "kaz_arm_request_duration_seconds_count",
		},
	} {
		text := get(t, url+path)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %s:\n%s", path, want, text)
			}
		}
	}
}

// serveAzure starts a local Azure with access control, and returns the path of azure.json.
func serveAzure(t *testing.T, change ...func(o *server.Options)) (*server.Server, string) {
	t.Helper()
	const id, secret = "aaaaaaaa-0000-4000-8000-00000000000e", "controller-secret"
	dir := t.TempDir()
	identities, path := filepath.Join(dir, "identities.yaml"), filepath.Join(dir, "azure.json")
	text := fmt.Sprintf("applications:\n- {clientId: %s, secrets: [%s], roleAssignments: [{role: Contributor}]}\n", id, secret)
	if err := os.WriteFile(identities, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options := server.Options{AccessControl: "on", Identities: identities, Log: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&options)
	}
	s, err := server.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	info := s.Info()
	config, err := json.Marshal(object{
		"resourceManagerEndpoint": info.ARM, "cloud": "AzureStackCloud", "tenantId": info.Tenant, "subscriptionId": info.Subscription,
		"resourceGroup": "kaz", "location": "westeurope", "aadClientId": id, "aadClientSecret": secret,
	})
	if err == nil {
		err = os.WriteFile(path, config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, path
}

// document is a document with its id.
type document struct {
	id   azure.ID
	body object
}

// documents are a gateway with its network.
func documents(group, gate azure.ID) []document {
	one := func(properties object) []object { return []object{{"name": "first", "properties": properties}} }
	ref := func(list string) object { return object{"id": gate.Child(list, "first")} }
	vnet := group.Resource("Microsoft.Network/virtualNetworks", "vnet")
	ip := group.Resource("Microsoft.Network/publicIPAddresses", "gate")
	const location = "westeurope"
	return []document{
		{group, object{"location": location}},
		{vnet, object{"location": location, "properties": object{
			"addressSpace": object{"addressPrefixes": []string{"10.1.0.0/16"}}, "subnets": one(object{"addressPrefix": "10.1.0.0/24"}),
		}}},
		{ip, object{"location": location, "sku": object{"name": "Standard"}, "properties": object{"publicIPAllocationMethod": "Static"}}},
		{gate, object{"location": location, "tags": object{"team": "web"}, "properties": object{
			"sku":                           object{"name": "Standard_v2", "tier": "Standard_v2", "capacity": 1},
			"gatewayIPConfigurations":       one(object{"subnet": object{"id": vnet.Child("subnets", "first")}}),
			"frontendIPConfigurations":      one(object{"publicIPAddress": object{"id": ip}}),
			"frontendPorts":                 one(object{"port": 8000}),
			"backendAddressPools":           one(object{}),
			"backendHttpSettingsCollection": one(object{"port": 80, "protocol": "Http", "cookieBasedAffinity": "Disabled", "requestTimeout": 30}),
			"httpListeners": one(object{
				"frontendIPConfiguration": ref("frontendIPConfigurations"), "frontendPort": ref("frontendPorts"), "protocol": "Http",
			}),
			"requestRoutingRules": one(object{
				"ruleType": "Basic", "priority": 20000, "httpListener": ref("httpListeners"), "backendAddressPool": ref("backendAddressPools"),
				"backendHttpSettings": ref("backendHttpSettingsCollection"),
			}),
		}}},
	}
}

// api is a Kubernetes API with one Ingress, and a Gateway with a route.
type api struct {
	statuses map[string]chan string // by resource
	// first answers before all others, and reports whether it did; nil for nothing to answer.
	first func(w http.ResponseWriter, r *http.Request) bool
}

// wait waits until a status is written that has an address.
func (a *api) wait(t *testing.T, resource, address string) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case status := <-a.statuses[resource]:
			if strings.Contains(status, address) { // the client may write protocol buffers
				return
			}
		case <-late:
			t.Errorf("no status of %s with address %s is written", resource, address)
			return
		}
	}
}

func answersWith(t *testing.T, url string, want int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return
	}
	defer http.DefaultClient.CloseIdleConnections()
	if err := response.Body.Close(); err != nil || response.StatusCode != want {
		t.Errorf("%s: %s, %v", url, response.Status, err)
	}
}

const anIngress = `{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"namespace":"default","name":"web","uid":"1","resourceVersion":"1"},
	"spec":{"ingressClassName":"azure-application-gateway","rules":[{"host":"a.example.com","http":{"paths":[{"path":"/","pathType":"Prefix",
	"backend":{"service":{"name":"web","port":{"number":80}}}}]}}]}}`

const aClass = `{"apiVersion":"networking.k8s.io/v1","kind":"IngressClass","metadata":{"name":"azure-application-gateway","resourceVersion":"1"},
	"spec":{"controller":"azure/application-gateway"}}`

const (
	served = `{"kind":"APIResourceList","groupVersion":"gateway.networking.k8s.io/v1","resources":[{"name":"gatewayclasses"},{"name":"gateways"},
	{"name":"httproutes"},{"name":"referencegrants"},{"name":"backendtlspolicies"},{"name":"tcproutes"},{"name":"tlsroutes"}]}`
	aGatewayClass = `{"metadata":{"name":"azure","resourceVersion":"1"},"spec":{"controllerName":"azure/application-gateway"}}`
	aGateway      = `{"metadata":{"namespace":"default","name":"gate","uid":"2","resourceVersion":"1","generation":1},
	"spec":{"gatewayClassName":"azure","listeners":[{"name":"http","port":80,"protocol":"HTTP"}]}}`
	aRoute = `{"metadata":{"namespace":"default","name":"web","uid":"3","resourceVersion":"1","generation":1},"spec":{"parentRefs":[{"name":"gate"}],
	"hostnames":["b.example.com"],"rules":[{"matches":[{"path":{"type":"PathPrefix","value":"/"}}],"backendRefs":[{"name":"web","port":80}]}]}}`
)

// serve serves the API until the test ends, and returns a kubeconfig.
func (a *api) serve(t *testing.T) string {
	t.Helper()
	ended := t.Context().Done()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch {
		case a.first != nil && a.first(w, r):
		case query.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity) // as an older API server; the client lists then
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		case query.Get("watch") != "":
			w.(http.Flusher).Flush()
			select { // nothing changes
			case <-r.Context().Done():
			case <-ended:
			}
		case r.Method == http.MethodPut:
			text, _ := io.ReadAll(r.Body) // what is missing is no status
			_, _ = w.Write(text)
			for resource, statuses := range a.statuses {
				if strings.Contains(r.URL.Path, "/"+resource+"/") {
					select {
					case statuses <- string(text):
					case <-ended:
					}
				}
			}
		default:
			_, _ = io.WriteString(w, a.answer(r.URL.Path))
		}
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],
		"contexts":[{"name":"c","context":{"cluster":"c"}}]}`, server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// answer returns the answer to a GET.
func (a *api) answer(path string) string {
	list := func(version, kind, items string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"1"},"items":[%s]}`, version, kind, items)
	}
	switch {
	case strings.HasSuffix(path, "/namespaces/kube-system"):
		return `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"0a1b2c3d"}}`
	case strings.HasSuffix(path, "/ingresses"):
		return list("networking.k8s.io/v1", "IngressList", anIngress)
	case strings.HasSuffix(path, "/ingressclasses"):
		return list("networking.k8s.io/v1", "IngressClassList", aClass)
	case strings.HasSuffix(path, "/gateway.networking.k8s.io/v1"):
		return served
	case strings.Contains(path, "/gateway.networking.k8s.io/v1/"):
		kind := map[string]string{
			"gatewayclasses": "GatewayClass", "gateways": "Gateway", "httproutes": "HTTPRoute", "referencegrants": "ReferenceGrant",
			"backendtlspolicies": "BackendTLSPolicy", "tcproutes": "TCPRoute", "tlsroutes": "TLSRoute",
		}[filepath.Base(path)]
		return list("gateway.networking.k8s.io/v1", kind+"List", map[string]string{
			"GatewayClass": aGatewayClass, "Gateway": aGateway, "HTTPRoute": aRoute,
		}[kind])
	case strings.HasSuffix(path, "/endpointslices"):
		return list("discovery.k8s.io/v1", "EndpointSliceList", "")
	}
	return list("v1", map[string]string{
		"services": "ServiceList", "pods": "PodList", "secrets": "SecretList", "configmaps": "ConfigMapList", "namespaces": "NamespaceList",
	}[filepath.Base(path)], "")
}
