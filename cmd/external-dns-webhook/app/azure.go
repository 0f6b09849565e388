package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/cloudconfig"
	"kaz/internal/component"
	"kaz/internal/component/access"
	"kaz/internal/component/release"
	"kaz/internal/dns"
)

// readConfig reads the azure.json that users of ExternalDNS have.
func (o *settings) readConfig(lookup func(string) (string, bool), log *slog.Logger) (cloudconfig.Config, error) {
	file, err := os.ReadFile(o.cloudConfig)
	if err != nil {
		return cloudconfig.Config{}, fmt.Errorf("--cloud-config: %w", err)
	}
	keys := map[string]any{}
	if err := json.Unmarshal(file, &keys); err != nil {
		return cloudconfig.Config{}, fmt.Errorf("--cloud-config %s: must be a JSON object: %w", o.cloudConfig, err)
	}
	o.translate(keys, lookup)
	text, err := json.Marshal(keys)
	if err != nil {
		return cloudconfig.Config{}, err
	}
	c, warnings, err := cloudconfig.Merge(text, nil)
	component.LogWarnings(log, o.cloudConfig, warnings)
	if err == nil {
		err = withoutLocation(c.Validate())
	}
	if err != nil {
		return c, fmt.Errorf("cloud configuration %s: %w", o.cloudConfig, err)
	}
	return c, nil
}

// translate changes keys that ExternalDNS reads otherwise than Kubernetes' components. It takes a service principal before a workload
// identity before a managed identity, and has a key of its own for workload identity.
func (o *settings) translate(keys map[string]any, lookup func(string) (string, bool)) {
	key := func(name string) string {
		for k := range keys {
			if strings.EqualFold(k, name) {
				return k
			}
		}
		return name
	}
	text := func(name string) string { s, _ := keys[key(name)].(string); return s }
	is := func(name string) bool { b, _ := keys[key(name)].(bool); return b }
	drop := func(names ...string) {
		for _, name := range names {
			delete(keys, key(name))
		}
	}
	fill := func(name, variable string) {
		if value, _ := lookup(variable); text(name) == "" && value != "" {
			keys[key(name)] = value
		}
	}
	if o.identity != "" {
		keys[key("userAssignedIdentityID")] = o.identity
	}
	id, secret := text("aadClientId"), text("aadClientSecret")
	// Clusters with a managed identity have "msi" in both keys.
	principal := id != "" && secret != "" && !strings.EqualFold(id, "msi") && !strings.EqualFold(secret, "msi")
	workload := is("useWorkloadIdentityExtension") || is("useFederatedWorkloadIdentityExtension")
	drop("useWorkloadIdentityExtension")
	switch {
	case principal:
		drop("useFederatedWorkloadIdentityExtension", "useManagedIdentityExtension")
	case workload:
		drop("useManagedIdentityExtension", "aadClientSecret")
		keys[key("useFederatedWorkloadIdentityExtension")] = true
		fill("aadClientId", "AZURE_CLIENT_ID")
		fill("tenantId", "AZURE_TENANT_ID")
		fill("aadFederatedTokenFile", "AZURE_FEDERATED_TOKEN_FILE")
	case is("useManagedIdentityExtension"):
		drop("aadClientId", "aadClientSecret")
	}
}

// withoutLocation leaves out the problem that the region of the cluster is not known. No request of this program needs it.
func withoutLocation(err error) error {
	problems, ok := errors.AsType[cloudconfig.Problems](err)
	if !ok {
		return err
	}
	problems = slices.DeleteFunc(slices.Clone(problems), func(p cloudconfig.Problem) bool { return p.Key == "location" && p.Value == "" })
	if len(problems) == 0 {
		return nil
	}
	return problems
}

// open opens Azure as the cloud configuration describes it. The provider reads past the cache.
func (o *settings) open(ctx context.Context, config cloudconfig.Config, registry prometheus.Registerer) (*access.Clients, error) {
	config.UserAgent = name + "/" + release.Version()
	client, _, err := access.Open(ctx, config, access.ClientOptions{
		TTL: map[string]time.Duration{"": 0}, Registerer: registry, ThrottleWait: dns.ThrottleWait, Finish: o.deadline,
	})
	return client, err
}
