package gateway_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	gatewayfake "sigs.k8s.io/gateway-api/pkg/client/clientset/versioned/fake"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/gateway"
	"kaz/internal/localazure/core"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/plan/gateway/health"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/plan/gateway/merge"
	"kaz/internal/plan/gateway/naming"
	"kaz/internal/testkit"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	watch.DefaultChanSize = 1 << 12 // the fake API server panics when a watcher falls behind
	goleak.VerifyTestMain(m)
}

// Names in the local Azure.
const (
	gateways  = string(testkit.Group + "/providers/" + network.ApplicationGateways + "/")
	publicIPs = string(testkit.Group + "/providers/Microsoft.Network/publicIPAddresses/")
	gatewayID = azure.ID(gateways + "gate")
	subnetID  = testkit.VNet + "/subnets/gate"
	clusterID = "0c1d2e3f"
)

// cluster is a local Azure with an application gateway, an API server, and a controller in a synctest bubble.
type cluster struct {
	*testkit.Azure
	t       testing.TB
	kube    *fake.Clientset
	api     *gatewayfake.Clientset
	events  *events
	config  gateway.Config
	address string // of the gateway
	log     *bytes.Buffer
	stop    func()
}

type object = map[string]any

// Writes returns the writes. A question about the health of backends is none, although it is a POST.
func (w *cluster) Writes() []string {
	return slices.DeleteFunc(w.Azure.Writes(), func(line string) bool { return line == "POST "+health.Action })
}

// newCluster returns a cluster with an application gateway as a person makes it: with a listener of its own at port 8000.
func newCluster(t *testing.T, o core.Options, objects ...runtime.Object) *cluster {
	t.Helper()
	w := &cluster{Azure: testkit.NewAzure(t, o, 0), t: t, kube: fake.NewClientset(objects...), events: &events{}, log: &bytes.Buffer{}}
	w.Put(testkit.VNet, object{"location": testkit.Location, "properties": object{
		"addressSpace": object{"addressPrefixes": []string{"10.240.0.0/16", "10.1.0.0/24"}},
		"subnets": []object{
			{"name": "nodes", "properties": object{"addressPrefix": "10.240.0.0/16", "networkSecurityGroup": object{"id": testkit.SecurityGroup}}},
			{"name": "gate", "properties": object{"addressPrefix": "10.1.0.0/24"}},
		},
	}})
	w.address = w.makeGateway("gate", "10.1.0.10")
	w.config = gateway.Config{
		Config: planner.Config{
			Gateway: gatewayID, Ownership: merge.Ownership{Prefix: naming.Of(clusterID)}, Identity: "cluster-uid",
		},
		Class: ingress.Class{
			Value: ingress.ClassValue, Name: ingress.ClassName, Controller: ingress.ClassValue,
		},
		Azure: w.Client, Kube: w.kube, Events: w.events, Log: slog.New(slog.NewTextHandler(w.log, nil)),
		Calm: gateway.Calm, Most: gateway.Most, Drift: gateway.Drift,
	}
	return w
}

// makeGateway makes an application gateway, and returns its public address.
func (w *cluster) makeGateway(name, private string) string {
	ip, gate := azure.ID(publicIPs+name), azure.ID(gateways+name)
	w.Put(ip, object{
		"location": testkit.Location, "sku": object{"name": "Standard"}, "properties": object{"publicIPAllocationMethod": "Static"},
	})
	w.Put(gate, byPerson(gate, ip, private))
	return testkit.Must[network.PublicIPAddress](w.Azure, ip).Properties.IPAddress
}

// byPerson is the document of a gateway as a person writes it, with a listener at port 8000.
func byPerson(gate, ip azure.ID, private string) object {
	child := func(name string, properties object) []object {
		return []object{{"name": name, "properties": properties}}
	}
	ref := func(list, name string) object { return object{"id": gate.Child(list, name)} }
	return object{"location": testkit.Location, "tags": object{"team": "web"}, "properties": object{
		"sku":                     object{"name": "Standard_v2", "tier": "Standard_v2", "capacity": 2},
		"gatewayIPConfigurations": child("subnet", object{"subnet": object{"id": subnetID}}),
		"frontendIPConfigurations": []object{
			{"name": "public", "properties": object{"publicIPAddress": object{"id": ip}}},
			{"name": "private", "properties": object{
				"privateIPAddress": private, "privateIPAllocationMethod": "Static", "subnet": object{"id": subnetID},
			}},
		},
		"frontendPorts":       child("other", object{"port": 8000}),
		"backendAddressPools": child("other", object{"backendAddresses": []object{{"ipAddress": "10.9.9.9"}}}),
		"backendHttpSettingsCollection": child("other", object{
			"port": 80, "protocol": "Http", "cookieBasedAffinity": "Disabled", "requestTimeout": 30,
		}),
		"httpListeners": child("other", object{
			"frontendIPConfiguration": ref("frontendIPConfigurations", "public"), "frontendPort": ref("frontendPorts", "other"), "protocol": "Http",
		}),
		"requestRoutingRules": child("other", object{
			"ruleType": "Basic", "priority": 1, "httpListener": ref("httpListeners", "other"),
			"backendAddressPool": ref("backendAddressPools", "other"), "backendHttpSettings": ref("backendHttpSettingsCollection", "other"),
		}),
	}}
}

// start runs the controller until the test ends or stop is called.
func (w *cluster) start() {
	w.t.Helper()
	w.run(w.t)
	w.pass(5 * time.Second)
}

// run runs the controller until stop is called. Outside of simulated time, it returns at once.
func (w *cluster) run(t testing.TB) {
	t.Helper()
	c := gateway.New(w.config)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Run(ctx); err != nil {
			w.t.Error(err)
		}
	}()
	w.stop = sync.OnceFunc(func() { cancel(); <-done })
}

// pass lets time pass.
func (w *cluster) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// scenario runs a test in simulated time.
func scenario(t *testing.T, name string, run func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, run) })
}

// events are the Events that a controller wrote, such as "default/web InvalidAnnotation: ...".
type events struct {
	record.FakeRecorder
	mu  sync.Mutex
	all []string
}

// Event implements [record.EventRecorder].
func (e *events) Event(o runtime.Object, _, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m, err := meta.Accessor(o)
	if err != nil {
		panic(err)
	}
	if _, err := reference.GetReference(scheme.Scheme, o); err != nil { // as the real recorder does
		e.all = append(e.all, err.Error())
		return
	}
	e.all = append(e.all, fmt.Sprintf("%s/%s %s: %s", m.GetNamespace(), m.GetName(), reason, message))
}

// with returns how many events have a text.
func (e *events) with(text string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range e.all {
		if strings.Contains(one, text) {
			n++
		}
	}
	return n
}

// gate returns the gateway as Azure has it.
func (w *cluster) gate() azure.Resource[network.ApplicationGateway] {
	w.t.Helper()
	return testkit.Must[network.ApplicationGateway](w.Azure, gatewayID)
}

// hosts returns the hosts of the gateway's listeners, in the order of their names.
func (w *cluster) hosts() string {
	w.t.Helper()
	return w.hostsOf(gatewayID)
}

func (w *cluster) hostsOf(id azure.ID) string {
	w.t.Helper()
	var all []string
	for _, l := range testkit.Must[network.ApplicationGateway](w.Azure, id).Properties.Listeners {
		all = append(all, l.Properties.HostNames...)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// backends returns the addresses in all pools of the cluster.
func (w *cluster) backends() string {
	w.t.Helper()
	var all []string
	for _, p := range w.gate().Properties.Pools {
		for _, a := range p.Properties.Addresses {
			all = append(all, a.IPAddress+a.FQDN)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// status returns the address in the status of an Ingress.
func (w *cluster) status(name string) string {
	w.t.Helper()
	i, err := w.kube.NetworkingV1().Ingresses("default").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(i.Status.LoadBalancer.Ingress) == 0 {
		return ""
	}
	return i.Status.LoadBalancer.Ingress[0].IP
}

func want[T comparable](t testing.TB, what string, have, want T) {
	t.Helper()
	if have != want {
		t.Errorf("%s: %v, want %v", what, have, want)
	}
}

// class is the IngressClass of the controller.
func class() *networking.IngressClass {
	return &networking.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: ingress.ClassName}, Spec: networking.IngressClassSpec{Controller: ingress.ClassValue},
	}
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// web returns an Ingress that leads all paths of a host to port 80 of a Service. The number orders Ingresses by age.
func web(name, host, service string, number int, annotations ...string) *networking.Ingress {
	i := &networking.Ingress{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(number) * time.Second)),
			Annotations: map[string]string{},
		},
		Spec: networking.IngressSpec{
			IngressClassName: new(ingress.ClassName),
			Rules: []networking.IngressRule{{Host: host, IngressRuleValue: networking.IngressRuleValue{HTTP: &networking.HTTPIngressRuleValue{
				Paths: []networking.HTTPIngressPath{{
					Path: "/", PathType: new(networking.PathTypePrefix),
					Backend: networking.IngressBackend{Service: &networking.IngressServiceBackend{
						Name: service, Port: networking.ServiceBackendPort{Number: 80},
					}},
				}},
			}}}},
		},
	}
	for n := 0; n < len(annotations); n += 2 {
		i.Annotations["appgw.ingress.kubernetes.io/"+annotations[n]] = annotations[n+1]
	}
	return i
}

// service returns a Service with port 80, and its EndpointSlice with ready endpoints at port 8080.
func service(name string, addresses ...string) []runtime.Object {
	return []runtime.Object{
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}},
		},
		endpoints(name, addresses...),
	}
}

func endpoints(name string, addresses ...string) *discovery.EndpointSlice {
	e := &discovery.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discovery.LabelServiceName: name}},
		AddressType: discovery.AddressTypeIPv4, Ports: []discovery.EndpointPort{{Name: new(""), Port: new(int32(8080))}},
	}
	for _, a := range addresses {
		e.Endpoints = append(e.Endpoints, discovery.Endpoint{Addresses: []string{a}, Conditions: discovery.EndpointConditions{Ready: new(true)}})
	}
	return e
}

// raw returns a child of the gateway's document as Azure has it, "" if it is not there.
func (w *cluster) raw(list, name string) string {
	w.t.Helper()
	doc, err := w.Client.Fresh().Get(w.t.Context(), gatewayID)
	if err != nil {
		w.t.Fatal(err)
	}
	var have struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var children []json.RawMessage
	if err := json.Unmarshal(doc, &have); err != nil {
		w.t.Fatal(err)
	}
	if err := json.Unmarshal(have.Properties[list], &children); err != nil {
		w.t.Fatal(err)
	}
	for _, c := range children {
		var head struct{ Name string }
		if err := json.Unmarshal(c, &head); err == nil && head.Name == name {
			return string(c)
		}
	}
	return ""
}

func newKube(objects ...runtime.Object) *fake.Clientset { return fake.NewClientset(objects...) }

var etag = regexp.MustCompile(`"etag":"W/\\"[^"]*\\""`)

func withoutEtag(child string) string { return etag.ReplaceAllString(child, "") }

// edit changes the gateway's document as another writer.
func (w *cluster) edit(change func(g object)) {
	w.t.Helper()
	client := w.OtherClient()
	doc, err := client.Get(w.t.Context(), gatewayID)
	if err != nil {
		w.t.Fatal(err)
	}
	var g object
	if err := json.Unmarshal(doc, &g); err != nil {
		w.t.Fatal(err)
	}
	change(g)
	text, err := json.Marshal(g)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := azure.Do(w.t.Context(), client, azure.Request{Verb: azure.Put, ID: gatewayID, Body: text}); err != nil {
		w.t.Fatal(err)
	}
}

func childrenOf(g object, list string) []any { return g["properties"].(object)[list].([]any) }

// editByPerson changes the only backend of the pool that a person has made.
func (w *cluster) editByPerson(address string) {
	w.edit(func(g object) {
		for _, p := range childrenOf(g, "backendAddressPools") {
			if p := p.(object); p["name"] == "other" {
				p["properties"].(object)["backendAddresses"] = []object{{"ipAddress": address}}
			}
		}
	})
}

// issue returns a certificate and its key in PEM.
func issue(t testing.TB) (certificate, key []byte) {
	t.Helper()
	return issueUntil(t, epoch.AddDate(10, 0, 0))
}

// issueUntil returns a certificate that expires at a time, and its key in PEM.
func issueUntil(t testing.TB, end time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"a.example.com"}, NotBefore: end.AddDate(-20, 0, 0), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}
