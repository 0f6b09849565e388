package server

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"go.uber.org/goleak"

	"kaz/internal/azure"
)

// startServer starts a local Azure for the duration of a test, and checks that no goroutine is left.
func startServer(t *testing.T, o Options) *Server {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// client returns a client that trusts only the local Azure's certificate authority. It uses the proxy if through is true.
func clientOf(t testing.TB, a *Server, through bool) *http.Client {
	t.Helper()
	text, err := os.ReadFile(a.Info().CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatalf("no certificate in %s", text)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	if through {
		proxy, err := url.Parse(a.Info().Proxy)
		if err != nil {
			t.Fatal(err)
		}
		transport.Proxy = http.ProxyURL(proxy)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// groups reads the resource groups of a subscription with a token.
func groups(t *testing.T, c *http.Client, base, subscription, token string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/subscriptions/"+subscription+
		"/resourceGroups?api-version=2021-04-01", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return readJSON(t, c, r)
}

// readJSON sends a request and returns the status and the JSON object of the response.
func readJSON(t *testing.T, c *http.Client, r *http.Request) (int, map[string]any) {
	t.Helper()
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(text, &body); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return resp.StatusCode, body
}

func works(t *testing.T, a *Server, c *http.Client, credential azcore.TokenCredential) {
	t.Helper()
	worksFor(t, a, c, credential, "https://management.core.windows.net/")
}

// worksFor checks that a token for an audience is accepted. The SDK caches the tokens of managed identities for the whole
// process, so each test of them uses its own audience.
func worksFor(t *testing.T, a *Server, c *http.Client, credential azcore.TokenCredential, audience string) {
	t.Helper()
	token, err := credential.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{audience + "/.default"}})
	if err != nil {
		t.Fatal(err)
	}
	info := a.Info()
	if status, body := groups(t, c, info.ARM, info.Subscription, token.Token); status != http.StatusOK {
		t.Fatalf("with the credential's token: %d %v", status, body)
	}
}

func TestSecret(t *testing.T) {
	a := startServer(t, Options{ProxyAddress: "127.0.0.1:0"})
	info := a.Info()
	for name, o := range map[string]struct {
		tenant  string
		cloud   cloud.Configuration
		through bool
	}{
		"tenant adfs at the endpoint": {"adfs", cloud.Configuration{ActiveDirectoryAuthorityHost: info.ARM}, false},
		"public cloud by the proxy":   {info.Tenant, cloud.AzurePublic, true},
		"china by the proxy":          {info.Tenant, cloud.AzureChina, true},
		"government by the proxy":     {info.Tenant, cloud.AzureGovernment, true},
	} {
		t.Run(name, func(t *testing.T) {
			options := &azidentity.ClientSecretCredentialOptions{ClientOptions: azcore.ClientOptions{Cloud: o.cloud,
				Transport: clientOf(t, a, o.through)}}
			credential, err := azidentity.NewClientSecretCredential(o.tenant, info.ClientID, info.ClientSecret, options)
			if err != nil {
				t.Fatal(err)
			}
			works(t, a, clientOf(t, a, o.through), credential)
		})
	}
}

func TestClient(t *testing.T) {
	a := startServer(t, Options{})
	arm, err := a.Client()
	if err != nil {
		t.Fatal(err)
	}
	group := azure.GroupID(a.Info().Subscription, "rg")
	if _, err := arm.Put(t.Context(), azure.Write{ID: group, Body: azure.Document(`{"location":"westeurope"}`)}); err != nil {
		t.Fatal(err)
	}
	if status, body := groups(t, clientOf(t, a, false), a.Info().ARM, a.Info().Subscription, a.Info().Token); status != 200 ||
		len(body["value"].([]any)) != 1 {
		t.Errorf("resource groups: %d %v", status, body)
	}
}
