// Package access leads from a cloud configuration to Azure: which cloud it is, who
// we are there, and the door. The programs share it. Layer L4.
package access

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/prometheus/client_golang/prometheus"

	"kaz/cmd/internal/release"
	"kaz/internal/arm"
	"kaz/internal/arm/cache"
	"kaz/internal/cloudconfig"
	"kaz/internal/credential"
)

// DescribeCloud asks the Resource Manager about its cloud where the configuration
// names one of its own. A nil transport is the door's.
func DescribeCloud(ctx context.Context, transport policy.Transporter, c cloudconfig.Config) (cloudconfig.Environment, error) {
	var metadata, file []byte
	var err error
	if url := c.MetadataURL(); url != "" {
		if metadata, err = arm.Discover(ctx, transport, url); err != nil {
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

// Identity is what a configuration says of who we are. Its kind is None when it
// names nobody. A nil transport is the identity library's.
func Identity(c cloudconfig.Config, e cloudconfig.Environment, transport policy.Transporter) (credential.Credentials, error) {
	who := credential.Config{
		TenantID: c.TenantID, ClientID: c.AADClientID,
		WorkloadIdentity: c.UseFederatedWorkloadIdentityExtension, FederatedTokenFile: c.AADFederatedTokenFile,
		ManagedIdentity: c.UseManagedIdentityExtension, ManagedIdentityID: c.UserAssignedIdentityID,
		ClientSecret:    credential.Secret(c.AADClientSecret.Reveal()),
		CertificatePath: c.AADClientCertPath, CertificatePassword: credential.Secret(c.AADClientCertPassword.Reveal()),
		DataPlaneIdentityPath: c.AADMSIDataPlaneIdentityPath,
		NetworkTenantID:       c.NetworkResourceTenantID,
		Authority:             e.Authority, Endpoint: e.ResourceManager, Scope: e.Scope(),
		Transport: transport,
	}
	if p := c.AuxiliaryTokenProvider; p != nil {
		who.NetworkToken = &credential.VaultSecret{
			SubscriptionID: p.SubscriptionID, ResourceGroup: p.ResourceGroup, VaultName: p.VaultName, SecretName: p.SecretName,
		}
	}
	return credential.New(who)
}

// DoorOptions are what differs between programs.
type DoorOptions struct {
	TTL        map[string]time.Duration // of what was read, by type
	Registerer prometheus.Registerer
	// Transport carries the requests, those for tokens too; nil is the usual way.
	Transport policy.Transporter
	// Finish is for how long writes that were sent go on when their callers give up.
	Finish time.Duration
}

// OpenDoor opens the way to Azure as who the configuration names. Where the network is
// in another tenant it is two doors, each with a cache over it.
func OpenDoor(c cloudconfig.Config, e cloudconfig.Environment, o DoorOptions) (*Doors, error) {
	who, err := Identity(c, e, o.Transport)
	if err != nil {
		return nil, err
	}
	if who.Kind == credential.None {
		return nil, errors.New("azure.json names no identity: want one of workload identity, useManagedIdentityExtension, aadClientSecret, aadClientCertPath")
	}
	options := armConfig(c, e, o)
	options.Credential, options.Auxiliary = who.Compute, who.Auxiliary
	d := &Doors{who: who, scope: e.Scope()}
	if d.Azure, err = openOne(options, o); err != nil {
		return nil, err
	}
	if who.Auxiliary == nil {
		return d, nil
	}
	options.Credential, options.Auxiliary = who.Network, nil
	d.subscription = c.NetworkResourceSubscriptionID
	d.network, err = openOne(options, o)
	return d, err
}

func openOne(c arm.Config, o DoorOptions) (*cache.Cache, error) {
	door, err := arm.New(c)
	if err != nil {
		return nil, err
	}
	return cache.Over(door, cache.Options{TTL: o.TTL, Registerer: o.Registerer})
}

// armConfig is all of a door but who goes through it. Its budget is that of all doors.
func armConfig(c cloudconfig.Config, e cloudconfig.Environment, o DoorOptions) arm.Config {
	options := arm.Config{
		Endpoint: e.ResourceManager, Scope: e.Scope(), UserAgent: c.UserAgent, Transport: o.Transport, Finish: o.Finish,
		Budget:      arm.NewBudget(arm.BudgetConfig{LimitOf: limitOf(c)}),
		APIVersions: versions(c), Registerer: o.Registerer, MinimumRetryAfter: c.EnableMinimumRetryAfter,
	}
	if options.UserAgent == "" {
		options.UserAgent = "kubernetes-cloudprovider/" + release.Version()
	}
	if c.CloudProviderBackoff {
		// The key counts tries in all, the door further ones; for it 0 is no opinion.
		options.Retries, options.RetryDelay = c.CloudProviderBackoffRetries-1, c.CloudProviderBackoffDuration
		if options.Retries <= 0 {
			options.Retries = -1
		}
		options.RetryFactor, options.RetryJitter = c.CloudProviderBackoffExponent, c.CloudProviderBackoffJitter
	}
	return options
}

// limitOf are the request limits that users set, by type.
func limitOf(c cloudconfig.Config) func(string) (arm.Limit, bool) {
	limits := c.RateLimits()
	return func(fullType string) (arm.Limit, bool) {
		l, ok := limits.For(fullType)
		return arm.Limit{
			Name:  l.Key,
			Read:  arm.Rate{PerSecond: l.Read.QPS, Burst: l.Read.Bucket},
			Write: arm.Rate{PerSecond: l.Write.QPS, Burst: l.Write.Bucket},
		}, ok
	}
}

func versions(c cloudconfig.Config) map[string]string {
	switch {
	case c.Stack():
		return arm.StackVersions()
	case c.Cloud == cloudconfig.ChinaCloud:
		return arm.ChinaVersions()
	}
	return nil
}
