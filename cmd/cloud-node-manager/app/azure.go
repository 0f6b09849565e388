package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/version"

	"kaz/internal/arm"
	"kaz/internal/arm/cache"
	"kaz/internal/cloudconfig"
	"kaz/internal/cloudprovider"
	"kaz/internal/credential"
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
	environment, err := describeCloud(ctx, c)
	if err != nil {
		return nil, err
	}
	door, err := openDoor(c, environment)
	if err != nil {
		return nil, err
	}
	return cloudprovider.New(cloudprovider.Config{Subscription: c.SubscriptionID, ResourceGroup: c.ResourceGroup, Location: c.Location}, door), nil
}

// describeCloud asks the Resource Manager about its cloud where the configuration
// names one of its own.
func describeCloud(ctx context.Context, c cloudconfig.Config) (cloudconfig.Environment, error) {
	var metadata, file []byte
	var err error
	if url := c.MetadataURL(); url != "" {
		if metadata, err = arm.Discover(ctx, nil, url); err != nil {
			return cloudconfig.Environment{}, err
		}
	}
	if c.EnvironmentFile != "" {
		if file, err = os.ReadFile(c.EnvironmentFile); err != nil {
			return cloudconfig.Environment{}, fmt.Errorf("AZURE_ENVIRONMENT_FILEPATH: %w", err)
		}
	}
	return c.Environment(metadata, file)
}

func openDoor(c cloudconfig.Config, e cloudconfig.Environment) (*cache.Cache, error) {
	who, err := credential.New(credential.Config{
		TenantID: c.TenantID, ClientID: c.AADClientID,
		WorkloadIdentity: c.UseFederatedWorkloadIdentityExtension, FederatedTokenFile: c.AADFederatedTokenFile,
		ManagedIdentity: c.UseManagedIdentityExtension, ManagedIdentityID: c.UserAssignedIdentityID,
		ClientSecret:    credential.Secret(c.AADClientSecret.Reveal()),
		CertificatePath: c.AADClientCertPath, CertificatePassword: credential.Secret(c.AADClientCertPassword.Reveal()),
		DataPlaneIdentityPath: c.AADMSIDataPlaneIdentityPath,
		Authority:             e.Authority, Endpoint: e.ResourceManager, Scope: e.Scope(),
	})
	if err != nil {
		return nil, err
	}
	if who.Kind == credential.None {
		return nil, errors.New("azure.json names no identity: want one of workload identity, useManagedIdentityExtension, aadClientSecret, aadClientCertPath")
	}
	o := arm.Config{
		Endpoint: e.ResourceManager, Scope: e.Scope(), Credential: who.Compute, UserAgent: c.UserAgent,
		Registerer: legacyregistry.Registerer(),
	}
	if o.UserAgent == "" {
		o.UserAgent = "kubernetes-cloudprovider/" + version.Get().GitVersion
	}
	switch {
	case c.Stack():
		o.APIVersions = arm.StackVersions()
	case c.Cloud == cloudconfig.ChinaCloud:
		o.APIVersions = arm.ChinaVersions()
	}
	door, err := arm.New(o)
	if err != nil {
		return nil, err
	}
	// One node asks rarely and about itself: nothing that it read is worth keeping
	// beyond one look.
	return cache.Over(door, cache.Options{TTL: map[string]time.Duration{"": time.Minute}, Registerer: legacyregistry.Registerer()})
}
