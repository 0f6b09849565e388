package joining

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/smallstep/pkcs7"
	certificates "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	domain       = "metadata.azure.com"
	subscription = "00000000-0000-0000-0000-000000000001"
	vmID         = "5c08b38e-4d57-4c23-ac45-aca61037f084"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// signer is a certificate with its key.
type signer struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// issue makes a certificate. Without an issuer it is an authority.
func issue(t testing.TB, issuer *signer, names ...string) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(now.Unix()), Subject: pkix.Name{CommonName: strings.Join(names, " ")}, DNSNames: names,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), BasicConstraintsValid: true,
		IsCA: len(names) == 0, KeyUsage: x509.KeyUsageDigitalSignature}
	parent, parentKey := template, crypto.Signer(key)
	if template.IsCA {
		template.KeyUsage, template.Subject.CommonName = x509.KeyUsageCertSign, "authority"
	}
	if issuer != nil {
		parent, parentKey = issuer.certificate, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signer{certificate, key}
}

// sign signs a document as the metadata service does.
func (s signer) sign(t testing.TB, content string) string {
	t.Helper()
	message, err := pkcs7.NewSignedData([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	message.SetDigestAlgorithm(pkcs7.OIDDigestAlgorithmSHA256)
	if err := message.SignWithoutAttr(s.certificate, s.key, pkcs7.SignerInfoConfig{}); err != nil {
		t.Fatal(err)
	}
	der, err := message.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(der)
}

// document is the content of a document, with changes.
func document(t testing.TB, nonce string, changes map[string]any) string {
	t.Helper()
	all := map[string]any{
		"nonce": nonce, "vmId": vmID, "subscriptionId": subscription, "sku": "22_04-lts", "plan": map[string]any{"name": ""},
		"timeStamp": map[string]any{"createdOn": "01/02/30 03:00:00 -0000", "expiresOn": "01/02/30 09:00:00 -0000"},
	}
	maps.Copy(all, changes)
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// asked is a request with what a test may change.
type asked struct {
	template x509.CertificateRequest
	usages   []certificates.KeyUsage
	content  map[string]any
	nonce    string // "" for that of the key
	signer   signer
	node     *corev1.Node
	machine  *Machine
	edit     func(*certificates.CertificateSigningRequest)
}

func (a asked) verdict(t *testing.T, root signer) (Verdict, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &a.template, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificateRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	nonce := a.nonce
	if nonce == "" {
		nonce = Nonce(parsed.RawSubjectPublicKeyInfo)
	}
	r := &certificates.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{Annotation: a.signer.sign(t, document(t, nonce, a.content))}},
		Spec: certificates.CertificateSigningRequestSpec{
			SignerName: certificates.KubeAPIServerClientKubeletSignerName, Usages: a.usages, Groups: []string{"system:bootstrappers", bootstrappers},
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		},
	}
	if a.edit != nil {
		a.edit(r)
	}
	if !Concerns(r) {
		return Later, "no concern"
	}
	w, err := Read(r)
	if err != nil {
		return Deny, err.Error()
	}
	roots := x509.NewCertPool()
	roots.AddCert(root.certificate)
	return Decide(w, Facts{Trust: Trust{Roots: roots, Domain: domain}, Subscription: strings.ToUpper(subscription), Now: now, Machine: a.machine,
		Node: a.node})
}

// TestDecide checks that only the request of the machine itself is approved, and with which reason others are denied.
func TestDecide(t *testing.T) {
	root := issue(t, nil)
	azure, region := issue(t, &root, domain), issue(t, &root, "westeurope."+domain)
	foreign := issue(t, nil)
	other, unnamed, near := issue(t, &foreign, domain), issue(t, &root, "example.com"), issue(t, &root, "evil-"+domain)
	node := func(label string, status corev1.ConditionStatus) *corev1.Node {
		n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}}
		if label != "" {
			n.Labels = map[string]string{label: ""}
		}
		return n
	}
	ended := map[string]any{"timeStamp": map[string]any{"createdOn": "01/01/30 03:00:00 -0000", "expiresOn": "01/01/30 09:00:00 -0000"}}
	early := map[string]any{"timeStamp": map[string]any{"createdOn": "01/03/30 03:00:00 -0000", "expiresOn": "01/03/30 09:00:00 -0000"}}
	subjectOf := func(name string, organizations ...string) func(*asked) {
		return func(a *asked) { a.template.Subject = pkix.Name{CommonName: name, Organization: organizations} }
	}
	request := func(edit func(*certificates.CertificateSigningRequest)) func(*asked) {
		return func(a *asked) { a.edit = edit }
	}
	for name, c := range map[string]struct {
		change  func(*asked)
		verdict Verdict
		why     string
	}{
		"the machine itself":          {func(*asked) {}, Approve, "/vm1"},
		"a region's signer":           {func(a *asked) { a.signer = region }, Approve, "/vm1"},
		"a key for RSA":               {func(a *asked) { a.usages = append(a.usages, certificates.UsageKeyEncipherment) }, Approve, "/vm1"},
		"a node that is not ready":    {func(a *asked) { a.node = node("", corev1.ConditionUnknown) }, Approve, "/vm1"},
		"no such machine yet":         {func(a *asked) { a.machine = nil }, Later, "Azure has no machine of the node node1"},
		"a machine without an id yet": {func(a *asked) { a.machine.VMID = "" }, Later, "Azure has no machine of the node node1"},

		"another node's name":         {func(a *asked) { a.machine.VMID = "another" }, Deny, "is of the machine with the vmId"},
		"a member's name":             {func(a *asked) { a.machine.Member = true }, Deny, "is a member of the control plane"},
		"the name of a member's node": {func(a *asked) { a.node = node(roleOfMember, corev1.ConditionFalse) }, Deny, "is a member of the control plane"},
		"a node that is ready":        {func(a *asked) { a.node = node("", corev1.ConditionTrue) }, Deny, "the node node1 is ready"},
		"a document without an id":    {func(a *asked) { a.content = map[string]any{"vmId": ""} }, Deny, "is of the machine with the vmId"},
		"a document of another key":   {func(a *asked) { a.nonce = strings.Repeat("0", 32) }, Deny, "is for another key"},
		"a document without a nonce":  {func(a *asked) { a.content = map[string]any{"nonce": ""} }, Deny, "is for another key"},
		"a document that ended":       {func(a *asked) { a.content = ended }, Deny, "the signed document ended"},
		"a document of tomorrow":      {func(a *asked) { a.content = early }, Deny, "the signed document begins"},
		"a document without a time":   {func(a *asked) { a.content = map[string]any{"timeStamp": nil} }, Deny, "timeStamp.createdOn"},
		"another subscription":        {func(a *asked) { a.content = map[string]any{"subscriptionId": "another"} }, Deny, "of the subscription \"another\""},
		"a foreign authority":         {func(a *asked) { a.signer = other }, Deny, "unknown authority"},
		"a foreign name":              {func(a *asked) { a.signer = unnamed }, Deny, "allowed is " + domain},
		"a similar name":              {func(a *asked) { a.signer = near }, Deny, "allowed is " + domain},
		"no key of the signer": {func(a *asked) {
			a.signer = signer{azure.certificate, other.key}
		}, Deny, "the signature of the document"},

		"another common name":   {subjectOf("admin", "system:nodes"), Deny, "allowed is system:node:NODE"},
		"no name of a node":     {subjectOf("system:node:", "system:nodes"), Deny, "allowed is system:node:NODE"},
		"another organization":  {subjectOf("system:node:node1", "system:masters"), Deny, "allowed is system:nodes alone"},
		"a second organization": {subjectOf("system:node:node1", "system:nodes", "system:masters"), Deny, "allowed is system:nodes alone"},
		"no organization":       {subjectOf("system:node:node1"), Deny, "allowed is system:nodes alone"},
		"more in the subject": {func(a *asked) {
			a.template.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: []int{2, 5, 4, 11}, Value: "x"}}
		}, Deny, "allowed are a common name and an organization"},
		"a name of a server":    {func(a *asked) { a.template.DNSNames = []string{"kubernetes"} }, Deny, "alternative names"},
		"an address":            {func(a *asked) { a.template.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }, Deny, "alternative names"},
		"the usage of a server": {func(a *asked) { a.usages = append(a.usages, certificates.UsageServerAuth) }, Deny, "the usages are"},
		"the usage to sign":     {func(a *asked) { a.usages = append(a.usages, certificates.UsageCertSign) }, Deny, "the usages are"},
		"too few usages":        {func(a *asked) { a.usages = a.usages[:1] }, Deny, "the usages are"},
		"no document":           {request(func(r *certificates.CertificateSigningRequest) { r.Annotations = nil }), Deny, "no annotation " + Annotation},
		"no base64":             {request(func(r *certificates.CertificateSigningRequest) { r.Annotations[Annotation] = "?" }), Deny, "not base64"},
		"no message":            {request(func(r *certificates.CertificateSigningRequest) { r.Annotations[Annotation] = "AAAA" }), Deny, "not PKCS #7"},
		"a long document": {request(func(r *certificates.CertificateSigningRequest) {
			r.Annotations[Annotation] = strings.Repeat("A", longestDocument+1)
		}), Deny, "allowed are"},
		"no request": {request(func(r *certificates.CertificateSigningRequest) { r.Spec.Request = []byte("x") }), Deny, "PEM block"},

		"a serving certificate": {request(func(r *certificates.CertificateSigningRequest) {
			r.Spec.SignerName = certificates.KubeletServingSignerName
		}), Later, "no concern"},
		"another signer": {request(func(r *certificates.CertificateSigningRequest) {
			r.Spec.SignerName = certificates.KubeAPIServerClientSignerName
		}), Later, "no concern"},
		"another asker": {request(func(r *certificates.CertificateSigningRequest) { r.Spec.Groups = []string{"system:nodes"} }), Later, "no concern"},
		"decided before": {request(func(r *certificates.CertificateSigningRequest) {
			r.Status.Conditions = []certificates.CertificateSigningRequestCondition{{Type: certificates.CertificateDenied}}
		}), Later, "no concern"},
	} {
		t.Run(name, func(t *testing.T) {
			a := asked{signer: azure, machine: &Machine{ID: "/vm1", VMID: strings.ToUpper(vmID)},
				template: x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:node1", Organization: []string{"system:nodes"}}},
				usages:   []certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageClientAuth}}
			c.change(&a)
			verdict, why := a.verdict(t, root)
			if verdict != c.verdict || !strings.Contains(why, c.why) {
				t.Errorf("verdict %d %q, want %d %q", verdict, why, c.verdict, c.why)
			}
		})
	}
}

// TestIntermediate checks that a signer with an authority between it and the root needs that authority's certificate.
func TestIntermediate(t *testing.T) {
	root := issue(t, nil)
	between := issue(t, &root)
	leaf := issue(t, &between, domain)
	s, err := ReadDocument(leaf.sign(t, document(t, "", nil)))
	if err != nil {
		t.Fatal(err)
	}
	trust := Trust{Roots: x509.NewCertPool(), Domain: domain}
	trust.Roots.AddCert(root.certificate)
	if _, err := s.Verify(trust, now); err == nil {
		t.Error("a chain with a gap is trusted")
	}
	trust.Intermediates = x509.NewCertPool()
	trust.Intermediates.AddCert(between.certificate)
	if d, err := s.Verify(trust, now); err != nil || d.VMID != vmID {
		t.Errorf("%v %v", d, err)
	}
	if _, err := s.Verify(Trust{Domain: domain}, now); err == nil {
		t.Error("no roots, and so those of the system")
	}
}

// formOfAzure is a document in the form that Azure has: the signature is of RSA, and the name of the digest is RSA with SHA-256.
func formOfAzure(t testing.TB, root signer) string {
	t.Helper()
	const bits = 2048
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: domain}, DNSNames: []string{domain},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, root.certificate, &key.PublicKey, root.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	text, err := base64.StdEncoding.DecodeString(signer{certificate, key}.sign(t, document(t, "n", nil)))
	if err != nil {
		t.Fatal(err)
	}
	sha256OID, rsaOID := []byte("\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01"), []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b")
	if bytes.Count(text, sha256OID) != 2 {
		t.Fatalf("the message names SHA-256 %d times, want 2", bytes.Count(text, sha256OID))
	}
	return base64.StdEncoding.EncodeToString(bytes.ReplaceAll(text, sha256OID, rsaOID))
}

func TestFormOfAzure(t *testing.T) {
	root := issue(t, nil)
	s, err := ReadDocument(formOfAzure(t, root))
	if err != nil {
		t.Fatal(err)
	}
	trust := Trust{Roots: x509.NewCertPool(), Domain: domain}
	trust.Roots.AddCert(root.certificate)
	if d, err := s.Verify(trust, now); err != nil || d.VMID != vmID {
		t.Errorf("%v %v", d, err)
	}
}

func TestDomain(t *testing.T) {
	for cloud, want := range map[string]string{"": domain, "AzurePublicCloud": domain, "AZURECLOUD": domain, "AzureUSGovernment": "metadata.azure.us",
		"AzureChinaCloud": "metadata.azure.cn", "AzureStackCloud": "", "Other": ""} {
		if got := Domain(cloud); got != want {
			t.Errorf("%s: %q, want %q", cloud, got, want)
		}
	}
}

// FuzzReadDocument checks that bytes of any kind are a document or an error, and that nothing is trusted without a root.
func FuzzReadDocument(f *testing.F) {
	root := issue(f, nil)
	leaf, roots := issue(f, &root, domain), x509.NewCertPool()
	valid := leaf.sign(f, document(f, "n", nil))
	for _, seed := range []string{valid, formOfAzure(f, root), "", "AAAA", "MIAGCSqGSIb3DQEHAqCA", valid[:len(valid)/2]} {
		der, _ := base64.StdEncoding.DecodeString(seed)
		f.Add(der)
	}
	f.Fuzz(func(t *testing.T, der []byte) {
		s, err := ReadDocument(base64.StdEncoding.EncodeToString(der))
		if err != nil {
			return
		}
		s.Issuers()
		if _, err := s.Verify(Trust{Roots: roots, Domain: domain}, now); err == nil {
			t.Error("trusted without a root")
		}
	})
}
