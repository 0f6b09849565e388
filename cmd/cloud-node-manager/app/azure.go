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

// atStart bounds what is asked of Azure before the node is looked after.
const atStart = time.Minute

// openCloud opens the cloud that azure.json describes. Machines are looked for as
// the cloud-controller-manager does.
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
	// One node asks rarely and about itself: nothing that it read is worth keeping
	// beyond one look.
	door, err := access.OpenDoor(c, environment, access.DoorOptions{
		TTL: map[string]time.Duration{"": time.Minute}, Registerer: legacyregistry.Registerer(),
	})
	if err != nil {
		return nil, err
	}
	return cloudprovider.New(cloudprovider.Config{Subscription: c.SubscriptionID, ResourceGroup: c.ResourceGroup, Location: c.Location}, door), nil
}
