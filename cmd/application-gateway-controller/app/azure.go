package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudconfig"
	"kaz/internal/component"
	"kaz/internal/component/access"
	"kaz/internal/component/election"
	"kaz/internal/component/release"
)

// readConfig reads the cloud configuration. Without a file, the identity of the pod and the subscription of the gateway make one.
func (o *settings) readConfig(lookup func(string) (string, bool), log *slog.Logger) (cloudconfig.Config, error) {
	file, err := os.ReadFile(o.cloudConfig)
	if errors.Is(err, fs.ErrNotExist) && o.subscription() != "" {
		text, err := json.Marshal(o.ofPod(lookup))
		if err != nil {
			return cloudconfig.Config{}, err
		}
		c, warnings, err := cloudconfig.Merge(text, nil)
		component.LogWarnings(log, "the environment", warnings)
		if err == nil {
			err = withoutLocation(c.Validate())
		}
		return c, err
	}
	if err != nil {
		return cloudconfig.Config{}, fmt.Errorf("--cloud-config: %w; name the azure.json of the cluster, or use --gateway-id", err)
	}
	c, warnings, err := cloudconfig.Merge(file, nil)
	return component.CheckCloudConfig(log, o.cloudConfig, c, warnings, err)
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

// subscription returns the subscription that the flags name, "" for none.
func (o *settings) subscription() string {
	if o.gatewayID != "" {
		return azure.ID(o.gatewayID).Subscription()
	}
	return o.gatewaySubscription
}

// ofPod returns the keys of a cloud configuration with the identity of the pod: a workload identity if it has a token, or else a
// managed one.
func (o *settings) ofPod(lookup func(string) (string, bool)) map[string]any {
	value := func(name string) string { v, _ := lookup(name); return v }
	group := o.gatewayGroup
	if o.gatewayID != "" {
		group = azure.ID(o.gatewayID).Group()
	}
	keys := map[string]any{"subscriptionId": o.subscription(), "resourceGroup": group, "tenantId": value("AZURE_TENANT_ID")}
	if cloud := value("AZURE_ENVIRONMENT"); cloud != "" {
		keys["cloud"] = cloud
	}
	if token := value("AZURE_FEDERATED_TOKEN_FILE"); token != "" {
		keys["useFederatedWorkloadIdentityExtension"], keys["aadFederatedTokenFile"] = true, token
		keys["aadClientId"] = value("AZURE_CLIENT_ID")
	} else {
		keys["useManagedIdentityExtension"], keys["userAssignedIdentityID"] = true, value("AZURE_CLIENT_ID")
	}
	return keys
}

// id returns the id of the gateway.
func (o *settings) id(c cloudconfig.Config) azure.ID {
	if o.gatewayID != "" {
		return azure.ID(o.gatewayID)
	}
	subscription, group := o.gatewaySubscription, o.gatewayGroup
	if subscription == "" {
		subscription = c.SubscriptionID
	}
	if group == "" {
		group = c.ResourceGroup
	}
	return azure.GroupID(subscription, group).Resource(network.ApplicationGateways, o.gateway)
}

// applications returns the ids of all application gateways, that of Ingresses first.
func (o *settings) applications(c cloudconfig.Config) []azure.ID { return o.applicationsAfter(o.id(c)) }

// applicationsAfter returns the ids of all application gateways, the given one first.
func (o *settings) applicationsAfter(first azure.ID) []azure.ID {
	all := []azure.ID{first}
	for _, text := range o.further {
		if id := azure.ID(text); !slices.ContainsFunc(all, id.Equal) {
			all = append(all, id)
		}
	}
	return all
}

// open opens Azure as the cloud configuration describes it. The controller reads past the cache.
func open(ctx context.Context, config cloudconfig.Config, registry prometheus.Registerer) (*access.Clients, error) {
	config.UserAgent = name + "/" + release.Version()
	client, _, err := access.Open(ctx, config, access.ClientOptions{
		TTL: map[string]time.Duration{"": 0}, Registerer: registry, Finish: election.StopGrace,
	})
	return client, err
}
