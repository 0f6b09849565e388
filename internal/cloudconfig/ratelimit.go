package cloudconfig

import "strings"

// RateLimit has the five keys of a rate limit, general or for one client.
type RateLimit struct {
	Enabled     bool
	QPS         float64
	Bucket      int
	QPSWrite    float64
	BucketWrite int
}

func (r *RateLimit) members() []member {
	return []member{
		{"cloudProviderRateLimit", &r.Enabled},
		{"cloudProviderRateLimitQPS", &r.QPS},
		{"cloudProviderRateLimitBucket", &r.Bucket},
		{"cloudProviderRateLimitQPSWrite", &r.QPSWrite},
		{"cloudProviderRateLimitBucketWrite", &r.BucketWrite},
	}
}

// The limit if rate limiting is enabled without numbers.
const (
	usualQPS    = 1.0
	usualBucket = 5
)

// Rate is a token bucket: QPS tokens a second, at most Bucket at once.
type Rate struct {
	QPS    float64
	Bucket int
}

// Limit is the rate limit of one client.
type Limit struct{ Read, Write Rate }

// RateLimits are the rate limits of all clients.
type RateLimits struct {
	general *Limit
	clients map[string]*Limit // by key; nil is unlimited
}

// RateLimits interprets the rate limit keys. The general limit applies to every client without its
// own object. An object replaces the general limit: if disabled, the client has no limit. Numbers
// missing in the object come from the general keys.
func (c Config) RateLimits() RateLimits {
	general := c.RateLimit
	general.Enabled = true
	general = general.filled(RateLimit{QPS: usualQPS, Bucket: usualBucket})
	limits := RateLimits{clients: make(map[string]*Limit, len(c.ClientRateLimits))}
	if c.RateLimit.Enabled {
		limits.general = general.limit()
	}
	for name, own := range c.ClientRateLimits {
		limits.clients[name] = own.filled(general).limit()
	}
	return limits
}

// filled replaces zero fields by those of other.
func (r RateLimit) filled(other RateLimit) RateLimit {
	if r.QPS == 0 {
		r.QPS = other.QPS
	}
	if r.Bucket == 0 {
		r.Bucket = other.Bucket
	}
	if r.QPSWrite == 0 {
		r.QPSWrite = other.QPSWrite
	}
	if r.BucketWrite == 0 {
		r.BucketWrite = other.BucketWrite
	}
	return r
}

func (r RateLimit) limit() *Limit {
	if !r.Enabled {
		return nil
	}
	limit := Limit{Read: Rate{r.QPS, r.Bucket}, Write: Rate{r.QPSWrite, r.BucketWrite}}
	if limit.Write.QPS == 0 {
		limit.Write.QPS = r.QPS
	}
	if limit.Write.Bucket == 0 {
		limit.Write.Bucket = r.Bucket
	}
	return &limit
}

// For returns the rate limit of requests to a resource type, such as Microsoft.Network/routeTables,
// and whether there is one. A subtype, such as the instances of a scale set, shares the limit of its
// parent unless it has its own. Requests with the same Key share tokens.
func (r RateLimits) For(resourceType string) (SharedLimit, bool) {
	best, length := "", -1
	for _, client := range limitedClients() {
		for _, t := range client.types {
			if within(resourceType, t) && len(t) > length {
				best, length = client.key, len(t)
			}
		}
	}
	limit, own := r.clients[best]
	if !own {
		// Every client has its own buckets, so the type identifies them.
		if best == "" {
			best = strings.ToLower(resourceType)
		}
		limit = r.general
	}
	if limit == nil {
		return SharedLimit{}, false
	}
	return SharedLimit{Key: best, Limit: *limit}, true
}

// SharedLimit is a limit with the key of its token buckets.
type SharedLimit struct {
	Key string
	Limit
}

func within(resourceType, parent string) bool {
	if len(resourceType) < len(parent) || !strings.EqualFold(resourceType[:len(parent)], parent) {
		return false
	}
	return len(resourceType) == len(parent) || resourceType[len(parent)] == '/'
}

type limitedClient struct {
	key   string
	types []string
}

func limitedClients() []limitedClient {
	const network, compute = "Microsoft.Network/", "Microsoft.Compute/"
	return []limitedClient{
		{"routeRateLimit", []string{network + "routeTables/routes"}},
		{"routeTableRateLimit", []string{network + "routeTables"}},
		{"subnetsRateLimit", []string{network + "virtualNetworks/subnets"}},
		{"virtualNetworkRateLimit", []string{network + "virtualNetworks"}},
		{"interfaceRateLimit", []string{network + "networkInterfaces"}},
		{"loadBalancerRateLimit", []string{network + "loadBalancers"}},
		{"publicIPAddressRateLimit", []string{network + "publicIPAddresses"}},
		{"securityGroupRateLimit", []string{network + "networkSecurityGroups"}},
		{"privateLinkServiceRateLimit", []string{network + "privateLinkServices"}},
		{"privateEndpointRateLimit", []string{network + "privateEndpoints"}},
		{"privateDNSZoneGroupRateLimit", []string{network + "privateEndpoints/privateDnsZoneGroups"}},
		{"privateDNSRateLimit", []string{network + "privateDnsZones"}},
		{"natGatewayRateLimit", []string{network + "natGateways"}},
		{"ipGroupRateLimit", []string{network + "ipGroups"}},
		{"serviceGatewayRateLimit", []string{network + "serviceGateways"}},
		{"virtualMachineRateLimit", []string{compute + "virtualMachines"}},
		{"virtualMachineScaleSetRateLimit", []string{compute + "virtualMachineScaleSets"}},
		{"virtualMachineSizesRateLimit", []string{compute + "locations/vmSizes", compute + "skus"}},
		{"availabilitySetRateLimit", []string{compute + "availabilitySets"}},
		{"diskRateLimit", []string{compute + "disks"}},
		{"snapshotRateLimit", []string{compute + "snapshots"}},
		{"storageAccountRateLimit", []string{"Microsoft.Storage/storageAccounts"}},
		{"containerServiceRateLimit", []string{"Microsoft.ContainerService/managedClusters"}},
		{"deploymentRateLimit", []string{"Microsoft.Resources/deployments"}},
	}
}

func limitedTypes(key string) string {
	for _, client := range limitedClients() {
		if client.key == key {
			return "`" + strings.Join(client.types, "`, `") + "`"
		}
	}
	return ""
}
