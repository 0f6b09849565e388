package cloudconfig

import (
	"strings"
	"time"

	"kaz/internal/azure/secret"
)

// Config is the content of azure.json. A Config from [Default], [Parse], [Merge], [Load] or [Read] is
// complete: missing keys have their defaults, and values of enumerations are spelled like their
// constants.
type Config struct {
	ARM
	Auth
	Cluster
	LoadBalancing
	Caching
	Backoff
	RateLimit RateLimit
	// ClientRateLimits has the rate limit objects of single clients by the names of their keys, such
	// as routeTableRateLimit. [Config.RateLimits] interprets them.
	ClientRateLimits map[string]RateLimit
	// EnvironmentFile is the path in AZURE_ENVIRONMENT_FILEPATH, which describes an Azure Stack. It
	// is not a key of the file.
	EnvironmentFile string
}

// ARM has the keys of the cloud and the subscriptions.
type ARM struct {
	Cloud                         string
	ResourceManagerEndpoint       string
	UserAgent                     string
	TenantID                      string
	SubscriptionID                string
	NetworkResourceTenantID       string
	NetworkResourceSubscriptionID string
	DisableAzureStackCloud        bool
}

// Auth has the keys of the identity.
type Auth struct {
	AADClientID                           string
	AADClientSecret                       secret.Text
	AADClientCertPath                     string
	AADClientCertPassword                 secret.Text
	UseManagedIdentityExtension           bool
	UserAssignedIdentityID                string
	UseFederatedWorkloadIdentityExtension bool
	AADFederatedTokenFile                 string
	AADMSIDataPlaneIdentityPath           string
	AuxiliaryTokenProvider                *AuxiliaryTokenProvider
}

// AuxiliaryTokenProvider names the Key Vault secret with a token for the tenant of the network
// resources.
type AuxiliaryTokenProvider struct {
	SubscriptionID, ResourceGroup, VaultName, SecretName string
}

// CloudConfigType says whether the file, the Secret or both are read.
type CloudConfigType string

// The values of cloudConfigType.
const (
	ConfigFile   CloudConfigType = "file"
	ConfigSecret CloudConfigType = "secret"
	ConfigMerge  CloudConfigType = "merge"
)

// VMType is the kind of the nodes' machines, if it is not known otherwise.
type VMType string

// The values of vmType.
const (
	VMTypeScaleSet         VMType = "vmss"
	VMTypeStandard         VMType = "standard"
	VMTypeFlexibleScaleSet VMType = "vmssflex"
)

// Cluster has the keys of the cluster's own resources.
type Cluster struct {
	CloudConfigType                 CloudConfigType
	ResourceGroup                   string // always in lower case
	Location                        string
	ExtendedLocationName            string
	ExtendedLocationType            string
	VnetName                        string
	VnetResourceGroup               string
	SubnetName                      string
	SecurityGroupName               string
	SecurityGroupResourceGroup      string
	RouteTableName                  string
	RouteTableResourceGroup         string
	PrimaryAvailabilitySetName      string
	PrimaryScaleSetName             string
	VMType                          VMType
	DisableAvailabilitySetNodes     bool
	EnableVmssFlexNodes             bool
	UseInstanceMetadata             bool
	Tags                            string // as written; see ResourceTags
	TagsMap                         map[string]string
	SystemTags                      string // as written; see SystemTagPrefixes
	PutVMSSVMBatchSize              int
	RouteUpdateInterval             time.Duration
	RouteUpdateWaiting              time.Duration
	NodeInstanceNotFoundGracePeriod time.Duration
	DisableCloudProvider            bool
}

// LoadBalancerSKU is the SKU of load balancers and public IPs.
type LoadBalancerSKU string

// The values of loadBalancerSku.
const (
	SKUBasic    LoadBalancerSKU = "basic"
	SKUStandard LoadBalancerSKU = "standard"
	SKUService  LoadBalancerSKU = "service"
)

// BackendPoolType says how backend pools refer to nodes.
type BackendPoolType string

// The values of loadBalancerBackendPoolConfigurationType.
const (
	PoolNodeIPConfiguration BackendPoolType = "nodeIPConfiguration"
	PoolNodeIP              BackendPoolType = "nodeIP"
	PoolPodIP               BackendPoolType = "podIP"
)

// PreConfigured says which load balancers have backend pools that kaz does not fill.
type PreConfigured string

// The values of preConfiguredBackendPoolLoadBalancerTypes.
const (
	PreConfiguredNone     PreConfigured = ""
	PreConfiguredInternal PreConfigured = "internal"
	PreConfiguredExternal PreConfigured = "external"
	PreConfiguredAll      PreConfigured = "all"
)

// ProbeMode says how Services with traffic policy Cluster are probed.
type ProbeMode string

// The values of clusterServiceLoadBalancerHealthProbeMode.
const (
	ProbeServiceNodePort ProbeMode = "servicenodeport"
	ProbeShared          ProbeMode = "shared"
)

// LoadBalancing has the keys of load balancers.
type LoadBalancing struct {
	LoadBalancerSKU                            LoadBalancerSKU
	LoadBalancerName                           string
	LoadBalancerResourceGroup                  string
	PreConfiguredBackendPoolLoadBalancerTypes  PreConfigured
	ExcludeMasterFromStandardLB                bool
	DisableOutboundSNAT                        bool
	MaximumLoadBalancerRuleCount               int
	LoadBalancerBackendPoolConfigurationType   BackendPoolType
	PrivateLinkServiceResourceGroup            string
	EnableMigrateToIPBasedBackendPoolAPI       bool
	EnableIPTagMutationForExistingPublicIP     bool
	MultipleStandardLoadBalancerConfigurations []LoadBalancer
	LoadBalancerBackendPoolUpdateInterval      time.Duration
	ClusterServiceLoadBalancerHealthProbeMode  ProbeMode
	ClusterServiceSharedLoadBalancerProbePort  int
	ClusterServiceSharedLoadBalancerProbePath  string
	ServiceGatewayEnabled                      bool
}

// LoadBalancer is one load balancer of several.
type LoadBalancer struct {
	Name                     string
	PrimaryVMSet             string
	AllowServicePlacement    bool
	ServiceLabelSelector     *LabelSelector
	ServiceNamespaceSelector *LabelSelector
	NodeSelector             *LabelSelector
}

// LabelSelector has the fields of Kubernetes' LabelSelector.
type LabelSelector struct {
	MatchLabels      map[string]string
	MatchExpressions []LabelRequirement
}

// LabelRequirement is one expression of a LabelSelector.
type LabelRequirement struct {
	Key      string
	Operator string // In, NotIn, Exists, DoesNotExist
	Values   []string
}

// Caching has the lifetimes of cached reads.
type Caching struct {
	DisableAPICallCache         bool
	NonVmssUniformNodesCacheTTL time.Duration
	VMSSCacheTTL                time.Duration
	VMSSVirtualMachinesCacheTTL time.Duration
	VMSSFlexCacheTTL            time.Duration
	VMSSFlexVMCacheTTL          time.Duration
	VMCacheTTL                  time.Duration
	AvailabilitySetsCacheTTL    time.Duration
	LoadBalancerCacheTTL        time.Duration
	NSGCacheTTL                 time.Duration
	RouteTableCacheTTL          time.Duration
	PLSCacheTTL                 time.Duration
	PublicIPCacheTTL            time.Duration
}

// Backoff has the keys of retries.
type Backoff struct {
	CloudProviderBackoff         bool
	CloudProviderBackoffRetries  int // attempts in all; 1 without backoff
	CloudProviderBackoffExponent float64
	CloudProviderBackoffDuration time.Duration
	CloudProviderBackoffJitter   float64
	EnableMinimumRetryAfter      bool
}

// MultiTenant reports whether the network resources are in another tenant.
func (c Config) MultiTenant() bool {
	return c.NetworkResourceTenantID != "" && !strings.EqualFold(c.NetworkResourceTenantID, c.TenantID)
}

// NetworkTenantID returns the tenant of the network resources.
func (c Config) NetworkTenantID() string {
	if c.MultiTenant() {
		return c.NetworkResourceTenantID
	}
	return c.TenantID
}

// Stack reports whether the cloud is an Azure Stack, with older API versions and without zones.
func (c Config) Stack() bool {
	return canonicalCloud(c.Cloud) == StackCloud && !c.DisableAzureStackCloud
}

// EdgeZone reports whether resources are created in an edge zone.
func (c Config) EdgeZone() bool { return c.ExtendedLocationName != "" && c.ExtendedLocationType != "" }

// MultipleLoadBalancers reports whether Services are spread over several load balancers.
func (c Config) MultipleLoadBalancers() bool {
	return c.LoadBalancerSKU == SKUStandard && len(c.MultipleStandardLoadBalancerConfigurations) > 0
}

// Credential is a way to authenticate.
type Credential string

// The ways to authenticate, in order of precedence.
const (
	WorkloadIdentity    Credential = "workload identity"
	ManagedIdentity     Credential = "managed identity"
	ClientSecret        Credential = "client secret"
	ClientCertificate   Credential = "client certificate"
	ManagedIdentityFile Credential = "managed identity file"
	NoCredential        Credential = ""
)

// Credential returns the first way that the configuration has the keys of.
func (c Config) Credential() Credential {
	switch {
	case c.UseFederatedWorkloadIdentityExtension:
		return WorkloadIdentity
	case c.UseManagedIdentityExtension:
		return ManagedIdentity
	case !c.AADClientSecret.IsZero():
		return ClientSecret
	case c.AADClientCertPath != "":
		return ClientCertificate
	case c.AADMSIDataPlaneIdentityPath != "":
		return ManagedIdentityFile
	}
	return NoCredential
}
