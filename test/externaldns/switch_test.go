package externaldns_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/pkg/apis/externaldns"
	builtin "sigs.k8s.io/external-dns/provider/azure"
	"sigs.k8s.io/external-dns/registry/txt"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/server"
)

// TestSwitch has the provider azure that is built into ExternalDNS write records, and the webhook take them over; then the way back. Neither
// finds anything to change in what the other one wrote. The built-in provider is a client over TLS, so a server runs.
func TestSwitch(t *testing.T) {
	s, err := server.Start(t.Context(), server.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	info := s.Info()
	t.Setenv("SSL_CERT_FILE", info.CAFile)
	t.Setenv("IDENTITY_ENDPOINT", info.IdentityEndpoint)
	t.Setenv("IDENTITY_HEADER", info.IdentityHeader)
	group := azure.GroupID(info.Subscription, "dns")
	local, err := client.New(info)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	for _, id := range []azure.ID{group, group.Resource(network.DNSZones, "example.com")} {
		if _, err := local.Put(t.Context(), string(id), []byte(`{"location":"`+location(id)+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	// With two tags, the built-in provider finds changes in its own records: their order is another one each time.
	records := []*endpoint.Endpoint{
		endpoint.NewEndpoint("a.example.com", typeA, "1.1.1.1", "1.1.1.2").WithProviderSpecific("azure/tags", "a=1"),
		endpoint.NewEndpointWithTTL("a.example.com", typeAAAA, 60, "2001:db8::1"),
		endpoint.NewEndpoint("c.example.com", endpoint.RecordTypeCNAME, "lb.example.net"),
		endpoint.NewEndpoint("*.w.example.com", typeA, "1.1.1.3"),
	}
	w := &azureZone{t: t}
	old := w.builtin(t, info, "dns")
	old.settle(records...)
	hook := w.startOver(info, group)
	rest(t, "the webhook after the built-in provider", hook, records)
	hook.settle(append(records, endpoint.NewEndpoint("d.example.com", typeA, "1.1.1.4").WithProviderSpecific("azure/tags", "c=3"))...)
	rest(t, "the built-in provider after the webhook", old, hook.want)
	old.settle(records...)
	rest(t, "the webhook after a deletion", w.startOver(info, group), records)
}

// location is where a resource is.
func location(id azure.ID) string {
	if id.Is(network.DNSZones) {
		return "global"
	}
	return "westeurope"
}

// rest checks that an ExternalDNS finds nothing to change.
func rest(t *testing.T, what string, c *cluster, want []*endpoint.Endpoint) {
	t.Helper()
	c.want = want
	if changed, err := c.sync(); changed || err != nil {
		t.Errorf("%s: changes %v, %v", what, changed, err)
	}
}

// builtin returns an ExternalDNS with its own provider for Azure.
func (w *azureZone) builtin(t *testing.T, info client.Info, group string) *cluster {
	t.Helper()
	config := externaldns.NewConfig()
	config.AzureConfigFile = filepath.Join(t.TempDir(), "azure.json")
	text, err := json.Marshal(map[string]any{
		"cloud": "AzureStackCloud", "tenantId": info.Tenant, "subscriptionId": info.Subscription, "resourceGroup": group,
		"useManagedIdentityExtension": true, "activeDirectoryAuthorityHost": info.ARM, "resourceManagerAudience": info.ARM,
		"resourceManagerEndpoint": info.ARM,
	})
	if err == nil {
		err = os.WriteFile(config.AzureConfigFile, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	config.TXTOwnerID, config.TXTWildcardReplacement = "mycluster", "any"
	p, err := builtin.New(t.Context(), config, endpoint.NewDomainFilter([]string{"example.com"}))
	if err != nil {
		t.Fatal(err)
	}
	r, err := txt.New(config, p)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, registry: r}
}
