package cluster_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
)

// webhookObjects are a pod that refuses objects, its Service, and a webhook configuration. The pod runs on a node. By the
// configuration the API server asks the pod about the ConfigMaps with a label.
const webhookObjects = `
apiVersion: v1
kind: Secret
metadata: {name: webhook}
type: kubernetes.io/tls
data: {tls.crt: %[1]s, tls.key: %[2]s}
---
apiVersion: v1
kind: Pod
metadata: {name: webhook, labels: {app: webhook}}
spec:
  nodeName: %[3]s
  containers:
  - name: web
    image: kaz.local/web:1
    imagePullPolicy: Never
    command: [/box, admit, /tls]
    readinessProbe: {tcpSocket: {port: 8443}, periodSeconds: 1}
    volumeMounts: [{name: tls, mountPath: /tls, readOnly: true}]
  volumes: [{name: tls, secret: {secretName: webhook}}]
---
apiVersion: v1
kind: Service
metadata: {name: webhook}
spec: {selector: {app: webhook}, ports: [{port: 443, targetPort: 8443}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: kaz-test}
webhooks:
- name: refuse.kaz.test
  clientConfig: {service: {namespace: default, name: webhook}, caBundle: %[1]s}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  objectSelector: {matchLabels: {refused: "yes"}}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`

// webhook checks that the API server asks a webhook behind a Service with a ClusterIP and a pod on a node.
func webhook(c *cluster) {
	cert, key := selfSigned(c.t, "webhook.default.svc")
	c.must(fmt.Sprintf(webhookObjects, cert, key, c.nodes()[1].Name), "apply", "-f", "-")
	defer c.must("", "delete", "validatingwebhookconfiguration/kaz-test", "pod/webhook", "service/webhook", "secret/webhook", "--wait=false")
	c.must("", "wait", "--for=condition=Ready", "pod/webhook", "--timeout=1m")
	// The API server learns of the configuration and of the endpoint some time later.
	wait(c.t, time.Minute, "the refusal of the webhook", func() string {
		const object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: refused, labels: {refused: \"yes\"}}}"
		_, err := c.kubectl(object, "create", "-f", "-")
		if err == nil {
			c.must("", "delete", "configmap/refused")
			return "the ConfigMap was created"
		}
		if !strings.Contains(err.Error(), "denied the request: pod webhook client") {
			return err.Error()
		}
		return ""
	})
}

// aggregatedObjects are a pod on a node that serves an API, its Service, and the registration at the API server.
const aggregatedObjects = `
apiVersion: v1
kind: Secret
metadata: {name: aggregated}
type: kubernetes.io/tls
data: {tls.crt: %[1]s, tls.key: %[2]s}
---
apiVersion: v1
kind: Pod
metadata: {name: aggregated, labels: {app: aggregated}}
spec:
  nodeName: %[3]s
  containers:
  - name: web
    image: kaz.local/web:1
    imagePullPolicy: Never
    command: [/box, api, /tls]
    readinessProbe: {tcpSocket: {port: 8443}, periodSeconds: 1}
    volumeMounts: [{name: tls, mountPath: /tls, readOnly: true}]
  volumes: [{name: tls, secret: {secretName: aggregated}}]
---
apiVersion: v1
kind: Service
metadata: {name: aggregated}
spec: {selector: {app: aggregated}, ports: [{port: 443, targetPort: 8443}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.kaz.test}
spec:
  group: kaz.test
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 10
  service: {namespace: default, name: aggregated}
  caBundle: %[1]s
`

// aggregated checks that the API server passes the requests of an API group on to a pod behind a Service with a ClusterIP.
// The pod gets the name of the user, as metrics-server does.
func aggregated(c *cluster) {
	cert, key := selfSigned(c.t, "aggregated.default.svc")
	c.must(fmt.Sprintf(aggregatedObjects, cert, key, c.nodes()[1].Name), "apply", "-f", "-")
	defer c.must("", "delete", "apiservice/v1.kaz.test", "pod/aggregated", "service/aggregated", "secret/aggregated", "--wait=false")
	c.must("", "wait", "--for=condition=Available", "apiservice/v1.kaz.test", "--timeout=1m")
	got := c.must("", "get", "--raw", "/apis/kaz.test/v1/answers/mine")
	for _, want := range []string{`"name":"mine"`, "pod aggregated client", `"user":"`} {
		if !strings.Contains(got, want) {
			c.t.Errorf("the API in a pod answers %s, want %s", got, want)
		}
	}
	if strings.Contains(got, `"user":""`) {
		c.t.Errorf("the API in a pod does not learn the user: %s", got)
	}
	if resources := c.must("", "api-resources", "--api-group=kaz.test"); !strings.Contains(resources, "answers") {
		c.t.Errorf("the resources of the group are %q", resources)
	}
}

// selfSigned returns a certificate for a host and its key, PEM in base64.
func selfSigned(t *testing.T, host string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, bytes []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", text)
}
