package cloudconfig

import (
	"strings"
	"time"
)

// Config is what azure.json says. A Config from [Default], [Parse], [Merge],
// [Load] or [Read] is complete: where the file says nothing, the default is
// filled in, and texts with a fixed set of values are in the spelling of their
// constants.
type Config struct {
	ARM
	Auth
	Cluster
	LoadBalancing
	Caching
	Backoff
	RateLimit RateLimit
	// ClientRateLimits holds the per-client objects under the names of their
	// keys, such as routeTableRateLimit. [Config.RateLimits] interprets them.
	ClientRateLimits map[string]RateLimit
	// EnvironmentFile is the path in AZURE_ENVIRONMENT_FILEPATH: the
	// description of an Azure Stack. It is no key of the file.
	EnvironmentFile string
}

// ARM says which cloud and which subscriptions.
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

// Auth says who we are.
type Auth struct {
	AADClientID                           string
	AADClientSecret                       Secret
	AADClientCertPath                     string
	AADClientCertPassword                 Secret
	UseManagedIdentityExtension           bool
	UserAssignedIdentityID                string
	UseFederatedWorkloadIdentityExtension bool
	AADFederatedTokenFile                 string
	AADMSIDataPlaneIdentityPath           string
	AuxiliaryTokenProvider                *AuxiliaryTokenProvider
}

// AuxiliaryTokenProvider is the Key Vault secret that holds a token for the
// tenant of the network resources.
type AuxiliaryTokenProvider struct {
	SubscriptionID, ResourceGroup, VaultName, SecretName string
}

// CloudConfigType says which of file and Secret count.
type CloudConfigType string

// The values of cloudConfigType.
const (
	ConfigFile   CloudConfigType = "file"
	ConfigSecret CloudConfigType = "secret"
	ConfigMerge  CloudConfigType = "merge"
)

// VMType is the kind of machine that nodes are, unless they show otherwise.
type VMType string

// The values of vmType.
const (
	VMTypeScaleSet         VMType = "vmss"
	VMTypeStandard         VMType = "standard"
	VMTypeFlexibleScaleSet VMType = "vmssflex"
)

// Cluster says where the cluster's own resources are.
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

// BackendPoolType is how a node is a member of a backend pool.
type BackendPoolType string

// The values of loadBalancerBackendPoolConfigurationType.
const (
	PoolNodeIPConfiguration BackendPoolType = "nodeIPConfiguration"
	PoolNodeIP              BackendPoolType = "nodeIP"
	PoolPodIP               BackendPoolType = "podIP"
)

// PreConfigured says which load balancers' pools are filled by somebody else.
type PreConfigured string

// The values of preConfiguredBackendPoolLoadBalancerTypes.
const (
	PreConfiguredNone     PreConfigured = ""
	PreConfiguredInternal PreConfigured = "internal"
	PreConfiguredExternal PreConfigured = "external"
	PreConfiguredAll      PreConfigured = "all"
)

// ProbeMode is how Services of traffic policy Cluster are probed.
type ProbeMode string

// The values of clusterServiceLoadBalancerHealthProbeMode.
const (
	ProbeServiceNodePort ProbeMode = "servicenodeport"
	ProbeShared          ProbeMode = "shared"
)

// LoadBalancing says what load balancers look like.
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

// LoadBalancer is one of several standard load balancers of a cluster.
type LoadBalancer struct {
	Name                     string
	PrimaryVMSet             string
	AllowServicePlacement    bool
	ServiceLabelSelector     *LabelSelector
	ServiceNamespaceSelector *LabelSelector
	NodeSelector             *LabelSelector
}

// LabelSelector has the fields of the Kubernetes type of that name.
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

// Caching says for how long something that was read may be used again.
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

// Backoff says how often and how patiently a failed step is tried again.
type Backoff struct {
	CloudProviderBackoff         bool
	CloudProviderBackoffRetries  int // tries in all; 1 when backoff is off
	CloudProviderBackoffExponent float64
	CloudProviderBackoffDuration time.Duration
	CloudProviderBackoffJitter   float64
	EnableMinimumRetryAfter      bool
}

// MultiTenant reports whether network resources belong to another tenant.
func (c Config) MultiTenant() bool {
	return c.NetworkResourceTenantID != "" && !strings.EqualFold(c.NetworkResourceTenantID, c.TenantID)
}

// NetworkTenantID is the tenant of the network resources.
func (c Config) NetworkTenantID() string {
	if c.MultiTenant() {
		return c.NetworkResourceTenantID
	}
	return c.TenantID
}

// Stack reports whether the cloud is an Azure Stack with its older API
// versions and without zones.
func (c Config) Stack() bool {
	return canonicalCloud(c.Cloud) == StackCloud && !c.DisableAzureStackCloud
}

// EdgeZone reports whether resources go to an edge zone.
func (c Config) EdgeZone() bool { return c.ExtendedLocationName != "" && c.ExtendedLocationType != "" }

// MultipleLoadBalancers reports whether Services spread over several load
// balancers.
func (c Config) MultipleLoadBalancers() bool {
	return c.LoadBalancerSKU == SKUStandard && len(c.MultipleStandardLoadBalancerConfigurations) > 0
}

// Credential is the way in which we prove who we are.
type Credential string

// The ways, in the order in which they are considered.
const (
	WorkloadIdentity    Credential = "workload identity"
	ManagedIdentity     Credential = "managed identity"
	ClientSecret        Credential = "client secret"
	ClientCertificate   Credential = "client certificate"
	ManagedIdentityFile Credential = "managed identity file"
	NoCredential        Credential = ""
)

// Credential says which way the configuration asks for: the first that is
// there wins.
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
