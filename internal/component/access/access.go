// Package access opens Azure for a cloud configuration: it resolves the cloud and the identity and
// makes the ARM clients. The programs share it. Layer L4.
package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/arm"
	"kaz/internal/arm/budget"
	"kaz/internal/arm/cache"
	"kaz/internal/arm/types"
	"kaz/internal/cloudconfig"
	"kaz/internal/component/release"
	"kaz/internal/credential"
)

// DescribeCloud returns the endpoints of the configured cloud. For a custom cloud it asks the
// Resource Manager. A nil transport is the ARM client's.
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

// Identity returns the credentials of a configuration. Their kind is None if it names no identity. A
// nil transport is azidentity's.
func Identity(c cloudconfig.Config, e cloudconfig.Environment, transport policy.Transporter) (credential.Credentials, error) {
	identity := credential.Config{
		TenantID: c.TenantID, ClientID: c.AADClientID,
		WorkloadIdentity: c.UseFederatedWorkloadIdentityExtension, FederatedTokenFile: c.AADFederatedTokenFile,
		ManagedIdentity: c.UseManagedIdentityExtension, ManagedIdentityID: c.UserAssignedIdentityID,
		ClientSecret:    c.AADClientSecret,
		CertificatePath: c.AADClientCertPath, CertificatePassword: c.AADClientCertPassword,
		DataPlaneIdentityPath: c.AADMSIDataPlaneIdentityPath,
		NetworkTenantID:       c.NetworkResourceTenantID,
		Authority:             e.Authority, Endpoint: e.ResourceManager, Scope: e.Scope(),
		Transport: transport,
	}
	if p := c.AuxiliaryTokenProvider; p != nil {
		identity.NetworkToken = &credential.VaultSecret{
			SubscriptionID: p.SubscriptionID, ResourceGroup: p.ResourceGroup, VaultName: p.VaultName, SecretName: p.SecretName,
		}
	}
	return credential.New(identity)
}

// ClientOptions are the options that differ between programs.
type ClientOptions struct {
	TTL        map[string]time.Duration // lifetime of cached reads, by resource type
	Registerer prometheus.Registerer
	// Transport sends all requests, including those for tokens; nil is the ARM client's default.
	Transport policy.Transporter
	// ThrottleWait bounds the time that a request waits because Azure throttles; 0 is the ARM client's default.
	ThrottleWait time.Duration
	// Finish is how long writes continue after their callers gave up.
	Finish time.Duration
	// Observe is called with each answer of Azure Resource Manager, before its body is read; nil is for none.
	Observe func(*http.Response)
}

// observed calls observe with each answer.
type observed struct {
	policy.Transporter

	observe func(*http.Response)
}

func (o observed) Do(r *http.Request) (*http.Response, error) {
	answer, err := o.Transporter.Do(r)
	if err == nil {
		o.observe(answer)
	}
	return answer, err
}

// transport returns the transport of the ARM client, nil for its default.
func (o ClientOptions) transport() policy.Transporter {
	if o.Observe == nil {
		return o.Transport
	}
	next := o.Transport
	if next == nil {
		next = arm.NewTransport()
	}
	return observed{next, o.Observe}
}

// Open opens the Azure of a configuration. It also returns the endpoints of that Azure.
func Open(ctx context.Context, c cloudconfig.Config, o ClientOptions) (*Clients, cloudconfig.Environment, error) {
	environment, err := DescribeCloud(ctx, o.Transport, c)
	if err != nil {
		return nil, environment, err
	}
	client, err := OpenClient(c, environment, o)
	return client, environment, err
}

// OpenClient opens Azure with the identity of the configuration. If the network is in another tenant,
// it opens two ARM clients, each with its own cache.
func OpenClient(c cloudconfig.Config, e cloudconfig.Environment, o ClientOptions) (*Clients, error) {
	identity, err := Identity(c, e, o.Transport)
	if err != nil {
		return nil, err
	}
	if identity.Kind == credential.None {
		return nil, errors.New(
			"azure.json names no identity: want one of workload identity, useManagedIdentityExtension, aadClientSecret, aadClientCertPath")
	}
	options := armConfig(c, e, o)
	options.Credential, options.Auxiliary = identity.Compute, identity.Auxiliary
	d := &Clients{identity: identity, scope: e.Scope()}
	if d.Azure, err = openOne(options, o); err != nil {
		return nil, err
	}
	if identity.Auxiliary == nil {
		return d, nil
	}
	options.Credential, options.Auxiliary = identity.Network, nil
	d.subscription = c.NetworkResourceSubscriptionID
	d.network, err = openOne(options, o)
	return d, err
}

func openOne(c arm.Config, o ClientOptions) (*cache.Cache, error) {
	client, err := arm.New(c)
	if err != nil {
		return nil, err
	}
	return cache.Over(client, cache.Options{TTL: o.TTL, Registerer: o.Registerer})
}

// armConfig returns an ARM client's configuration without credentials. All clients share its budget.
func armConfig(c cloudconfig.Config, e cloudconfig.Environment, o ClientOptions) arm.Config {
	options := arm.Config{
		Endpoint: e.ResourceManager, Regional: regional(c, e), Scope: e.Scope(), UserAgent: c.UserAgent,
		Transport: o.transport(), Finish: o.Finish, ThrottleWait: o.ThrottleWait,
		Budget:      budget.New(budget.Config{LimitOf: limitOf(c), AtOnce: c.PutVMSSVMBatchSize}),
		APIVersions: versions(c), Registerer: o.Registerer, MinimumRetryAfter: c.EnableMinimumRetryAfter,
	}
	if options.UserAgent == "" {
		options.UserAgent = "kubernetes-cloudprovider/" + release.Version()
	}
	if c.CloudProviderBackoff {
		// The key counts all attempts, the ARM client only retries. In the ARM client, 0 means the
		// default.
		options.Retries, options.RetryDelay = c.CloudProviderBackoffRetries-1, c.CloudProviderBackoffDuration
		if options.Retries <= 0 {
			options.Retries = -1
		}
		options.RetryFactor, options.RetryJitter = c.CloudProviderBackoffExponent, c.CloudProviderBackoffJitter
	}
	return options
}

// regional returns the endpoint of the configured region, "" where none is known. Public Azure has
// one for each region.
func regional(c cloudconfig.Config, e cloudconfig.Environment) string {
	const public = "https://management.azure.com"
	region := strings.ToLower(strings.ReplaceAll(c.Location, " ", ""))
	if e.ResourceManager != public || region == "" {
		return ""
	}
	return strings.Replace(public, "://", "://"+region+".", 1)
}

// limitOf returns the configured request limits, by resource type.
func limitOf(c cloudconfig.Config) func(string) (budget.Limit, bool) {
	limits := c.RateLimits()
	return func(fullType string) (budget.Limit, bool) {
		l, ok := limits.For(fullType)
		return budget.Limit{
			Name:  l.Key,
			Read:  budget.Rate{PerSecond: l.Read.QPS, Burst: l.Read.Bucket},
			Write: budget.Rate{PerSecond: l.Write.QPS, Burst: l.Write.Bucket},
		}, ok
	}
}

func versions(c cloudconfig.Config) map[string]string {
	switch {
	case c.Stack():
		return types.StackVersions()
	case c.Cloud == cloudconfig.ChinaCloud:
		return types.ChinaVersions()
	}
	return nil
}
