package loadbalancer

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
)

// Config is what the cloud configuration says of load balancers, with all defaults
// filled in.
type Config struct {
	ClusterName string // names pools and public IPs
	Location    string
	// EdgeZone is where load balancers and public IPs are, nil for the region itself.
	EdgeZone *azure.ExtendedLocation

	Subscription  string // of the machines
	ResourceGroup string // of the machines and public IPs

	NetworkSubscription       string // of load balancers, public IPs, subnets and security group
	LoadBalancerName          string
	LoadBalancerResourceGroup string

	SecurityGroupName          string // "" when none is configured
	SecurityGroupResourceGroup string

	VirtualNetwork              string
	VirtualNetworkResourceGroup string
	Subnet                      string // of internal addresses, unless a Service names its own

	PrivateLinkResourceGroup string // of private link services, unless a Service names one

	Tags       azure.Tags // of everything that kaz makes
	SystemTags []string   // prefixes of tags that survive; where there are any, other unknown tags go

	Zones               []string // of the region, for new public IPs and internal frontends
	DisableOutboundSNAT bool     // of rules
	ExcludeControlPlane bool     // from the backend pools
	IPTagsMayChange     bool     // at a public IP that is there; else another one is made

	// Balancers are the several load balancers over which Services are spread, in pools
	// by IP; none for the one called LoadBalancerName.
	Balancers []Balancer
	// MaximumRules is how many rules one of several load balancers may have for a
	// Service to come; 0 for any number.
	MaximumRules int

	// PoolByIP has the backend pools list the nodes' addresses, instead of the nodes'
	// network interfaces name their pools.
	PoolByIP bool
	// MigrateByAPI has Azure turn pools of interfaces into pools of addresses in one step,
	// in which no node leaves.
	MigrateByAPI bool
	// PresetExternal and PresetInternal say that somebody else fills the pools of
	// those load balancers, and that they are not to be deleted.
	PresetExternal, PresetInternal bool

	// SharedProbe answers for all Services of traffic policy Cluster; where it is nil
	// each port is probed at its node port.
	SharedProbe *SharedProbe
}

// SharedProbe is where a node says whether it is well, whatever the Service.
type SharedProbe struct {
	Port int32
	Path string
}

// LoadBalancer is the id of the cluster's external load balancer. All load
// balancers of a cluster, and their security group, are planned together, so it is
// the key of their group commit.
func (c Config) LoadBalancer() azure.ID { return c.balancer(c.LoadBalancerName, false) }

func (c Config) balancers() azure.ID {
	return azure.GroupID(c.NetworkSubscription, c.LoadBalancerResourceGroup)
}

// internalSuffix tells a load balancer in the virtual network from its external
// sibling.
const internalSuffix = "-internal"

func (c Config) balancer(name string, internal bool) azure.ID {
	if internal {
		name += internalSuffix
	}
	return c.balancers().Resource(network.LoadBalancers, name)
}

func (c Config) securityGroup() azure.ID {
	return azure.GroupID(c.NetworkSubscription, c.SecurityGroupResourceGroup).Resource(network.SecurityGroups, c.SecurityGroupName)
}

// publicIPs is the resource group of public IPs, "" for the cluster's.
func (c Config) publicIPs(group string) azure.ID {
	if group == "" {
		group = c.ResourceGroup
	}
	return azure.GroupID(c.NetworkSubscription, group)
}

// links is the resource group of private link services, "" for the configured one.
func (c Config) links(group string) azure.ID {
	if group == "" {
		group = c.PrivateLinkResourceGroup
	}
	return azure.GroupID(c.NetworkSubscription, group)
}

// balancersOf are the ids of the load balancers that a decision looks at: the
// configured ones, and all others that are known.
func balancersOf(in Input) []azure.ID {
	var ids []azure.ID
	for _, e := range in.Config.entries() {
		ids = append(ids, in.Config.balancer(e.Name, false), in.Config.balancer(e.Name, true))
	}
	for _, d := range in.Have.List(in.Config.balancers(), network.LoadBalancers) {
		if id := d.ID(); !slices.ContainsFunc(ids, id.Equal) {
			ids = append(ids, id)
		}
	}
	return ids
}

// isInternal reports whether a load balancer is one in the virtual network.
func isInternal(id azure.ID) bool { return hasSuffixFold(string(id), internalSuffix) }

func (c Config) machines() azure.ID { return azure.GroupID(c.Subscription, c.ResourceGroup) }

func (c Config) virtualNetwork() azure.ID {
	if c.VirtualNetwork == "" {
		return ""
	}
	return azure.GroupID(c.NetworkSubscription, c.VirtualNetworkResourceGroup).Resource(network.VirtualNetworks, c.VirtualNetwork)
}

// poolNetwork is the network in which pools' addresses are.
func (c Config) poolNetwork() azure.ID { return c.virtualNetwork() }

// subnet is the id of a subnet of the cluster's network, "" for the configured one;
// it is "" when nothing is configured.
func (c Config) subnet(name string) azure.ID {
	if name == "" {
		name = c.Subnet
	}
	if name == "" || c.virtualNetwork() == "" {
		return ""
	}
	return c.virtualNetwork().Child("subnets", name)
}

// poolName names the cluster's backend pool of an IP family. The suffix tells the
// family, whatever other families a Service has.
func (c Config) poolName(family v1.IPFamily) string {
	if family == v1.IPv6Protocol {
		return c.ClusterName + suffixIPv6
	}
	return c.ClusterName
}

// poolFamily is the family of one of the cluster's own pools.
func (c Config) poolFamily(name string) (v1.IPFamily, bool) {
	for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
		if sameText(name, c.poolName(family)) {
			return family, true
		}
	}
	return "", false
}

// isOwnPool reports whether a pool is one of the cluster's own.
func (c Config) isOwnPool(name string) bool {
	_, ours := c.poolFamily(name)
	return ours
}

// presets reports whether somebody else fills the pools of the internal load balancers, or of
// the external ones.
func (c Config) presets(internal bool) bool {
	if internal {
		return c.PresetInternal
	}
	return c.PresetExternal
}
