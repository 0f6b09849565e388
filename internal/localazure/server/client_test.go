package server

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// clientKind is the environment variable that makes a process of this test a client.
const clientKind = "KAZ_TEST_CLIENT"

// TestUnmodifiedClients runs clients with no configuration but their environment. Each is a process, because a process
// reads certificates and proxies only once.
func TestUnmodifiedClients(t *testing.T) {
	if os.Getenv(clientKind) != "" {
		beClient(t)
		return
	}
	a := startServer(t, Options{ProxyAddress: "127.0.0.1:0"})
	info := a.Info()
	login := []string{"AZURE_TENANT_ID=" + info.Tenant, "AZURE_CLIENT_ID=" + info.ClientID, "AZURE_CLIENT_SECRET=" + info.ClientSecret}
	for kind, env := range map[string][]string{
		"managed identity, endpoint": {"ENDPOINT=" + info.ARM, "IDENTITY_ENDPOINT=" + info.IdentityEndpoint, "IDENTITY_HEADER=" +
			info.IdentityHeader},
		"managed identity, plain": {"ENDPOINT=" + info.ARMHTTP, "IDENTITY_ENDPOINT=" + info.IdentityEndpoint, "IDENTITY_HEADER=" +
			info.IdentityHeader},
		"secret, proxy": append(login, "HTTPS_PROXY="+info.Proxy),
		"secret, adfs":  append(login, "ENDPOINT="+info.ARM, "AZURE_TENANT_ID=adfs", "AZURE_AUTHORITY_HOST="+info.ARM),
	} {
		t.Run(kind, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUnmodifiedClients$")
			command.Env = append([]string{clientKind + "=" + kind, "SSL_CERT_FILE=" + info.CAFile, "SSL_CERT_DIR=/nonexistent",
				"SUBSCRIPTION=" + info.Subscription, "HOME=" + t.TempDir()}, env...)
			if out, err := command.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// beClient reads resource groups as a program with the SDK does.
func beClient(t *testing.T) {
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		t.Fatal(err)
	}
	configuration := cloud.AzurePublic
	endpoint := "https://management.azure.com"
	if at := os.Getenv("ENDPOINT"); at != "" {
		endpoint = at
		configuration = cloud.Configuration{ActiveDirectoryAuthorityHost: os.Getenv("AZURE_AUTHORITY_HOST"),
			Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
				cloud.ResourceManager: {Endpoint: at, Audience: "https://management.core.windows.net/"},
			}}
	}
	options := &arm.ClientOptions{ClientOptions: policy.ClientOptions{Cloud: configuration, InsecureAllowCredentialWithHTTP: true}}
	sdk, err := arm.NewClient("test", "v1.0.0", credential, options)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, err := runtime.NewRequest(t.Context(), http.MethodGet, endpoint+"/subscriptions/"+os.Getenv("SUBSCRIPTION")+
			"/resourceGroups?api-version=2021-04-01")
		if err != nil {
			t.Fatal(err)
		}
		resp, err := sdk.Pipeline().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // the pipeline has read it
		if resp.StatusCode != http.StatusOK {
			t.Fatal(runtime.NewResponseError(resp))
		}
	}
}

// counting counts requests by path.
type counting struct {
	*http.Client
	tokens atomic.Int32
}

func (c *counting) Do(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/token") {
		c.tokens.Add(1)
	}
	return c.Client.Do(r)
}

// A client finds its cached token only if the login returns the aliases of its host.
func TestTokenIsCached(t *testing.T) {
	a := startServer(t, Options{ProxyAddress: "127.0.0.1:0"})
	c := &counting{Client: clientOf(t, a, true)}
	credential, err := azidentity.NewClientSecretCredential(a.Info().Tenant, a.Info().ClientID, a.Info().ClientSecret,
		&azidentity.ClientSecretCredentialOptions{ClientOptions: azcore.ClientOptions{Transport: c}})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := credential.GetToken(t.Context(), managementScope); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.tokens.Load(); n != 1 {
		t.Errorf("%d token requests, want 1", n)
	}
}

// BenchmarkHTTPS measures client and server together, over TLS on this machine.
func BenchmarkHTTPS(b *testing.B) {
	a, err := Start(b.Context(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	c := clientOf(b, a, false)
	do := func(ctx context.Context, method, path, body string, want ...int) {
		r, err := http.NewRequestWithContext(ctx, method, a.Info().ARM+"/subscriptions/"+a.Info().Subscription+path,
			strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+a.Info().Token)
		resp, err := c.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		var sink [4096]byte
		for err == nil {
			_, err = resp.Body.Read(sink[:])
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want[0] && resp.StatusCode != want[len(want)-1] {
			b.Fatalf("%s %s: %s", method, path, resp.Status)
		}
	}
	const network = "/resourceGroups/rg/providers/Microsoft.Network/routeTables/"
	do(b.Context(), http.MethodPut, "/resourceGroups/rg?api-version=2021-04-01", `{"location":"westeurope"}`, 201)
	do(b.Context(), http.MethodPut, network+"rt?api-version=2025-05-01", `{"location":"westeurope"}`, 201)
	b.Run("GET", func(b *testing.B) {
		b.SetParallelism(8)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				do(b.Context(), http.MethodGet, network+"rt?api-version=2025-05-01", "", 200)
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	})
	b.Run("PUT", func(b *testing.B) {
		var n atomic.Int64
		b.SetParallelism(8)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				do(b.Context(), http.MethodPut, fmt.Sprintf("%srt%d?api-version=2025-05-01", network, n.Add(1)%1000),
					`{"location":"westeurope","tags":{"a":"b"}}`, 200, 201)
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	})
}
