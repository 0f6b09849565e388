// Package localazure starts a local Azure for a Go test, which ends with the test:
//
//	azure := localazure.Start(t)
//	networks, err := armnetwork.NewVirtualNetworksClient(azure.Subscription, azure.Credential(), azure.ClientOptions())
//
// The clients of the Azure SDK need nothing else, and the same code runs on Azure with other options. It serves at free ports of
// the loopback address, in the process of the test, and knows nothing of other local Azures. Layer L4.
package localazure

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/server"
)

// Options are how a local Azure is to run. The zero value answers without delay, refuses nothing for its rate, and gives all rights to
// [Azure.Credential].
type Options struct {
	// Subscription is the id of the subscription, a GUID, "" for the usual one.
	Subscription string
	// Latency is "off", "azure" for Azure's own, or a factor of it such as "0.1", "" for off. It is real time: with "azure" a load
	// balancer takes seconds.
	Latency string
	// Throttle is "azure" for Azure's limits of rates, "off" or "" for none.
	Throttle string
	// Quotas are limits of vCPUs in each region, as NAME=N: "cores=100", "standardDSv5Family=20".
	Quotas []string
	// Log gets what the local Azure logs, nil for nothing.
	Log *slog.Logger
}

// Fault is a rule for requests that fail: which ones, how often, and in which way. docs/guides/local-azure.md explains its fields.
type Fault = core.Fault

// Azure is a running local Azure.
type Azure struct {
	// Subscription and Tenant are ids.
	Subscription, Tenant string
	// ClientID and ClientSecret are a service principal with all rights, for programs that log in by themselves.
	ClientID, ClientSecret string

	t      testing.TB
	server *server.Server
	http   *http.Client
}

// Start starts a local Azure with the zero [Options].
func Start(t testing.TB) *Azure {
	t.Helper()
	return Options{}.Start(t)
}

// Start starts a local Azure, and stops it at the end of the test.
func (o Options) Start(t testing.TB) *Azure {
	t.Helper()
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s, err := server.Start(t.Context(), server.Options{
		Address: loopback, HTTPAddress: loopback, ProxyAddress: loopback, CAFile: filepath.Join(t.TempDir(), "ca.pem"),
		Subscription: o.Subscription, Latency: o.Latency, Throttle: o.Throttle, Quotas: o.Quotas, Log: log,
	})
	if err != nil {
		t.Fatalf("start a local Azure: %v", err)
	}
	client, err := clientOf(s)
	t.Cleanup(func() {
		if client != nil {
			client.CloseIdleConnections()
		}
		if err := s.Close(); err != nil {
			t.Errorf("stop the local Azure: %v", err)
		}
	})
	if err != nil {
		t.Fatalf("client of the local Azure: %v", err)
	}
	info := s.Info()
	return &Azure{Subscription: info.Subscription, Tenant: info.Tenant, ClientID: info.ClientID, ClientSecret: info.ClientSecret,
		t: t, server: s, http: client}
}

// loopback is any free port of the loopback address.
const loopback = "127.0.0.1:0"

// clientOf returns a client that reaches Azure's public hosts in a local Azure.
func clientOf(s *server.Server) (*http.Client, error) {
	authority, err := os.ReadFile(s.Info().CAFile)
	if err != nil {
		return nil, err
	}
	proxy, err := url.Parse(s.Info().Proxy)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return &http.Client{Transport: &http.Transport{
		Proxy:             http.ProxyURL(proxy),
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		ForceAttemptHTTP2: true,
	}}, nil
}

// HTTPClient returns a client that reaches the hosts of Azure's public cloud in this local Azure: management.azure.com,
// ACCOUNT.blob.core.windows.net, VAULT.vault.azure.net and the like. It refuses all other hosts. It is the Transport of SDK clients.
func (a *Azure) HTTPClient() *http.Client { return a.http }

// ClientOptions returns the options of the SDK's clients of Azure Resource Manager. Pollers and retries wait 10 ms, where those of Azure
// wait seconds.
func (a *Azure) ClientOptions() *arm.ClientOptions {
	return &arm.ClientOptions{
		ClientOptions: policy.ClientOptions{
			Transport:        a.http,
			Retry:            policy.RetryOptions{RetryDelay: pause, MaxRetryDelay: time.Second},
			PerRetryPolicies: []policy.Policy{soon{}},
		},
		DisableRPRegistration: true,
	}
}

// pause is the time between polls and between retries.
const pause = 10 * time.Millisecond

// soon tells pollers to ask again soon, because they wait 30 s where an answer does not say how long.
type soon struct{}

// Do implements policy.Policy.
func (soon) Do(r *policy.Request) (*http.Response, error) {
	resp, err := r.Next()
	if err == nil && resp.StatusCode < 300 {
		resp.Header.Del("Retry-After")
		resp.Header.Set("Retry-After-Ms", strconv.FormatInt(pause.Milliseconds(), 10))
	}
	return resp, err
}

// Credential returns a credential with all rights. Clients that are to log in themselves use [Azure.ClientID] and [Azure.ClientSecret].
func (a *Azure) Credential() azcore.TokenCredential { return a.server.Credential() }

// Inject adds a rule for requests that fail. A rule without sense ends the test.
func (a *Azure) Inject(rule Fault) {
	a.t.Helper()
	if _, err := a.server.Emulator().Faults.Add(rule); err != nil {
		a.t.Fatalf("add a fault: %v", err)
	}
}

// ClearFaults removes the rules of [Azure.Inject].
func (a *Azure) ClearFaults() {
	a.t.Helper()
	if err := a.server.Emulator().SetFaults(nil); err != nil {
		a.t.Fatalf("remove faults: %v", err)
	}
}
