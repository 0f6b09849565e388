package local

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

// startAzure starts a local Azure that ends with the test, with all it started.
func startAzure(t *testing.T, o AzureOptions) *Azure {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a, err := StartAzure(t.Context(), o)
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

// client trusts the local Azure's authority and nothing else, and uses the proxy if
// through is set.
func client(t testing.TB, a *Azure, through bool) *http.Client {
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

// get reads a subscription's resource groups with a token.
func groups(t *testing.T, c *http.Client, base, subscription, token string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/subscriptions/"+subscription+"/resourceGroups?api-version=2021-04-01", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
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

func works(t *testing.T, a *Azure, c *http.Client, credential azcore.TokenCredential) {
	t.Helper()
	worksFor(t, a, c, credential, "https://management.core.windows.net/")
}

// worksFor uses a token for an audience. The SDK keeps managed identities' tokens
// for the whole process, so tests of those ask for one that is their own.
func worksFor(t *testing.T, a *Azure, c *http.Client, credential azcore.TokenCredential, audience string) {
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
	a := startAzure(t, AzureOptions{ProxyAddress: "127.0.0.1:0"})
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
			options := &azidentity.ClientSecretCredentialOptions{ClientOptions: azcore.ClientOptions{Cloud: o.cloud, Transport: client(t, a, o.through)}}
			credential, err := azidentity.NewClientSecretCredential(o.tenant, info.ClientID, info.ClientSecret, options)
			if err != nil {
				t.Fatal(err)
			}
			works(t, a, client(t, a, o.through), credential)
		})
	}
}

func TestDoor(t *testing.T) {
	a := startAzure(t, AzureOptions{})
	door, err := a.Door()
	if err != nil {
		t.Fatal(err)
	}
	group := azure.GroupID(a.Info().Subscription, "rg")
	if _, err := door.Put(t.Context(), azure.Write{ID: group, Body: azure.Document(`{"location":"westeurope"}`)}); err != nil {
		t.Fatal(err)
	}
	if status, body := groups(t, client(t, a, false), a.Info().ARM, a.Info().Subscription, a.Info().Token); status != 200 || len(body["value"].([]any)) != 1 {
		t.Errorf("resource groups: %d %v", status, body)
	}
}
