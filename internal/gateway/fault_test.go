package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/gateway/naming"
)

// fault has the local Azure fail as a rule says.
func fault(w *cluster, f core.Fault) {
	w.t.Helper()
	if err := w.SetFaults([]core.Fault{f}); err != nil {
		w.t.Fatal(err)
	}
}

// TestFaults has the scenarios of an Azure that fails. In the end, each Ingress is served.
func TestFaults(t *testing.T) {
	const gateways = network.ApplicationGateways
	for name, f := range map[string]core.Fault{
		"I29 throttled":              {Method: "PUT", Type: gateways, Fault: "error", Status: 429, RetryAfter: 20, Times: 3},
		"I29 unavailable":            {Method: "PUT", Type: gateways, Fault: "error", Status: 503, Times: 3},
		"I29 no rights for a while":  {Method: "PUT", Type: gateways, Fault: "error", Status: 403, Code: "AuthorizationFailed", Times: 2},
		"I29 the read fails":         {Method: "GET", Type: gateways, Fault: "error", Status: 500, Times: 5},
		"I26 superseded":             {Method: "PUT", Type: gateways, Fault: "operation", Code: "CanceledAndSupersededDueToAnotherOperation", Times: 2},
		"I26 changed meanwhile":      {Method: "PUT", Type: gateways, Fault: "error", Status: 412, Times: 2},
		"I29 the operation fails":    {Method: "PUT", Type: gateways, Fault: "operation", Code: "InternalServerError", Times: 1},
		"I29 another one is running": {Method: "PUT", Type: gateways, Fault: "error", Status: 409, Code: "AnotherOperationInProgress", Times: 3},
	} {
		scenario(t, name, func(t *testing.T) {
			w := newCluster(t, core.Options{}, append(many(3), class())...)
			fault(w, f)
			w.start()
			defer w.stop()
			w.pass(15 * time.Minute)
			want(t, "hosts", w.hosts(), "a0.example.com a1.example.com a2.example.com")
			for n := range 3 {
				want(t, "status", w.status(fmt.Sprintf("web%d", n)), w.address)
			}
			w.Forget()
			w.pass(10 * time.Minute)
			want(t, "writes after", len(w.Writes()), 0)
		})
	}
	scenario(t, "I29 a failing write keeps the status of what is served", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(many(2), class())...)
		w.start()
		defer w.stop()
		fault(w, core.Fault{Method: "PUT", Type: gateways, Fault: "error", Status: 403, Code: "AuthorizationFailed", Times: 1000})
		update(w, endpoints("web0", "10.240.5.5"))
		w.pass(10 * time.Minute)
		want(t, "status", w.status("web0"), w.address)
		want(t, "events about Ingresses", w.events.with("FailedApplyingAppGwConfig"), 1)
	})
}

// TestStart has the scenarios of a controller that starts where Ingresses are served.
func TestStart(t *testing.T) {
	scenario(t, "I2 a gateway is not touched before there is an Ingress", func(t *testing.T) {
		w := newCluster(t, core.Options{}, class())
		w.start()
		defer w.stop()
		w.Forget()
		w.pass(time.Hour)
		want(t, "writes", len(w.Writes()), 0)
	})
	scenario(t, "I25 what is served stays while a culprit is sought", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(many(16), class())...)
		w.start()
		w.stop()
		for n := range 16 { // while no controller runs
			update(w, endpoints(fmt.Sprintf("web%d", n), fmt.Sprintf("10.240.6.%d", n)))
		}
		lost := 0
		r := &refusing{fullAzure: w.config.Azure.(fullAzure), when: func(body string) bool {
			g, err := azure.Decode[network.ApplicationGateway](azure.Document(body))
			if err != nil || len(g.Properties.Listeners) < 17 {
				lost++
			}
			return strings.Contains(body, "10.240.6.5\"")
		}}
		w.config.Azure = r
		w.start()
		defer w.stop()
		w.pass(time.Minute)
		want(t, "documents without a listener that was there", lost, 0)
		want(t, "listeners", len(w.gate().Properties.Listeners), 17)
		want(t, "other events", w.events.with("FailedApplyingAppGwConfig: "), w.events.with("default/web5 FailedApplyingAppGwConfig: "))
		if !strings.Contains(w.backends(), "10.240.6.15") {
			t.Error("the others are not served as they are")
		}
	})
	scenario(t, "I10 a Secret is rotated", func(t *testing.T) {
		i := web("web", "a.example.com", "web", 1)
		i.Spec.TLS = []networking.IngressTLS{{SecretName: "tls"}}
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), i, secret(t, "tls"))...)
		w.start()
		defer w.stop()
		first := w.certificates()
		want(t, "certificates", len(first), 1)
		update(w, secret(t, "tls"))
		w.pass(5 * time.Second)
		second := w.certificates()
		if len(second) != 1 || second[0] == first[0] {
			t.Errorf("certificates %v, were %v", second, first)
		}
	})
	scenario(t, "I57 a certificate expires", func(t *testing.T) {
		i := web("web", "a.example.com", "web", 1)
		i.Spec.TLS = []networking.IngressTLS{{SecretName: "tls"}}
		soon := secret(t, "tls")
		soon.Data[corev1.TLSCertKey], soon.Data[corev1.TLSPrivateKeyKey] = issueUntil(t, time.Now().Add(time.Hour))
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), i, soon)...)
		w.start()
		defer w.stop()
		want(t, "events before", w.events.with("CertificateExpired"), 0)
		w.Forget()
		w.pass(2 * time.Hour)
		want(t, "events", w.events.with("default/web CertificateExpired: the certificate of Secret default/tls has expired at 2000-01-01T01:"), 1)
		want(t, "writes", len(w.Writes()), 0)
		want(t, "hosts", w.hosts(), "a.example.com")
		update(w, secret(t, "tls"))
		w.pass(5 * time.Second)
		want(t, "certificates", len(w.certificates()), 1)
		want(t, "events after", w.events.with("CertificateExpired"), 1)
	})
	scenario(t, "I28 two clusters share a gateway", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), web("web", "a.example.com", "web", 1))...)
		w.start()
		defer w.stop()
		other := *w
		other.kube = newKube(append(service("web", "10.240.7.7"), class(), web("web", "a.example.com", "web", 1), web("more", "b.example.com", "web", 2))...)
		other.events = &events{}
		other.config.Prefix, other.config.Identity, other.config.Kube, other.config.Events = naming.Of("other"), "other-uid", other.kube, other.events
		other.config.Azure = w.OtherClient()
		other.start()
		defer other.stop()
		w.pass(5 * time.Minute)
		want(t, "hosts", w.hosts(), "a.example.com b.example.com")
		want(t, "conflict", other.events.with("default/web Conflict: host a.example.com at port 80 has the listener"), 1)
		want(t, "events of the first cluster", w.events.with("Conflict"), 0)
	})
}

// certificates returns the names of the gateway's certificates.
func (w *cluster) certificates() (names []string) {
	w.t.Helper()
	for _, c := range w.gate().Properties.Certificates {
		names = append(names, c.Name)
	}
	return names
}

// secret returns a Secret with a new certificate.
func secret(t testing.TB, name string) *corev1.Secret {
	t.Helper()
	certificate, key := issue(t)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	}
}
