package explain_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"flag"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/gateway"
	"kaz/internal/gateway/explain"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/appgateway"
	"kaz/internal/localazure/core"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/plan/gateway/merge"
	"kaz/internal/plan/gateway/naming"
	"kaz/internal/plan/gateway/pfx"
	"kaz/internal/testkit"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	gatewayID = testkit.Group + "/providers/" + network.ApplicationGateways + "/gate"
	publicIP  = testkit.Group + "/providers/Microsoft.Network/publicIPAddresses/gate"
	subnetID  = testkit.VNet + "/subnets/gate"
)

type object = map[string]any

// epoch is when the objects of the tests were made.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// cluster is a local Azure with an application gateway, and an API server.
type cluster struct {
	*testkit.Azure
	t       *testing.T
	kube    *fake.Clientset
	clients explain.Clients
	config  explain.Config
}

func newCluster(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	w := &cluster{Azure: testkit.NewAzure(t, core.Options{}, 0), t: t, kube: fake.NewClientset(objects...)}
	w.clients.Kube = w.kube
	w.Put(publicIP, object{"location": testkit.Location, "sku": object{"name": "Standard"},
		"properties": object{"publicIPAllocationMethod": "Static"}})
	w.Put(testkit.VNet, object{"location": testkit.Location, "properties": object{
		"addressSpace": object{"addressPrefixes": []string{"10.240.0.0/16", "10.1.0.0/24"}},
		"subnets": []object{
			{"name": "nodes", "properties": object{"addressPrefix": "10.240.0.0/16", "networkSecurityGroup": object{"id": testkit.SecurityGroup}}},
			{"name": "gate", "properties": object{"addressPrefix": "10.1.0.0/24"}},
		},
	}})
	w.Put(gatewayID, byPerson())
	w.config = explain.Config{
		Config: planner.Config{Gateway: gatewayID, Ownership: merge.Ownership{Prefix: naming.Of("0c1d2e3f")}, Identity: "cluster-uid"},
		Class:  ingress.Class{Value: ingress.ClassValue, Name: ingress.ClassName, Controller: ingress.ClassValue},
	}
	return w
}

// byPerson is the document of a gateway as a person writes it, with a listener at port 8000.
func byPerson() object {
	child := func(properties object) []object { return []object{{"name": "other", "properties": properties}} }
	ref := func(list, name string) object { return object{"id": string(gatewayID) + "/" + list + "/" + name} }
	return object{"location": testkit.Location, "properties": object{
		"sku":                     object{"name": "Standard_v2", "tier": "Standard_v2", "capacity": 2},
		"gatewayIPConfigurations": child(object{"subnet": object{"id": subnetID}}),
		"frontendIPConfigurations": []object{{"name": "public", "properties": object{"publicIPAddress": object{"id": publicIP}}},
			{"name": "private", "properties": object{"privateIPAddress": "10.1.0.10", "privateIPAllocationMethod": "Static",
				"subnet": object{"id": subnetID}}}},
		"frontendPorts":       child(object{"port": 8000}),
		"backendAddressPools": child(object{"backendAddresses": []object{{"ipAddress": "10.9.9.9"}}}),
		"backendHttpSettingsCollection": child(object{
			"port": 80, "protocol": "Http", "cookieBasedAffinity": "Disabled", "requestTimeout": 30}),
		"httpListeners": child(object{"frontendIPConfiguration": ref("frontendIPConfigurations", "public"),
			"frontendPort": ref("frontendPorts", "other"), "protocol": "Http"}),
		"requestRoutingRules": child(object{"ruleType": "Basic", "priority": 1, "httpListener": ref("httpListeners", "other"),
			"backendAddressPool": ref("backendAddressPools", "other"), "backendHttpSettings": ref("backendHttpSettingsCollection", "other")}),
	}}
}

// serve lets the controller write the gateway.
func (w *cluster) serve() {
	w.t.Helper()
	c := gateway.New(gateway.Config{Config: w.config.Config, Class: w.config.Class, Azure: w.Client, Kube: w.kube,
		GatewayAPI: w.clients.GatewayAPI, Dynamic: w.clients.Dynamic, Events: &record.FakeRecorder{}, Log: slog.New(slog.DiscardHandler), Calm: gateway.Calm, Most: gateway.Most, Drift: gateway.Drift})
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	<-time.After(10 * time.Second)
	synctest.Wait()
	cancel()
	if err := <-done; err != nil {
		w.t.Error(err)
	}
}

// health sets what the data plane says of all members of the cluster's pools: the first is healthy, the others are not.
func (w *cluster) health() {
	w.t.Helper()
	g := testkit.Must[network.ApplicationGateway](w.Azure, gatewayID)
	var all []appgateway.Health
	for _, p := range g.Properties.Pools {
		for n, a := range p.Properties.Addresses {
			for _, s := range g.Properties.Settings {
				h := appgateway.Health{Pool: p.Name, Setting: s.Name, Address: a.IPAddress, State: "Healthy"}
				if n > 0 {
					h.State, h.Note = "Unhealthy", "the answer 500 is not in 200-399"
				}
				all = append(all, h)
			}
		}
	}
	w.edit(func(doc behaviour.Object) { appgateway.SetHealth(doc, all) })
}

// edit changes the stored document of the gateway.
func (w *cluster) edit(change func(doc behaviour.Object)) {
	w.t.Helper()
	err := w.Do(func(world behaviour.World) error {
		world.Edit(gatewayID, change)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// install gives the gateway a certificate, as a person does.
func (w *cluster) install(s *corev1.Secret) {
	w.t.Helper()
	made, err := pfx.Encode(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		w.t.Fatal(err)
	}
	doc := byPerson()
	doc["properties"].(object)["sslCertificates"] = []object{{"name": "installed",
		"properties": object{"data": made.PFX.Reveal(), "password": made.Password.Reveal()}}}
	w.Put(gatewayID, doc)
}

func (w *cluster) stopGateway() {
	w.t.Helper()
	if _, err := azure.Do(w.t.Context(), w.Client, azure.Request{Verb: azure.Post, ID: gatewayID, Action: "stop"}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *cluster) deleteGateway() {
	w.t.Helper()
	if _, err := azure.Do(w.t.Context(), w.Client, azure.Request{Verb: azure.Delete, ID: gatewayID}); err != nil {
		w.t.Fatal(err)
	}
}

// reader reads past the cache, as kaz explain does.
type reader struct {
	azure.Reader
	azure.Writer
}

// failing refuses the action that shows the health.
type failing struct{ azure.Reader }

func (failing) Begin(context.Context, azure.Request) (*azure.Operation, error) {
	return nil, &azure.Error{Kind: azure.Denied, Code: "AuthorizationFailed", Message: "no action for you"}
}

func class() *networking.IngressClass {
	return &networking.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: ingress.ClassName},
		Spec: networking.IngressClassSpec{Controller: ingress.ClassValue}}
}

// shop is an Ingress of the namespace shop. Paths have the form "PATH SERVICE"; more are annotations, in pairs.
func shop(name, host string, paths []string, change ...func(*networking.Ingress)) *networking.Ingress {
	i := &networking.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(epoch),
		Annotations: map[string]string{}}}
	i.Spec.IngressClassName = new(ingress.ClassName)
	rule := networking.IngressRule{Host: host, IngressRuleValue: networking.IngressRuleValue{HTTP: &networking.HTTPIngressRuleValue{}}}
	for _, p := range paths {
		path, service, _ := strings.Cut(p, " ")
		rule.HTTP.Paths = append(rule.HTTP.Paths, networking.HTTPIngressPath{Path: path, PathType: new(networking.PathTypePrefix),
			Backend: networking.IngressBackend{Service: &networking.IngressServiceBackend{
				Name: service, Port: networking.ServiceBackendPort{Number: 80}}}})
	}
	i.Spec.Rules = []networking.IngressRule{rule}
	for _, c := range change {
		c(i)
	}
	return i
}

func annotated(pairs ...string) func(*networking.Ingress) {
	return func(i *networking.Ingress) {
		for n := 0; n < len(pairs); n += 2 {
			i.Annotations["appgw.ingress.kubernetes.io/"+pairs[n]] = pairs[n+1]
		}
	}
}

func withTLS(secret string, hosts ...string) func(*networking.Ingress) {
	return func(i *networking.Ingress) { i.Spec.TLS = []networking.IngressTLS{{Hosts: hosts, SecretName: secret}} }
}

func younger(i *networking.Ingress) { i.CreationTimestamp = metav1.NewTime(epoch.Add(time.Hour)) }

// service is a Service with port 80 and endpoints at port 8080. Addresses with a ! are not ready, those with a - are terminating.
func service(name string, addresses ...string) []runtime.Object {
	e := &discovery.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		Labels: map[string]string{discovery.LabelServiceName: name}},
		AddressType: discovery.AddressTypeIPv4, Ports: []discovery.EndpointPort{{Name: new(""), Port: new(int32(8080))}}}
	for n, a := range addresses {
		e.Endpoints = append(e.Endpoints, discovery.Endpoint{Addresses: []string{strings.Trim(a, "!-")},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: name + "-" + string(rune('a'+n))},
			Conditions: discovery.EndpointConditions{Ready: new(!strings.HasSuffix(a, "!")),
				Terminating: new(strings.HasSuffix(a, "-"))}})
	}
	return []runtime.Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolTCP}}}}, e}
}

// secret is a Secret with a certificate, which is the same in each run.
func secret(t testing.TB, name string, until time.Time) *corev1.Secret {
	t.Helper()
	key := ed25519.NewKeyFromSeed([]byte("a seed that has as many as 32 by"))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a.example.com"},
		DNSNames: []string{"a.example.com"}, NotBefore: epoch.AddDate(-1, 0, 0), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}}
}

func warning(ingress, reason, message string, minute int) *corev1.Event {
	at := metav1.NewTime(epoch.Add(time.Duration(minute) * time.Minute))
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: ingress + reason + at.Format("04")},
		Type: corev1.EventTypeWarning, InvolvedObject: corev1.ObjectReference{Kind: "Ingress", Namespace: "shop", Name: ingress},
		Reason: reason, Message: message, LastTimestamp: at}
}

// secured is the Ingress of most cases: with TLS, a redirect and two paths.
func secured() *networking.Ingress {
	return shop("web", "a.example.com", []string{"/ web", "/api api"}, withTLS("tls", "a.example.com"), annotated("ssl-redirect", "true"))
}

// TestIngress compares the explanations of Ingresses in each state with the files in testdata.
func TestIngress(t *testing.T) {
	good := secret(t, "tls", epoch.AddDate(9, 0, 0))
	backends := append(service("web", "10.240.0.10", "10.240.0.11", "10.240.0.12!", "10.240.0.13-"), service("api", "10.240.0.20")...)
	some := func(more ...runtime.Object) []runtime.Object {
		return slices.Concat(backends, []runtime.Object{class()}, more)
	}
	for name, c := range map[string]struct {
		azure   func(*cluster)
		objects []runtime.Object
		state   explain.State
	}{
		"served":    {func(w *cluster) { w.serve(); w.health() }, some(good, secured()), explain.Served},
		"new":       {nil, some(good, secured()), explain.Pending},
		"unhealthy": {func(w *cluster) { w.serve(); w.edit(allDown) }, some(shop("web", "", []string{"/ api"})), explain.Served},
		"scaled": {func(w *cluster) {
			w.serve()
			w.addEndpoint("api", "10.240.0.21")
		}, some(shop("web", "", []string{"/ api"})), explain.Pending},
		"stopped": {func(w *cluster) { w.serve(); w.stopGateway() }, some(good, secured()), explain.Held},
		"gone":    {(*cluster).deleteGateway, some(shop("web", "", []string{"/ web"})), explain.Held},
		"updating": {func(w *cluster) {
			w.serve()
			w.edit(func(doc behaviour.Object) { behaviour.Set(doc, "properties.provisioningState", "Updating") })
		}, some(shop("web", "b.example.com", []string{"/ web"})), explain.Served},
		"refused": {nil, some(shop("web", "", []string{"/ web"}),
			warning("web", "FailedApplyingAppGwConfig", "an older refusal", 1),
			warning("web", "FailedApplyingAppGwConfig", "Azure refuses the application gateway with this Ingress: bad", 3),
			warning("web", "ServiceNotFound", "service shop/web does not exist", 2),
			warning("other", "ServiceNotFound", "of another Ingress", 4)), explain.Refused},
		"redirect without TLS": {nil, some(shop("web", "a.example.com", []string{"/ web"}, annotated("ssl-redirect", "true"))), explain.Unserved},
		"conflict": {nil, some(shop("old", "a.example.com", []string{"/ api"}),
			shop("web", "a.example.com", []string{"/ web", "/other web"}, younger)), explain.Pending},
		"without endpoints": {nil, some(shop("web", "", []string{"/ none"})), explain.Pending},
		"expired":           {func(w *cluster) { w.serve() }, some(secret(t, "tls", epoch.AddDate(0, 0, -1)), secured()), explain.Served},
		"expires":           {func(w *cluster) { w.serve() }, some(secret(t, "tls", epoch.AddDate(0, 0, 9)), secured()), explain.Served},
		"stopped before":    {(*cluster).stopGateway, some(shop("web", "", []string{"/ web"})), explain.Held},
		"installed certificate": {func(w *cluster) { w.install(good); w.serve() },
			some(shop("web", "a.example.com", []string{"/ web"}, annotated("appgw-ssl-certificate", "installed"))), explain.Served},
		"missing certificate": {nil,
			some(shop("web", "a.example.com", []string{"/ web"}, withTLS("none"))), explain.Unserved},
		"of another class": {nil, some(shop("web", "", []string{"/ web"}, func(i *networking.Ingress) {
			i.Spec.IngressClassName = new("nginx")
		})), explain.Foreign},
		"of no class": {nil, some(shop("web", "", []string{"/ web"}, func(i *networking.Ingress) { i.Spec.IngressClassName = nil })),
			explain.Foreign},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t, c.objects...)
				if c.azure != nil {
					c.azure(w)
				}
				v := w.explain(reader{w.Client.Fresh(), w.Client})
				if v.State != c.state {
					t.Errorf("the state is %s, want %s", v.State, c.state)
				}
				file := strings.ReplaceAll(name, " ", "-")
				golden(t, file+".txt", v.String())
				if slices.Contains([]string{"served", "unhealthy", "new"}, name) {
					golden(t, file+".svg", v.Picture().Inline(nil))
				}
				if name == "unhealthy" {
					golden(t, "../../../../docs/pictures/ingress.svg", v.Picture().SVG())
				}
				if name == "served" {
					checkFormats(t, file, v)
				}
			})
		})
	}
}

// allDown says that no backend is healthy.
func allDown(doc behaviour.Object) {
	var all []appgateway.Health
	for _, p := range behaviour.Objects(doc, "properties.backendAddressPools") {
		for _, s := range behaviour.Objects(doc, "properties.backendHttpSettingsCollection") {
			all = append(all, appgateway.Health{Pool: behaviour.Text(p, "name"), Setting: behaviour.Text(s, "name"),
				Address: "10.240.0.20", State: "Unhealthy", Note: "connection refused"})
		}
	}
	appgateway.SetHealth(doc, all)
}

func (w *cluster) addEndpoint(service, address string) {
	w.t.Helper()
	slices := w.kube.DiscoveryV1().EndpointSlices("shop")
	e, err := slices.Get(w.t.Context(), service, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	e.Endpoints = append(e.Endpoints, discovery.Endpoint{Addresses: []string{address}})
	if _, err := slices.Update(w.t.Context(), e, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *cluster) explain(from explain.Azure) explain.Ingress {
	w.t.Helper()
	facts, err := explain.Gather(w.t.Context(), w.clients, from, w.config, explain.Subject{Kind: "Ingress", Namespace: "shop", Name: "web"})
	if err != nil {
		w.t.Fatal(err)
	}
	v, err := facts.Explain(epoch)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// TestHealthDenied checks that an explanation without the right to see the health says which right that is.
func TestHealthDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, append(service("web", "10.240.0.10"), class(), shop("web", "", []string{"/ web"}))...)
		w.serve()
		v := w.explain(failing{w.Client.Fresh()})
		if v.State != explain.Served || len(v.Problems) > 0 ||
			!slices.ContainsFunc(v.Warnings, func(text string) bool { return strings.Contains(text, "backendhealth/action") }) {
			t.Errorf("%s, problems %q, warnings %q", v.State, v.Problems, v.Warnings)
		}
	})
}

// TestReads counts the requests to Azure: their number does not depend on the number of Ingresses.
func TestReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := append(service("web", "10.240.0.10"), class(), shop("web", "", []string{"/ web"}))
		for n := range 30 {
			objects = append(objects, shop("more"+string(rune('a'+n)), string(rune('a'+n))+".example.com", []string{"/ web"}))
		}
		w := newCluster(t, objects...)
		w.serve()
		count := &counting{reader: reader{w.Client.Fresh(), w.Client}}
		w.explain(count)
		if count.gets != 2 || count.lists != 0 || count.begun != 1 {
			t.Errorf("%d reads, %d lists and %d actions, want 2, 0 and 1", count.gets, count.lists, count.begun)
		}
	})
}

type counting struct {
	reader
	gets, lists, begun int
}

func (c *counting) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	c.gets++
	return c.reader.Get(ctx, id)
}

func (c *counting) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	c.lists++
	return c.reader.List(ctx, q)
}

func (c *counting) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	c.begun++
	return c.reader.Begin(ctx, r)
}

// address matches public addresses, which differ between runs of tests.
var address = regexp.MustCompile(`198\.1[89]\.[0-9]+\.[0-9]+`)

func golden(t *testing.T, name, got string) {
	t.Helper()
	got = address.ReplaceAllString(got, "PUBLIC")
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-update writes it):\n%s", file, diff)
	}
}

// checkFormats compares JSON and YAML with golden files.
func checkFormats(t *testing.T, file string, v any) {
	t.Helper()
	asJSON, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, file+".json", string(asJSON)+"\n")
	asYAML, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, file+".yaml", string(asYAML))
}

// TestGatherRefuses checks what cannot be explained.
func TestGatherRefuses(t *testing.T) {
	w := newCluster(t)
	subject := explain.Subject{Kind: "Ingress", Namespace: "shop", Name: "web"}
	_, err := explain.Gather(t.Context(), w.clients, reader{w.Client.Fresh(), w.Client}, w.config, subject)
	if want := `read ingress shop/web: ingresses.networking.k8s.io "web" not found`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
