package pki

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// TestSecrets checks that all secrets are new each time, and that each bundle has a certificate and its key.
func TestSecrets(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	one, err := New(now)
	if err != nil {
		t.Fatal(err)
	}
	other, err := New(now)
	if err != nil {
		t.Fatal(err)
	}
	parameters, err := one.Parameters()
	if err != nil {
		t.Fatal(err)
	}
	others, err := other.Parameters()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range parameters {
		if text == others[name] {
			t.Errorf("%s is the same for two clusters", name)
		}
		if !strings.HasSuffix(name, "CA") {
			continue
		}
		pair, err := tls.X509KeyPair([]byte(text), []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !pair.Leaf.IsCA || pair.Leaf.NotAfter != now.AddDate(10, 0, 0) {
			t.Errorf("%s: %v until %v", name, pair.Leaf.IsCA, pair.Leaf.NotAfter)
		}
	}
	account := parameters["pkiServiceAccount"]
	public, rest := pem.Decode([]byte(account))
	private, _ := pem.Decode(rest)
	if public.Type != "PUBLIC KEY" || private.Type != "PRIVATE KEY" {
		t.Errorf("the key pair of service accounts has %s and %s", public.Type, private.Type)
	}
	if len(parameters) != 6 {
		t.Errorf("%d secrets, want 6", len(parameters))
	}
}

// TestToken checks the form of the bootstrap token and the pin that goes with it.
func TestToken(t *testing.T) {
	s, err := New(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	parameters, err := s.Parameters()
	if err != nil {
		t.Fatal(err)
	}
	join, err := ParseJoin(parameters["bootstrapToken"])
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`).MatchString(join.Token.Reveal()) || !strings.HasPrefix(join.Token.Reveal(), join.ID()+".") {
		t.Errorf("the bootstrap token has not the form of Kubernetes")
	}
	if text := fmt.Sprintf("%v %+v %#v %x", join, s.Token, s, join); strings.Contains(text, join.Token.Reveal()[7:]) ||
		strings.Contains(text, fmt.Sprintf("%x", join.Token.Reveal()[7:])) {
		t.Errorf("printed: %s", text)
	}
	if text, err := json.Marshal([]any{join, s.Token}); err != nil || strings.Contains(string(text), join.Token.Reveal()[7:]) {
		t.Errorf("%v: encoded: %s", err, text)
	}
	for _, damaged := range []string{"", "{}", "abcdef.0123456789abcdef", `{"token":"secret","caCertHash":"sha256:0"}`,
		`{"token":"abcdef.0123456789abcdef"}`} {
		if _, err := ParseJoin(damaged); err == nil || strings.Contains(err.Error(), "0123") || strings.Contains(err.Error(), `"secret"`) {
			t.Errorf("%s: got %v, want an error without a secret", damaged, err)
		}
	}
	block, _ := pem.Decode([]byte(parameters["pkiCA"]))
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	if want := "sha256:" + hex.EncodeToString(sum[:]); join.CACertHash != want {
		t.Errorf("the pin is %s, want %s", join.CACertHash, want)
	}
}

// TestKubeconfig checks that the API server would take the certificate: it is of the cluster's authority, for clients, and valid.
func TestKubeconfig(t *testing.T) {
	now := time.Now()
	s, err := New(now)
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.CA.Kubeconfig("prod", "https://api:6443", now)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil || config.Host != "https://api:6443" {
		t.Fatal(err, config)
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(config.CAData) {
		t.Fatal("no certificate authority")
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: now.Add(364 * 24 * time.Hour), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil || pair.Leaf.Subject.Organization[0] != "system:masters" {
		t.Errorf("%v %v", err, pair.Leaf.Subject)
	}
}
