package server

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"kaz/internal/azure"
)

const (
	appID     = "aaaaaaaa-0000-0000-0000-000000000001"
	managedID = "aaaaaaaa-0000-0000-0000-000000000002"
)

var managementScope = policy.TokenRequestOptions{Scopes: []string{"https://management.core.windows.net//.default"}}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func newKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// certificate returns a self-signed certificate and its PEM.
func certificate(t *testing.T, key *rsa.PrivateKey, until time.Duration) (*x509.Certificate, string) {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "app"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(until)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func indent(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ")
}

func TestCertificate(t *testing.T) {
	good, other, old := newKey(t), newKey(t), newKey(t)
	goodCert, goodPEM := certificate(t, good, time.Hour)
	otherCert, _ := certificate(t, other, time.Hour)
	oldCert, oldPEM := certificate(t, old, -time.Minute)
	a := startServer(t, Options{ProxyAddress: "127.0.0.1:0", Identities: write(t, "identities.yaml", fmt.Sprintf(`
applications:
- name: app
  clientId: %s
  certificates:
  - %s
  - |
      %s
`, appID, write(t, "cert.pem", goodPEM), indent(oldPEM)))})
	info := a.Info()
	for name, c := range map[string]struct {
		tenant      string
		cloud       cloud.Configuration
		through     bool
		certificate *x509.Certificate
		key         *rsa.PrivateKey
		refused     string
	}{
		"tenant adfs":           {"adfs", cloud.Configuration{ActiveDirectoryAuthorityHost: info.ARM}, false, goodCert, good, ""},
		"public by the proxy":   {info.Tenant, cloud.AzurePublic, true, goodCert, good, ""},
		"not registered":        {info.Tenant, cloud.AzurePublic, true, otherCert, other, "AADSTS700027"},
		"certificate has ended": {info.Tenant, cloud.AzurePublic, true, oldCert, old, "AADSTS700027"},
	} {
		t.Run(name, func(t *testing.T) {
			credential, err := azidentity.NewClientCertificateCredential(c.tenant, appID, []*x509.Certificate{c.certificate}, c.key,
				&azidentity.ClientCertificateCredentialOptions{SendCertificateChain: true,
					ClientOptions: azcore.ClientOptions{Cloud: c.cloud, Transport: clientOf(t, a, c.through)}})
			if err != nil {
				t.Fatal(err)
			}
			if c.refused == "" {
				works(t, a, clientOf(t, a, false), credential)
				return
			}
			if _, err := credential.GetToken(t.Context(), managementScope); err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("error %v, want %s", err, c.refused)
			}
		})
	}
}

// issuerKey signs tokens of a fictitious issuer.
type issuerKey struct {
	testing.TB
	key *rsa.PrivateKey
}

func (k issuerKey) token(claims map[string]any) string {
	parts := []string{}
	for _, part := range []any{map[string]any{"alg": "RS256", "kid": "k1"}, claims} {
		text, err := json.Marshal(part)
		if err != nil {
			k.Fatal(err)
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(text))
	}
	signed := strings.Join(parts, ".")
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, k.key, crypto.SHA256, sum[:])
	if err != nil {
		k.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func (k issuerKey) set() string {
	return fmt.Sprintf(`{"keys":[{"kty":"RSA","kid":"k1","n":%q,"e":"AQAB"}]}`, base64.RawURLEncoding.EncodeToString(k.key.N.Bytes()))
}

func TestWorkloadIdentity(t *testing.T) {
	k := issuerKey{t, newKey(t)}
	// The issuer serves its keys over TLS, as an API server does. Its discovery document has a URL that this machine cannot
	// reach.
	var server *httptest.Server
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"https://10.1.2.3:6443/openid/v1/jwks"}`, server.URL)
		case "/openid/v1/jwks":
			_, _ = io.WriteString(w, k.set())
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	authority := write(t, "issuer-ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	public, err := x509.MarshalPKIXPublicKey(&k.key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	a := startServer(t, Options{ProxyAddress: "127.0.0.1:0", Identities: write(t, "identities.yaml", fmt.Sprintf(`
applications:
- clientId: %[1]s
  federatedCredentials:
  - {issuer: "https://cluster", subject: "system:serviceaccount:default:app"}
  - {issuer: "%[2]s", subject: "system:serviceaccount:default:app", audiences: [us]}
  - {issuer: "https://pem", subject: "system:serviceaccount:default:app"}
  - {issuer: "http://127.0.0.1:1", subject: "system:serviceaccount:default:app"}
issuers:
- issuer: https://cluster
  keys: %[3]s
- issuer: %[2]s
  caFile: %[4]s
- issuer: https://pem
  keysFile: %[5]s
`, appID, server.URL, k.set(), authority, write(t, "sa.pub", string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))))})

	base := func(change map[string]any) map[string]any {
		claims := map[string]any{
			"iss": "https://cluster", "sub": "system:serviceaccount:default:app", "aud": []string{"api://AzureADTokenExchange"},
			"exp": time.Now().Add(time.Hour).Unix(), "nbf": time.Now().Unix(),
		}
		maps.Copy(claims, change)
		return claims
	}
	for name, c := range map[string]struct{ token, refused string }{
		"keys in the file":      {k.token(base(nil)), ""},
		"keys as PEM":           {k.token(base(map[string]any{"iss": "https://pem"})), ""},
		"keys of the issuer":    {k.token(base(map[string]any{"iss": server.URL, "aud": "us"})), ""},
		"another issuer":        {k.token(base(map[string]any{"iss": "https://elsewhere"})), "AADSTS700211"},
		"another subject":       {k.token(base(map[string]any{"sub": "system:serviceaccount:default:other"})), "AADSTS700213"},
		"another audience":      {k.token(base(map[string]any{"aud": "https://kubernetes"})), "AADSTS700212"},
		"has ended":             {k.token(base(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})), "AADSTS700024"},
		"not yet":               {k.token(base(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()})), "AADSTS700024"},
		"another key":           {issuerKey{t, newKey(t)}.token(base(nil)), "AADSTS700027"},
		"issuer does not serve": {k.token(base(map[string]any{"iss": "http://127.0.0.1:1"})), "AADSTS50166"},
		"no token":              {"nonsense", "AADSTS50027"},
	} {
		t.Run(name, func(t *testing.T) {
			credential, err := azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
				ClientID: appID, TenantID: a.Info().Tenant, TokenFilePath: write(t, "token", c.token),
				ClientOptions: azcore.ClientOptions{Transport: clientOf(t, a, true)},
			})
			if err != nil {
				t.Fatal(err)
			}
			if c.refused == "" {
				works(t, a, clientOf(t, a, true), credential)
				return
			}
			if _, err := credential.GetToken(t.Context(), managementScope); err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("error %v, want %s", err, c.refused)
			}
		})
	}
}

// A managed identity that is a resource can have federated credentials.
func TestUserAssignedIdentity(t *testing.T) {
	k := issuerKey{t, newKey(t)}
	a := startServer(t,
		Options{ProxyAddress: "127.0.0.1:0",
			Identities: write(t, "identities.yaml", "issuers:\n- issuer: https://cluster\n  keys: "+k.set())})
	info := a.Info()
	arm, err := a.Client()
	if err != nil {
		t.Fatal(err)
	}
	group := azure.GroupID(info.Subscription, "rg")
	identity := group.Resource("Microsoft.ManagedIdentity/userAssignedIdentities", "nodes")
	for _, w := range []azure.Write{
		{ID: group, Body: azure.Document(`{"location":"westeurope"}`)},
		{ID: identity, Body: azure.Document(`{"location":"westeurope"}`)},
		{ID: identity.Child("federatedIdentityCredentials", "pod"),
			Body: azure.Document(`{"properties":{"issuer":"https://cluster","subject":"pod","audiences":["api://AzureADTokenExchange"]}}`)},
	} {
		if _, err := arm.Put(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	doc, err := arm.Get(t.Context(), identity)
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ Properties struct{ ClientID string } }
	if err := json.Unmarshal(doc, &made); err != nil {
		t.Fatal(err)
	}

	t.Setenv("IDENTITY_ENDPOINT", info.IdentityEndpoint)
	t.Setenv("IDENTITY_HEADER", info.IdentityHeader)
	for name, id := range map[string]azidentity.ManagedIDKind{
		"client id":   azidentity.ClientID(made.Properties.ClientID),
		"resource id": azidentity.ResourceID(strings.ToUpper(string(identity))),
	} {
		credential, err := azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{ID: id,
			ClientOptions: azcore.ClientOptions{Transport: clientOf(t, a, false)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { worksFor(t, a, clientOf(t, a, false), credential, info.ARM) })
	}
	credential, err := azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
		ClientID: made.Properties.ClientID, TenantID: info.Tenant, ClientOptions: azcore.ClientOptions{Transport: clientOf(t, a, true)},
		TokenFilePath: write(t, "token",
			k.token(map[string]any{"iss": "https://cluster", "sub": "pod", "aud": "api://AzureADTokenExchange",
				"exp": time.Now().Add(time.Hour).Unix()})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("federated", func(t *testing.T) { works(t, a, clientOf(t, a, true), credential) })
}

func TestManagedIdentity(t *testing.T) {
	a := startServer(t,
		Options{ProxyAddress: "127.0.0.1:0",
			Identities: write(t, "identities.yaml", "managedIdentities:\n- {name: nodes, clientId: "+managedID+
				"}\napplications:\n- {clientId: "+appID+", secrets: [s]}")})
	info := a.Info()
	credential := func(t *testing.T, id azidentity.ManagedIDKind, through bool) azcore.TokenCredential {
		t.Helper()
		c, err := azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{ID: id,
			ClientOptions: azcore.ClientOptions{Transport: clientOf(t, a, through)}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, id := range map[string]azidentity.ManagedIDKind{"the only one": nil, "by client id": azidentity.ClientID(managedID)} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("IDENTITY_ENDPOINT", info.IdentityEndpoint)
			t.Setenv("IDENTITY_HEADER", info.IdentityHeader)
			worksFor(t, a, clientOf(t, a, false), credential(t, id, false), info.ARM)
		})
	}
	get := info.IdentityEndpoint + "?api-version=2019-08-01&resource=x"
	for name, c := range map[string]struct {
		url    string
		header []string
		status int
	}{
		"good": {get, []string{"X-IDENTITY-HEADER", info.IdentityHeader}, 200},
		"unknown": {get + "&client_id=aaaaaaaa-0000-0000-0000-00000000000f",
			[]string{"X-IDENTITY-HEADER", info.IdentityHeader}, 400},
		"not a managed one":  {get + "&client_id=" + appID, []string{"X-IDENTITY-HEADER", info.IdentityHeader}, 400},
		"wrong header":       {get, []string{"X-IDENTITY-HEADER", "guess"}, 401},
		"no header":          {get, nil, 401},
		"no resource":        {info.IdentityEndpoint + "?api-version=2019-08-01", []string{"X-IDENTITY-HEADER", info.IdentityHeader}, 400},
		"machine, no header": {info.ARMHTTP + "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=x", nil, 400},
		"machine": {info.ARMHTTP + "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=x",
			[]string{"Metadata", "true", "X-IDENTITY-HEADER", info.IdentityHeader}, 200},
	} {
		if status, body := metadataOf(t, "", c.url, c.header...); status != c.status {
			t.Errorf("%s: %d %v, want %d", name, status, body, c.status)
		}
	}
}

// TestTokensNeedASecretAtTheSharedAddress asks for tokens as any program of this machine can.
func TestTokensNeedASecretAtTheSharedAddress(t *testing.T) {
	a := startServer(t, Options{ProxyAddress: "127.0.0.1:0"})
	cluster := createSite(t, a, 1)
	info := a.Info()
	const token = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://management.azure.com/"
	machine := "/vm" + string(cluster.ScaleSet("nodes0").Child("virtualMachines", "0"))
	const instance = "/metadata/instance?api-version=2021-02-01"
	for name, c := range map[string]struct {
		base, path, host, secret string
		through                  bool
		status                   int
	}{
		"no machine":              {base: info.ARMHTTP, path: token, status: 403},
		"no machine, TLS":         {base: info.ARM, path: token, status: 403},
		"a machine":               {base: info.ARMHTTP, path: machine + token, status: 403},
		"a guess":                 {base: info.ARMHTTP, path: token, secret: "guess", status: 403},
		"another case":            {base: info.ARMHTTP, path: strings.Replace(token, "identity", "Identity", 1), status: 403},
		"a slash":                 {base: info.ARMHTTP, path: strings.Replace(token, "?", "/?", 1), status: 403},
		"the address of metadata": {base: info.ARMHTTP, path: token, host: "169.254.169.254", status: 403},
		"a foreign host": {base: info.ARMHTTP, path: token, host: "rebound.example.com",
			secret: info.IdentityHeader, status: 421},
		"a foreign host, a machine": {base: info.ARMHTTP, path: machine + instance, host: "rebound.example.com", status: 421},
		"a foreign address":         {base: info.ARMHTTP, path: machine + instance, host: "198.51.100.7", status: 421},
		"a host of Azure": {base: info.ARMHTTP, path: token, host: "management.azure.com",
			secret: info.IdentityHeader, status: 421},
		"localhost":             {base: info.ARMHTTP, path: machine + instance, host: "localhost:8080", status: 200},
		"its own address":       {base: info.ARMHTTP, path: machine + instance, status: 200},
		"the secret":            {base: info.ARMHTTP, path: token, secret: info.IdentityHeader, status: 200},
		"by the proxy":          {base: "http://169.254.169.254", path: token, through: true, status: 403},
		"by the proxy, to this": {base: info.ARMHTTP, path: token, through: true, status: 403},
		"by the proxy, with a secret": {base: "http://169.254.169.254", path: token,
			secret: info.IdentityHeader, through: true, status: 403},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = c.host
			r.Header.Set("Metadata", "true")
			if c.secret != "" {
				r.Header.Set("X-IDENTITY-HEADER", c.secret)
			}
			answer, err := clientOf(t, a, c.through).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			if err := errors.Join(err, answer.Body.Close()); err != nil {
				t.Fatal(err)
			}
			if answer.StatusCode != c.status || c.status != 200 && strings.Contains(string(text), "access_token") {
				t.Errorf("%s %s, want %d", answer.Status, text, c.status)
			}
		})
	}
}

// A refused login has the error codes of Entra ID.
func TestRefusedLogin(t *testing.T) {
	a := startServer(t, Options{ProxyAddress: "127.0.0.1:0"})
	info := a.Info()
	for name, c := range map[string]struct{ tenant, client, secret, refused string }{
		"secret":      {info.Tenant, info.ClientID, "guess", "AADSTS7000215"},
		"application": {info.Tenant, "aaaaaaaa-0000-0000-0000-00000000000f", info.ClientSecret, "AADSTS700016"},
	} {
		t.Run(name, func(t *testing.T) {
			credential, err := azidentity.NewClientSecretCredential(c.tenant, c.client, c.secret,
				&azidentity.ClientSecretCredentialOptions{ClientOptions: azcore.ClientOptions{Transport: clientOf(t, a, true)}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := credential.GetToken(t.Context(), managementScope); err == nil || !strings.Contains(err.Error(), c.refused) ||
				strings.Contains(err.Error(), c.secret) {
				t.Errorf("error %v, want %s and no secret", err, c.refused)
			}
		})
	}
	t.Run("tenant", func(t *testing.T) {
		credential, err := azidentity.NewClientSecretCredential("22222222-2222-2222-2222-222222222222", info.ClientID, info.ClientSecret,
			&azidentity.ClientSecretCredentialOptions{ClientOptions: azcore.ClientOptions{Transport: clientOf(t, a, true)}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := credential.GetToken(t.Context(), managementScope); err == nil || !strings.Contains(err.Error(), "AADSTS90002") {
			t.Errorf("error %v, want AADSTS90002", err)
		}
	})
}

func TestProxyLeadsNowhereElse(t *testing.T) {
	a := startServer(t, Options{ProxyAddress: "127.0.0.1:0"})
	elsewhere := httptest.NewTLSServer(http.NotFoundHandler())
	defer elsewhere.Close()
	c := clientOf(t, a, true)
	for _, url := range []string{elsewhere.URL, "https://example.org/", "https://management.azure.com.example.org/",
		"https://management.azure.com:8443/", "https://azurecr.io/"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Transport.RoundTrip(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "Forbidden") {
			t.Errorf("%s: %v, want it to be forbidden", url, err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://example.org/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("plain request: %s", resp.Status)
	}
	if status, body := groups(t, c, "https://management.azure.com", a.Info().Subscription, a.Info().Token); status != http.StatusOK {
		t.Errorf("public host: %d %v", status, body)
	}
	if status, body := groups(t, c, "https://westeurope.management.azure.com", a.Info().Subscription,
		a.Info().Token); status != http.StatusOK {
		t.Errorf("a region's host: %d %v", status, body)
	}
}

// The example in the guide works.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../../../docs/guides/local-azure.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, there := strings.Cut(string(text), "\n## Identities and rights")
	_, example, found := strings.Cut(section, "```yaml\n")
	example, _, ended := strings.Cut(example, "```")
	if !there || !found || !ended {
		t.Fatal("no example")
	}
	dir := t.TempDir()
	_, pemText := certificate(t, newKey(t), time.Hour)
	for name, content := range map[string]string{"identities.yaml": example, "controller.pem": pemText, "sa.pub": pemText,
		"issuer-ca.pem": pemText} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := startServer(t, Options{AccessControl: "on", Identities: filepath.Join(dir, "identities.yaml")})
	if _, ok := a.tokens.ByClientID("aaaaaaaa-0000-0000-0000-000000000001"); !ok {
		t.Error("the application of the guide is missing")
	}
}
