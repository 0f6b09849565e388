package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"

	"kaz/cmd/internal/access"
	"kaz/internal/cloudconfig"
	"kaz/internal/cloudprovider"
)

// atStart is the timeout of the Azure requests before the node manager starts.
const atStart = time.Minute

// openCloud opens the cloud that azure.json describes. Machines are found in the same way as in the
// cloud-controller-manager.
func openCloud(ctx context.Context, path string, lookup func(string) (string, bool)) (*cloudprovider.Cloud, error) {
	c, warnings, err := cloudconfig.Read(cloudconfig.Sources{Path: path, Environment: lookup})
	for _, w := range warnings {
		slog.Warn("cloud configuration", "file", path, "key", w.Key, "message", w.Message)
	}
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("cloud configuration %s: %w", path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, atStart)
	defer cancel()
	environment, err := access.DescribeCloud(ctx, nil, c)
	if err != nil {
		return nil, err
	}
	// The node manager reads rarely and only about its own node, so cached reads need not outlive one
	// round.
	client, err := access.OpenClient(c, environment, access.ClientOptions{
		TTL: map[string]time.Duration{"": time.Minute}, Registerer: legacyregistry.Registerer(),
	})
	if err != nil {
		return nil, err
	}
	return cloudprovider.New(cloudprovider.Config{Subscription: c.SubscriptionID, ResourceGroup: c.ResourceGroup, Location: c.Location},
		client), nil
}
