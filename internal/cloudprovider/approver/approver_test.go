package approver

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/smallstep/pkcs7"
	certificates "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"kaz/internal/plan/joining"
)

const (
	domain       = "metadata.azure.com"
	subscription = "00000000-0000-0000-0000-000000000001"
	issuerURL    = "http://www.microsoft.com/pkiops/certs/issuer.crt"
)

// pair is a certificate with its key.
type pair struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue makes a certificate, that of a signer if it has names.
func issue(t *testing.T, issuer *pair, names ...string) pair {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: names, NotBefore: time.Now().Add(-time.Hour),
		Subject: pkix.Name{CommonName: strings.Join(names, " ") + "x"}, NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
		IsCA: len(names) == 0}
	if !template.IsCA {
		template.IssuingCertificateURL = []string{issuerURL}
	}
	from := pair{template, key}
	if issuer != nil {
		from = *issuer
	}
	der, err := x509.CreateCertificate(rand.Reader, template, from.certificate, &key.PublicKey, from.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return pair{certificate, key}
}

// request is the request of a node whose machine has the id of that name.
func (p pair) request(t *testing.T, name, node, machine string) *certificates.CertificateSigningRequest {
	t.Helper()
	key := newKey(t)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	const form = "01/02/06 15:04:05 -0700"
	message, err := pkcs7.NewSignedData(fmt.Appendf(nil,
		`{"nonce":%q,"vmId":%q,"subscriptionId":%q,"timeStamp":{"createdOn":%q,"expiresOn":%q}}`,
		joining.Nonce(public), machine, subscription, time.Now().UTC().Format(form), time.Now().UTC().Add(time.Hour).Format(form)))
	if err != nil {
		t.Fatal(err)
	}
	message.SetDigestAlgorithm(pkcs7.OIDDigestAlgorithmSHA256)
	if err := message.AddSigner(p.certificate, p.key, pkcs7.SignerInfoConfig{}); err != nil {
		t.Fatal(err)
	}
	signed, err := message.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return &certificates.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{joining.Annotation: base64.StdEncoding.EncodeToString(signed)}},
		Spec: certificates.CertificateSigningRequestSpec{
			SignerName: certificates.KubeAPIServerClientKubeletSignerName, Username: "system:bootstrap:abcdef",
			Usages:  []certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageClientAuth},
			Groups:  []string{"system:bootstrappers:kubeadm:default-node-token"},
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		},
	}
}

// transport answers requests with a certificate.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// serves answers with a text, and counts the requests.
func serves(text []byte, asked *atomic.Int32) transport {
	return func(r *http.Request) (*http.Response, error) {
		asked.Add(1)
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, nil
	}
}

// TestApprover checks what becomes of requests, and that kubeadm's binding is deleted.
func TestApprover(t *testing.T) {
	root := issue(t, nil)
	between := issue(t, &root)
	signer, foreign := issue(t, &between, domain), issue(t, nil)
	stranger := issue(t, &foreign, domain)
	var broken atomic.Bool
	broken.Store(true)
	var asked atomic.Int32
	config := Config{Subscription: subscription, Domain: domain, Roots: x509.NewCertPool(), Transport: serves(between.certificate.Raw, &asked),
		Machine: func(_ context.Context, node string) (*joining.Machine, error) {
			switch {
			case node == "late" && broken.Load():
				return nil, errors.New("429")
			case node == "unknown":
				return nil, nil
			}
			return &joining.Machine{ID: "/machines/x", VMID: "id-of-" + node, Member: node == "member"}, nil
		}}
	config.Roots.AddCert(root.certificate)
	other := signer.request(t, "of-others", "good", "id-of-good")
	other.Spec.Groups = []string{"system:nodes"}
	bare := signer.request(t, "bare", "good", "id-of-good")
	bare.Annotations = nil
	objects := []runtime.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: joining.Binding}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:node-autoapprove-certificate-rotation"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "running"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}},
		signer.request(t, "good", "good", "id-of-good"), signer.request(t, "late", "late", "id-of-late"),
		signer.request(t, "unknown", "unknown", "id-of-unknown"), signer.request(t, "other-name", "other", "id-of-good"),
		signer.request(t, "member", "member", "id-of-member"), signer.request(t, "running", "running", "id-of-running"),
		stranger.request(t, "stranger", "good", "id-of-good"), other, bare,
	}
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	events := record.NewFakeRecorder(1000)
	a, err := New(config, client, factory.Certificates().V1().CertificateSigningRequests(), events)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	done := make(chan struct{})
	go func() { defer close(done); a.Run(ctx) }()
	defer func() { stop(); <-done; factory.Shutdown() }()
	want := map[string]string{
		"good": "Approved MachineAttested Azure's metadata service attests that the request is of /machines/x",
		"late": "", "unknown": "", "of-others": "",
		"other-name": "Denied MachineNotAttested the signed document is of the machine with the vmId",
		"member":     "Denied MachineNotAttested member is a member of the control plane",
		"running":    "Denied MachineNotAttested the node running is ready",
		"stranger":   "Denied MachineNotAttested the signer's certificate",
		"bare":       "Denied MachineNotAttested the request has no annotation",
	}
	settled(t, client, want)
	broken.Store(false)
	want["late"] = want["good"]
	settled(t, client, want)
	if n := asked.Load(); n > int32(len(objects)) {
		t.Errorf("the issuer was downloaded %d times", n)
	}
	bindings, err := client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil || len(bindings.Items) != 1 || bindings.Items[0].Name == joining.Binding {
		t.Errorf("bindings: %v %v", bindings, err)
	}
}

// settled waits until the conditions of requests are as expected.
func settled(t *testing.T, client *fake.Clientset, want map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var wrong []string
		for name, text := range want {
			r, err := client.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(name, err, apierrors.IsNotFound(err), wrong)
			}
			got := ""
			for _, c := range r.Status.Conditions {
				got += fmt.Sprintf("%s %s %s", c.Type, c.Reason, c.Message)
			}
			if !strings.HasPrefix(got, text) || text == "" && got != "" {
				wrong = append(wrong, fmt.Sprintf("%s: %q, want %q", name, got, text))
			}
		}
		if len(wrong) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(strings.Join(wrong, "\n"))
		}
	}
}

// TestIssuers checks from where certificates are downloaded, and how much.
func TestIssuers(t *testing.T) {
	certificate := issue(t, nil).certificate.Raw
	for address, want := range map[string]int32{
		issuerURL: 1, "https://cacerts.digicert.com/a.crt": 1, "http://caissuers.microsoft.com/a.crt": 1,
		"http://example.com/a.crt": 0, "http://169.254.169.254/a": 0, "http://www.microsoft.com:8080/a": 0,
		"http://www.microsoft.com@10.0.0.1/a": 0,
		"http://a@www.microsoft.com/a":        0, "ftp://www.microsoft.com/a": 0, "file:///etc/passwd": 0, "http://www.microsoft.com.example.com/a": 0,
		"http://[::1": 0, "": 0,
	} {
		var asked atomic.Int32
		i := newIssuers(serves(certificate, &asked))
		for range 3 { // the cache has it then
			if _, err := i.pool(t.Context(), []string{address}); err != nil {
				t.Errorf("%s: %v", address, err)
			}
		}
		if asked.Load() != want {
			t.Errorf("%s: %d requests, want %d", address, asked.Load(), want)
		}
	}
	var asked atomic.Int32
	for name, answer := range map[string]transport{
		"too long": serves(make([]byte, longestIssuer+1), &asked), "no certificate": serves([]byte("x"), &asked),
		"a redirect": func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"http://10.0.0.1/"}}, Body: http.NoBody, Request: r}, nil
		},
		"a failure": func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: r}, nil
		},
	} {
		asked.Store(0)
		if _, err := newIssuers(answer).pool(t.Context(), []string{issuerURL}); err == nil || asked.Load() != 1 {
			t.Errorf("%s: %v after %d requests", name, err, asked.Load())
		}
	}
	many := make([]string, 100)
	for n := range many {
		many[n] = fmt.Sprintf("%s?%d", issuerURL, n)
	}
	i := newIssuers(serves(certificate, &asked))
	asked.Store(0)
	if _, err := i.pool(t.Context(), many); err != nil || asked.Load() != mostIssuers || len(i.known) > mostIssuers {
		t.Errorf("%v: %d requests for 100 addresses, %d cached", err, asked.Load(), len(i.known))
	}
}

func TestNoDocuments(t *testing.T) {
	if _, err := New(Config{}, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "allowed are AzurePublicCloud") {
		t.Errorf("a cloud without documents: %v", err)
	}
}
