package app

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"

	"kaz/internal/cloudconfig"
	"kaz/internal/cloudprovider"
	"kaz/internal/component"
	"kaz/internal/component/access"
)

// atStart is the timeout of the Azure requests before the node manager starts.
const atStart = time.Minute

// openCloud opens the cloud that azure.json describes. Machines are found in the same way as in the
// cloud-controller-manager.
func openCloud(ctx context.Context, path string, lookup func(string) (string, bool)) (*cloudprovider.Cloud, error) {
	c, err := component.CloudConfig(slog.Default(), path, cloudconfig.Sources{Path: path, Environment: lookup})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, atStart)
	defer cancel()
	// The node manager reads rarely and only about its own node, so cached reads need not outlive one
	// round.
	client, _, err := access.Open(ctx, c, access.ClientOptions{
		TTL: map[string]time.Duration{"": time.Minute}, Registerer: legacyregistry.Registerer(),
	})
	if err != nil {
		return nil, err
	}
	return cloudprovider.New(cloudprovider.Config{Subscription: c.SubscriptionID, ResourceGroup: c.ResourceGroup, Location: c.Location},
		client), nil
}
