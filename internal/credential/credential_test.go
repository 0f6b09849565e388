package credential

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"kaz/internal/azure"
	"kaz/internal/azure/secret"
)

const (
	tenant = "11111111-1111-1111-1111-111111111111"
	other  = "22222222-2222-2222-2222-222222222222"
	client = "33333333-3333-3333-3333-333333333333"
)

// issuer is a token service with a Key Vault and a Resource Manager.
type issuer struct {
	mu     sync.Mutex
	seen   []string     // METHOD URL without query
	forms  []url.Values // bodies of token requests
	refuse string       // body of a rejected token request
	secret string       // value of the vault's secret
}

func (i *issuer) Do(req *http.Request) (*http.Response, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := *req.URL
	at.RawQuery = ""
	i.seen = append(i.seen, req.Method+" "+at.String())
	reply := func(status int, body any) (*http.Response, error) {
		text, ok := body.(string)
		if !ok {
			b, err := json.Marshal(body)
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(text)), Request: req}, nil
	}
	host := "https://" + req.URL.Host
	switch path := req.URL.Path; {
	case strings.HasSuffix(path, "/.well-known/openid-configuration"):
		base := host + strings.TrimSuffix(path, "/.well-known/openid-configuration")
		return reply(200,
			map[string]string{"issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token"})
	case strings.HasSuffix(path, "/discovery/instance"):
		return reply(200, map[string]any{"tenant_discovery_endpoint": host + "/" + tenant + "/v2.0/.well-known/openid-configuration",
			"metadata": []any{map[string]any{"preferred_network": req.URL.Host, "preferred_cache": req.URL.Host,
				"aliases": []string{req.URL.Host}}}})
	case strings.HasSuffix(path, "/token"):
		return i.token(req, reply)
	case strings.HasPrefix(path, "/secrets/"):
		return reply(200, map[string]string{"value": i.secret})
	case strings.HasPrefix(path, "/subscriptions/"):
		return reply(200, `{"id":"x","properties":{"vaultUri":"https://v1.vault.test/"}}`)
	}
	return nil, fmt.Errorf("nothing is at %s", &at)
}

func (i *issuer) token(req *http.Request, reply func(int, any) (*http.Response, error)) (*http.Response, error) {
	form := req.URL.Query()
	if req.Body != nil {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		posted, err := url.ParseQuery(string(text))
		if err != nil {
			return nil, err
		}
		maps.Copy(form, posted)
	}
	i.forms = append(i.forms, form)
	if i.refuse != "" {
		return reply(401, i.refuse)
	}
	return reply(200, map[string]any{"token_type": "Bearer", "expires_in": 3600, "expires_on": fmt.Sprint(time.Now().Add(time.Hour).Unix()),
		"access_token": "token of " + req.URL.Path})
}

// requests returns the recorded requests, without the discovery before a token.
func (i *issuer) requests(suffix string) (found []string) {
	for _, s := range i.seen {
		if strings.HasSuffix(s, suffix) {
			found = append(found, s)
		}
	}
	return found
}

// get requests a token. Each test has its own audience, because azidentity caches tokens of managed
// identities for the whole process.
func get(t *testing.T, c azcore.TokenCredential) (string, error) {
	t.Helper()
	token, err := c.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{"https://" + t.Name() + "//.default"}})
	return token.Token, err
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKinds gets a token with each kind, and checks the precedence of several kinds.
func TestKinds(t *testing.T) {
	const authority = "https://login.private.test/"
	federated := file(t, "federated-assertion")
	everything := Config{
		TenantID: tenant, ClientID: client, Authority: authority,
		WorkloadIdentity: true, FederatedTokenFile: federated, ManagedIdentity: true, ClientSecret: secret.New("s3cret"),
		CertificatePath: pemFile(t), DataPlaneIdentityPath: "/x",
	}
	without := func(f ...func(*Config)) Config {
		c := everything
		for _, change := range f {
			change(&c)
		}
		return c
	}
	workload := func(c *Config) { c.WorkloadIdentity = false }
	managed := func(c *Config) { c.ManagedIdentity = false }
	password := func(c *Config) { c.ClientSecret = secret.Text{} }
	tokenURL := authority + tenant + "/v2.0/token"

	for _, c := range []struct {
		config Config
		kind   Kind
		from   string // suffix of the token request
		form   map[string]string
	}{
		{everything, WorkloadIdentity, tokenURL,
			map[string]string{"client_id": client, "client_assertion": "federated-assertion", "grant_type": "client_credentials"}},
		{without(func(c *Config) { c.FederatedToken = secret.New("handed-over") }), WorkloadIdentity, tokenURL,
			map[string]string{"client_id": client, "client_assertion": "handed-over", "grant_type": "client_credentials"}},
		{without(workload), ManagedIdentity, "169.254.169.254/metadata/identity/oauth2/token",
			map[string]string{"resource": "https://" + t.Name() + "/"}},
		{without(workload, func(c *Config) { c.ManagedIdentityID = client }), ManagedIdentity, "oauth2/token",
			map[string]string{"client_id": client}},
		{without(workload, func(c *Config) { c.ManagedIdentityID = "/Subscriptions/s/x" }), ManagedIdentity, "oauth2/token",
			map[string]string{"msi_res_id": "/Subscriptions/s/x"}},
		{without(workload, managed), ClientSecret, tokenURL, map[string]string{"client_id": client, "client_secret": "s3cret"}},
		{without(workload, managed, password), Certificate, tokenURL,
			map[string]string{"client_id": client, "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}},
		{without(workload, managed, password,
			func(c *Config) {
				c.CertificatePath, c.CertificatePassword = "testdata/locked.pfx", secret.New("opensesame")
			}), Certificate,
			tokenURL, nil},
	} {
		i := &issuer{}
		c.config.Transport = i
		got, err := New(c.config)
		if err != nil || got.Kind != c.kind || got.Network != got.Compute || got.Auxiliary != nil {
			t.Errorf("%s: %+v %v", c.kind, got.Kind, err)
			continue
		}
		for range 2 { // the second one is cached
			if token, err := get(t, got.Compute); err != nil || token == "" {
				t.Errorf("%s: %v", c.kind, err)
			}
		}
		if asked := i.requests(c.from); len(asked) != 1 || len(i.forms) != 1 {
			t.Errorf("%s: asked %q, want one at %s", c.kind, i.seen, c.from)
			continue
		}
		for k, want := range c.form {
			if v := i.forms[0].Get(k); v != want {
				t.Errorf("%s: %s is %q, want %q", c.kind, k, v, want)
			}
		}
		if c.kind == Certificate && !strings.Contains(decodedHeader(t, i.forms[0].Get("client_assertion")), "x5c") {
			t.Errorf("the certificate's chain was not sent")
		}
		if asked := i.requests("/discovery/instance"); len(asked) != 0 {
			t.Errorf("%s: a private cloud's authority was asked about at %q", c.kind, asked)
		}
	}
}

func identityJSON(secret, authority string) string {
	return fmt.Sprintf(`{"client_id":%q,"tenant_id":%q,"client_secret":%q,"authentication_endpoint":%q,
		"not_before":"2026-01-01T00:00:00Z"}`, client, other, secret, authority)
}

// TestDataPlane uses the credential file of a hosted control plane. The file names the tenant and the
// authority, and a new certificate in it is used for the next token.
func TestDataPlane(t *testing.T) {
	secret := func() string {
		text, err := os.ReadFile(pemFile(t))
		if err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(text)
	}
	path := file(t, identityJSON(secret(), "https://westus2.login.test/"))
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	i := &issuer{}
	c, err := New(Config{TenantID: tenant, ClientID: "unused", NetworkTenantID: "other.test", DataPlaneIdentityPath: path, Transport: i})
	if err != nil || c.Kind != DataPlane || c.Network != c.Compute || c.Auxiliary != nil {
		t.Fatalf("%+v %v", c, err)
	}
	for n, step := range []struct {
		change func()
		asked  int // requests for a token, so far
	}{
		{func() {}, 1},
		{func() {}, 1}, // cached
		{func() { write(identityJSON(secret(), "https://westus2.login.test/")) }, 2},
		{func() { write("{") }, 2}, // half written: the last certificate is used
		{func() { write("") }, 2},
		{func() { write(identityJSON(secret(), "https://westus2.login.test/")) }, 3},
	} {
		step.change()
		if token, err := get(t, c.Compute); err != nil || token == "" {
			t.Errorf("%d: %v", n, err)
		}
		if asked := i.requests("https://westus2.login.test/" + other + "/v2.0/token"); len(asked) != step.asked {
			t.Errorf("%d: asked %q", n, asked)
		}
	}
	if v := i.forms[0].Get("client_id"); v != client || !strings.Contains(decodedHeader(t, i.forms[0].Get("client_assertion")), "x5c") {
		t.Errorf("client %s, %v", v, i.forms[0])
	}
	if asked := i.requests("/discovery/instance"); len(asked) != 0 {
		t.Errorf("the authority was asked about at %q", asked)
	}
}

func TestNoCredential(t *testing.T) {
	got, err := New(Config{TenantID: tenant, ClientID: client})
	if err != nil || got.Kind != None || got.Compute != nil || got.Network != nil {
		t.Errorf("%+v %v", got, err)
	}
}

// TestManagedIdentityOfAppService uses App Service's endpoint for managed identities.
func TestManagedIdentityOfAppService(t *testing.T) {
	t.Setenv("IDENTITY_ENDPOINT", "http://127.0.0.1:1/msi/token")
	t.Setenv("IDENTITY_HEADER", "h")
	i := &issuer{}
	c, err := New(Config{ManagedIdentity: true, Transport: i})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, c.Compute); err != nil || !slices.Equal(i.seen, []string{"GET http://127.0.0.1:1/msi/token"}) {
		t.Errorf("%q %v", i.seen, err)
	}
}

// TestAuthorities checks that authorities of public clouds are discovered as usual and that ADFS uses
// its own paths.
func TestAuthorities(t *testing.T) {
	for _, c := range []struct {
		authority, tenant, asks string
		discovery               bool
	}{
		{"", tenant, "https://login.microsoftonline.com/" + tenant + "/v2.0/token", true},
		{"https://login.chinacloudapi.cn", tenant, "/v2.0/token", true},
		{"https://127.0.0.1:1", tenant, "https://127.0.0.1:1/" + tenant + "/v2.0/token", false},
		{"https://127.0.0.1:1/", "adfs", "https://127.0.0.1:1/adfs/token", false},
		{"https://adfs.private.test/adfs", "ADFS", "https://adfs.private.test/adfs/token", false},
	} {
		i := &issuer{}
		got, err := New(Config{TenantID: c.tenant, ClientID: client, ClientSecret: secret.New("s"), Authority: c.authority, Transport: i})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := get(t, got.Compute); err != nil {
			t.Errorf("%s: %v", c.authority, err)
		}
		if len(i.requests(c.asks)) != 1 || (len(i.requests("/discovery/instance")) > 0) != c.discovery {
			t.Errorf("%s: asked %q, want %s and discovery %v", c.authority, i.seen, c.asks, c.discovery)
		}
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		want   []string
	}{
		"token without a client": {Config{WorkloadIdentity: true, FederatedToken: secret.New("s3cret")},
			[]string{"workload identity", "tenant, client id"}},
		"all that is missing": {Config{WorkloadIdentity: true},
			[]string{"workload identity", "tenant, client id, federated token file"}},
		"no client": {Config{ClientSecret: secret.New("s"), TenantID: tenant}, []string{"secret", "client id"}},
		"no such file": {Config{CertificatePath: "testdata/none.pem", TenantID: tenant, ClientID: client},
			[]string{"certificate", "testdata/none.pem"}},
		"no certificate": {Config{CertificatePath: "credential.go", TenantID: tenant, ClientID: client},
			[]string{"credential.go", "PEM or PKCS#12"}},
		"wrong password": {Config{CertificatePath: "testdata/locked.pfx", CertificatePassword: secret.New("guess-it"), TenantID: tenant,
			ClientID: client}, []string{"locked.pfx"}},
		"no data plane file": {Config{DataPlaneIdentityPath: "/run/identity.json"}, []string{"data plane", "/run/identity.json"}},
		"data plane, no JSON": {Config{DataPlaneIdentityPath: "testdata/locked.pfx"},
			[]string{"data plane", "testdata/locked.pfx", "expected JSON with client_id"}},
		"data plane, nothing in it": {Config{DataPlaneIdentityPath: file(t, "{}")},
			[]string{"missing: client_id, tenant_id, client_secret, authentication_endpoint"}},
		"data plane, no base64": {Config{DataPlaneIdentityPath: file(t, identityJSON("guess-it!", "https://login.test"))},
			[]string{"client_secret is not base64"}},
		"data plane, no certificate": {Config{DataPlaneIdentityPath: file(t, identityJSON("aaaa", "https://login.test"))},
			[]string{"client_secret is no certificate"}},
		"data plane, no authority": {Config{DataPlaneIdentityPath: file(t, identityJSON("aaaa", "login.test"))},
			[]string{"authority"}},
		"authority": {Config{ClientSecret: secret.New("s"), TenantID: tenant, ClientID: client, Authority: "login.test"},
			[]string{"authority"}},
		"tenant": {Config{ClientSecret: secret.New("s"), TenantID: "a b", ClientID: client}, []string{"tenant"}},
		"two tenants, no vault": {Config{ManagedIdentity: true, TenantID: tenant, NetworkTenantID: other},
			[]string{"auxiliaryTokenProvider is not set", other}},
		"two tenants, half a vault": {Config{ManagedIdentity: true, TenantID: tenant, NetworkTenantID: other,
			NetworkToken: &VaultSecret{VaultName: "v"}},
			[]string{"subscription, resource group, secret"}},
	} {
		got, err := New(c.config)
		if err == nil || got != (Credentials{}) {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "guess-it") {
				t.Errorf("%s: %q, want %q in it", name, err, want)
			}
		}
	}
}

// TestErrorsNameTheIdentity checks that the error names the identity and Azure's answer, and never
// the secret, even if Azure repeats it.
func TestErrorsNameTheIdentity(t *testing.T) {
	i := &issuer{refuse: `{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret provided: s3cret&x s3cret%26x.\r\nTrace ID: 1"}`}
	c, err := New(Config{TenantID: tenant, ClientID: client, ClientSecret: secret.New("s3cret&x"), Authority: "https://login.private.test",
		Transport: i})
	if err != nil {
		t.Fatal(err)
	}
	_, err = get(t, c.Compute)
	if err == nil {
		t.Fatal("no error")
	}
	const want = "service principal with a secret (client " + client + " in tenant " + tenant + ") got no token: " +
		"HTTP 401: invalid_client: AADSTS7000215: Invalid client secret provided: [redacted] [redacted]. Trace ID: 1"
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	var futile interface{ NonRetriable() }
	if !errors.As(err, &futile) {
		t.Error("the error would be retried")
	}
	for who, config := range map[string]Config{
		"managed identity (system-assigned)": {ManagedIdentity: true},
		"managed identity (/subscriptions/s": {ManagedIdentity: true, ManagedIdentityID: "/subscriptions/s/x"},
		"workload identity (client " +
			client: {WorkloadIdentity: true, TenantID: tenant, ClientID: client, Authority: "https://login.private.test",
			FederatedTokenFile: file(t, "x")},
	} {
		config.Transport = &issuer{refuse: `{"error":"unauthorized_client","error_description":"no such identity"}`}
		c, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := get(t, c.Compute); err == nil || !strings.HasPrefix(err.Error(), who) ||
			!strings.Contains(err.Error(), "no such identity") {
			t.Errorf("%v, want %s and what was said", err, who)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	c := Config{ClientSecret: secret.New("s3cret"), CertificatePassword: secret.New("s3cret"), FederatedToken: secret.New("s3cret")}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", c.ClientSecret, "config", c)
	for _, shown := range []string{string(text), fmt.Sprint(c), fmt.Sprintf("%+v %#v %s %q", c, c, c.ClientSecret, c.ClientSecret),
		log.String()} {
		if strings.Contains(shown, "s3cret") {
			t.Errorf("printed: %s", shown)
		}
	}
}

// TestTwoTenants checks that a service principal signs in to both tenants, and that the compute
// client carries a token of the other one.
func TestTwoTenants(t *testing.T) {
	i := &issuer{}
	c, err := New(Config{TenantID: tenant, ClientID: client, ClientSecret: secret.New("s"), NetworkTenantID: other,
		Authority: "https://login.private.test", Transport: i})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		credential azcore.TokenCredential
		tenant     string
	}{{c.Compute, tenant}, {c.Network, other}, {c.Auxiliary, other}} {
		if token, err := get(t, part.credential); err != nil || !strings.Contains(token, part.tenant) {
			t.Errorf("%q %v, want a token of %s", token, err, part.tenant)
		}
	}
	// Tenants are compared without case.
	if c, err = New(Config{TenantID: "contoso.test", NetworkTenantID: "Contoso.Test", ClientID: client, ClientSecret: secret.New("s")}); err != nil ||
		c.Auxiliary != nil {
		t.Errorf("%+v %v", c, err)
	}
}

// TestTokenFromVault checks that a managed identity reads its token of the other tenant from a vault,
// and again only when it expires.
func TestTokenFromVault(t *testing.T) {
	value := func(token string, in time.Duration) string {
		return fmt.Sprintf(`{"access_token":%q,"expires_on":%q}`, token, time.Now().Add(in).Format(time.RFC3339))
	}
	i := &issuer{secret: value("first", 10*time.Minute)}
	c, err := New(Config{
		TenantID: tenant, NetworkTenantID: other, ManagedIdentity: true, Endpoint: "https://management.test", Transport: i,
		NetworkToken: &VaultSecret{SubscriptionID: "s", ResourceGroup: "g", VaultName: "v1", SecretName: "network"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := func(token string, reads int) {
		t.Helper()
		got, err := get(t, c.Auxiliary)
		if err != nil || got != token || len(i.requests("https://v1.vault.test/secrets/network")) != reads {
			t.Errorf("%q %v after %q, want %q after %d reads of the vault", got, err, i.seen, token, reads)
		}
	}
	want("first", 1)
	want("first", 1)
	if resource := i.forms[len(i.forms)-1].Get("resource"); resource != "https://vault.test" {
		t.Errorf("the vault was asked with a token for %q", resource)
	}
	i.secret = value("second", 2*time.Minute) // not used yet: the first one is valid
	want("first", 1)

	v := c.Auxiliary.(*vaultToken)
	end := func() { // of the cached token
		last := <-v.turn
		last.ExpiresOn = time.Now().Add(soon - time.Second)
		v.turn <- last
	}
	end()
	want("second", 2)
	i.secret = "rubbish, but s3cret"
	want("second", 3) // valid for two more minutes
	<-v.turn
	v.turn <- azcore.AccessToken{}
	if _, err := get(t, c.Network); err == nil || strings.Contains(err.Error(), "s3cret") || azure.KindOf(err) != azure.Internal {
		t.Errorf("error %v", err)
	}
}

func TestParseToken(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for text, ok := range map[string]bool{
		`{"access_token":"t","expires_on":"1000060"}`:              true,
		`{"access_token":"t","expires_on":1000060}`:                true,
		`{"access_token":"t","expires_on":"2030-01-01T00:00:00Z"}`: true,
		`{"access_token":"t","expires_on":999}`:                    false,
		`{"access_token":"t","expires_on":"soon"}`:                 false,
		`{"access_token":"t"}`:                                     false,
		`{"expires_on":1000060}`:                                   false,
		`[]`:                                                       false,
		``:                                                         false,
	} {
		if token, err := parseToken(text, now); (err == nil) != ok || ok && token.Token != "t" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func decodedHeader(t *testing.T, assertion string) string {
	t.Helper()
	head, _, _ := strings.Cut(assertion, ".")
	text, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pemFile writes a new certificate and its key.
func pemFile(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kaz test"},
		NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))+
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
}
