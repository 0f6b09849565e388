package gateway_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/plan/gateway/merge"
	"kaz/internal/plan/gateway/naming"
	"kaz/internal/plan/gateway/prohibited"
)

const gatewayID = azure.ID("/subscriptions/s/resourceGroups/rg/providers/" + network.ApplicationGateways + "/gate")

// facts is the facts of decisions: a cluster and a gateway.
type facts struct {
	t         testing.TB
	in        planner.Input
	doc       azure.Document
	services  []*corev1.Service
	endpoints []*discovery.EndpointSlice
	secrets   []*corev1.Secret
	pods      []*corev1.Pod
	rewrites  map[string]network.GatewayRewriteSet
	made      *cluster.Objects
}

// newFacts returns a facts with a gateway that has a listener of others at port 8000, a public and a private address.
func newFacts(t testing.TB) *facts {
	w := &facts{t: t, rewrites: map[string]network.GatewayRewriteSet{}}
	w.in.Config = planner.Config{Gateway: gatewayID, Ownership: merge.Ownership{Prefix: naming.Of("abc")}, Identity: "this-cluster"}
	w.in.Rewrites = func(namespace, name string) (network.GatewayRewriteSet, error) {
		set, ok := w.rewrites[namespace+"/"+name]
		if !ok {
			return set, fmt.Errorf("AzureApplicationGatewayRewrite %s/%s does not exist", namespace, name)
		}
		return set, nil
	}
	w.doc = azure.Document(fmt.Sprintf(usual, gatewayID))
	w.in.Have = plan.NewSnapshot(w.doc)
	return w
}

const usual = `{"id":"%[1]s","name":"gate","etag":"W/\"1\"","location":"westeurope","tags":{"team":"web"},"properties":{
	"operationalState":"Running","sku":{"name":"Standard_v2","tier":"Standard_v2"},"unknown":{"b":1,"a":[2]},
	"frontendIPConfigurations":[
		{"name":"public","id":"%[1]s/frontendIPConfigurations/public","properties":{"publicIPAddress":{"id":"/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/p"}}},
		{"name":"private","id":"%[1]s/frontendIPConfigurations/private","properties":{"privateIPAddress":"10.1.0.10"}}],
	"frontendPorts":[{"name":"other","id":"%[1]s/frontendPorts/other","properties":{"port":8000}}],
	"backendAddressPools":[{"name":"other","id":"%[1]s/backendAddressPools/other","properties":{"backendAddresses":[{"ipAddress":"10.9.9.9"}],"new":true}}],
	"backendHttpSettingsCollection":[{"name":"other","id":"%[1]s/backendHttpSettingsCollection/other","properties":{"port":80,"protocol":"Http","cookieBasedAffinity":"Disabled","requestTimeout":30}}],
	"httpListeners":[{"name":"other","id":"%[1]s/httpListeners/other","properties":{"frontendIPConfiguration":{"id":"%[1]s/frontendIPConfigurations/public"},"frontendPort":{"id":"%[1]s/frontendPorts/other"},"protocol":"Http"}}],
	"requestRoutingRules":[{"name":"other","id":"%[1]s/requestRoutingRules/other","properties":{"ruleType":"Basic","priority":1,"httpListener":{"id":"%[1]s/httpListeners/other"},"backendAddressPool":{"id":"%[1]s/backendAddressPools/other"},"backendHttpSettings":{"id":"%[1]s/backendHttpSettingsCollection/other"}}}]}}`

// change merges YAML into the gateway's document. A list of children gets further children.
func (w *facts) change(text []byte) {
	var have, more map[string]any
	if err := json.Unmarshal(w.doc, &have); err != nil {
		w.t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte("GATE"), []byte(gatewayID))
	if err := yaml.Unmarshal(text, &more); err != nil {
		w.t.Fatal(err)
	}
	join(have, more)
	doc, err := json.Marshal(have)
	if err != nil {
		w.t.Fatal(err)
	}
	w.doc = doc
	w.in.Have = plan.NewSnapshot(w.doc)
}

func join(have, more map[string]any) {
	for key, value := range more {
		old, is := have[key]
		switch v := value.(type) {
		case map[string]any:
			if is {
				join(old.(map[string]any), v)
				continue
			}
		case []any:
			if len(v) > 0 && is {
				have[key] = append(old.([]any), v...)
				continue
			}
		}
		have[key] = value
	}
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ingresses reads Ingresses in place of those before. Their order is that of their ages, unless they have a creationTimestamp.
func (w *facts) ingresses(text []byte) {
	w.in.Ingresses = nil
	for n, one := range strings.Split(string(text), "---\n") {
		var i networking.Ingress
		if err := yaml.UnmarshalStrict([]byte(one), &i); err != nil {
			w.t.Fatal(err)
		}
		if i.Name == "" {
			continue
		}
		if i.Namespace == "" {
			i.Namespace = "default"
		}
		if i.CreationTimestamp.IsZero() {
			i.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(n) * time.Minute))
		}
		short := map[string]string{}
		for key, value := range i.Annotations {
			if !strings.Contains(key, "/") {
				key = "appgw.ingress.kubernetes.io/" + key
			}
			short[key] = value
		}
		i.Annotations = short
		w.in.Ingresses = append(w.in.Ingresses, &i)
	}
}

// parseCluster reads what Ingresses refer to, one object in a line:
//
//	service NAMESPACE/NAME PORT:TARGETPORT ADDRESS... [notready=ADDRESS] [terminating=ADDRESS] [many=NUMBER]
//	external NAMESPACE/NAME HOST
//	secret NAMESPACE/NAME [broken|large] [NUMBER]
//	probe NAMESPACE/SERVICE TARGETPORT {YAML of a probe}
//	rewrite NAMESPACE/NAME {YAML of a rewrite rule set}
//	prohibited NAMESPACE/NAME HOST|any [PATH...]
//	no KIND NAMESPACE/NAME
func (w *facts) parseCluster(text string) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		namespace, name, _ := strings.Cut(words[1], "/")
		meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
		switch words[0] {
		case "service":
			w.service(meta, words[2], words[3:])
		case "external":
			w.services = append(w.services, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeExternalName, ExternalName: words[2],
			}})
		case "secret":
			w.secret(meta, words[2:])
		case "probe":
			w.pod(meta, words[2], strings.SplitN(line, words[2], 2)[1])
		case "rewrite":
			var set network.GatewayRewriteSet
			if err := yaml.Unmarshal([]byte(strings.SplitN(line, words[1], 2)[1]), &set); err != nil {
				w.t.Fatal(err)
			}
			w.rewrites[words[1]] = set
		case "prohibited":
			t := prohibited.Target{Object: words[1], Host: words[2], Paths: words[3:]}
			if t.Host == "any" {
				t.Host = ""
			}
			w.in.Prohibited = append(w.in.Prohibited, t)
		case "no":
			namespace, name, _ = strings.Cut(words[2], "/")
			for i, s := range w.secrets {
				if s.Namespace == namespace && s.Name == name {
					w.secrets = append(w.secrets[:i:i], w.secrets[i+1:]...)
				}
			}
		default:
			w.t.Fatalf("line %q is not known", line)
		}
	}
}

func (w *facts) service(meta metav1.ObjectMeta, ports string, words []string) {
	port, target, _ := strings.Cut(ports, ":")
	number := func(text string) int32 {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			w.t.Fatal(err)
		}
		return int32(n)
	}
	w.services = append(w.services, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": meta.Name},
		Ports:    []corev1.ServicePort{{Port: number(port), TargetPort: intstr.FromInt32(number(target)), Protocol: corev1.ProtocolTCP}},
	}})
	e := &discovery.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name, Labels: map[string]string{discovery.LabelServiceName: meta.Name}},
		AddressType: discovery.AddressTypeIPv4, Ports: []discovery.EndpointPort{{Name: new(""), Port: new(number(target))}},
	}
	for _, word := range words {
		state, address, tagged := strings.Cut(word, "=")
		if !tagged {
			state, address = "", word
		}
		c := discovery.EndpointConditions{Ready: new(state != "notready"), Terminating: new(state == "terminating")}
		if state == "many" {
			for n := range number(address) {
				e.Endpoints = append(e.Endpoints, discovery.Endpoint{Addresses: []string{fmt.Sprintf("10.2.%d.%d", n/250, n%250)}, Conditions: c})
			}
			continue
		}
		e.Endpoints = append(e.Endpoints, discovery.Endpoint{Addresses: []string{address}, Conditions: c})
	}
	six := e.DeepCopy()
	six.Name, six.AddressType = six.Name+"-ipv6", discovery.AddressTypeIPv6
	isSix := func(x discovery.Endpoint) bool { return strings.Contains(x.Addresses[0], ":") }
	six.Endpoints = slices.DeleteFunc(six.Endpoints, func(x discovery.Endpoint) bool { return !isSix(x) })
	e.Endpoints = slices.DeleteFunc(e.Endpoints, isSix)
	if len(six.Endpoints) > 0 {
		w.endpoints = append(w.endpoints, six)
	}
	w.endpoints = append(w.endpoints, e)
}

func (w *facts) secret(meta metav1.ObjectMeta, words []string) {
	kind := strings.Join(words, " ")
	certificate, key := issue(w.t, kind == "large")
	if kind == "broken" {
		key = []byte("broken")
	}
	for i, s := range w.secrets {
		if s.Namespace == meta.Namespace && s.Name == meta.Name {
			w.secrets = append(w.secrets[:i:i], w.secrets[i+1:]...)
		}
	}
	w.secrets = append(w.secrets, &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeTLS, Data: map[string][]byte{
		corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key,
	}})
}

// issue returns a certificate and its key in PEM.
func issue(t testing.TB, large bool) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: epoch, NotAfter: epoch.AddDate(10, 0, 0)}
	if large {
		for n := range 1200 {
			template.DNSNames = append(template.DNSNames, fmt.Sprintf("host%d.example.com", n))
		}
	}
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

func (w *facts) pod(meta metav1.ObjectMeta, port, text string) {
	n, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		w.t.Fatal(err)
	}
	probe := &corev1.Probe{}
	if err := yaml.UnmarshalStrict([]byte(text), probe); err != nil {
		w.t.Fatal(err)
	}
	w.pods = append(w.pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name + "-0", Labels: map[string]string{"app": meta.Name}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: int32(n)}}, ReadinessProbe: probe,
		}}},
	})
}

func (w *facts) objects() *cluster.Objects {
	w.made = cluster.New(w.services, w.endpoints, w.secrets, w.pods).After(w.made)
	return w.made
}
