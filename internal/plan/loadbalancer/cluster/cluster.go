// Package cluster describes the cluster to the planner of its load balancers. It has the configuration with the ids that
// follow from it, and the role of a node. Layer L1.
package cluster

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan/loadbalancer/address"
)

// Config is what the cloud configuration says of load balancers, with all defaults filled in.
type Config struct {
	ClusterName string // names pools and public IPs
	Location    string
	EdgeZone    *azure.ExtendedLocation // of load balancers and public IPs, nil for the region itself

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
	// MaximumRules is how many rules one of several load balancers may have for a Service to come; 0 for any number.
	MaximumRules int

	// PoolByIP says that the backend pools list the nodes' addresses. Otherwise the nodes' network interfaces name their
	// pools.
	PoolByIP bool
	// MigrateByAPI has Azure turn pools of interfaces into pools of addresses in one step, in which no node leaves.
	MigrateByAPI bool
	// PresetExternal and PresetInternal say that other software fills the pools of
	// these load balancers, and that they are not to be deleted.
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

// Balancer is one of several entries over which a cluster's Services and nodes are spread. It has an external and an
// internal load balancer, as they are needed.
type Balancer struct {
	Name           string
	AllowPlacement bool   // of new Services
	PrimaryVMSet   string // the scale set or availability set whose nodes belong to it
	// Selectors say which Services, Services of which namespaces, and which nodes
	// belong to it; nil and empty ones say nothing.
	ServiceSelector, NamespaceSelector, NodeSelector *metav1.LabelSelector
}

// Entries are the configured load balancers: one where no several are configured.
func (c Config) Entries() []Balancer {
	if len(c.Balancers) == 0 {
		return []Balancer{{Name: c.LoadBalancerName, AllowPlacement: true}}
	}
	return c.Balancers
}

// LoadBalancer is the id of the cluster's external load balancer. All load balancers of a cluster, and their security
// group, are planned together, so it is the key of their group commit.
func (c Config) LoadBalancer() azure.ID { return c.BalancerID(c.LoadBalancerName, false) }

// InternalSuffix ends the name of a load balancer in the virtual network.
const InternalSuffix = "-internal"

// BalancerID is the id of the external or the internal load balancer of a configured name.
func (c Config) BalancerID(name string, internal bool) azure.ID {
	if internal {
		name += InternalSuffix
	}
	return c.NetworkGroup().Resource(network.LoadBalancers, name)
}

// HasSuffix is strings.HasSuffix without regard to case, as Azure compares names.
func HasSuffix(s, suffix string) bool {
	return strings.EqualFold(s[max(len(s)-len(suffix), 0):], suffix)
}

// HasPrefix is strings.HasPrefix without regard to case, as Azure compares names.
func HasPrefix(s, prefix string) bool { return strings.EqualFold(s[:min(len(s), len(prefix))], prefix) }

// NetworkGroup is the resource group of the load balancers.
func (c Config) NetworkGroup() azure.ID {
	return azure.GroupID(c.NetworkSubscription, c.LoadBalancerResourceGroup)
}

// MachineGroup is the resource group of the machines.
func (c Config) MachineGroup() azure.ID { return azure.GroupID(c.Subscription, c.ResourceGroup) }

// SecurityGroupID is the id of the nodes' network security group.
func (c Config) SecurityGroupID() azure.ID {
	return azure.GroupID(c.NetworkSubscription, c.SecurityGroupResourceGroup).Resource(network.SecurityGroups, c.SecurityGroupName)
}

// PublicIPGroup is a resource group of public IPs, "" for the cluster's.
func (c Config) PublicIPGroup(group string) azure.ID {
	return azure.GroupID(c.NetworkSubscription, cmp.Or(group, c.ResourceGroup))
}

// LinkGroup is a resource group of private link services, "" for the configured one.
func (c Config) LinkGroup(group string) azure.ID {
	return azure.GroupID(c.NetworkSubscription, cmp.Or(group, c.PrivateLinkResourceGroup))
}

// NetworkID is the id of the virtual network, "" when none is configured.
func (c Config) NetworkID() azure.ID {
	if c.VirtualNetwork == "" {
		return ""
	}
	return azure.GroupID(c.NetworkSubscription, c.VirtualNetworkResourceGroup).Resource(network.VirtualNetworks, c.VirtualNetwork)
}

// SubnetID is the id of a subnet of the cluster's network, "" for the configured one;
// it is "" when nothing is configured.
func (c Config) SubnetID(name string) azure.ID {
	if name = cmp.Or(name, c.Subnet); name == "" || c.NetworkID() == "" {
		return ""
	}
	return c.NetworkID().Child("subnets", name)
}

// SuffixIPv6 ends the names of IPv6 resources that exist beside IPv4 ones.
const SuffixIPv6 = "-IPv6"

// NameOf names what has an IP family.
func NameOf(name string, family v1.IPFamily) string {
	if family == v1.IPv6Protocol {
		return name + SuffixIPv6
	}
	return name
}

// PoolName names the cluster's backend pool of an IP family.
func (c Config) PoolName(family v1.IPFamily) string { return NameOf(c.ClusterName, family) }

// PoolFamily is the family of one of the cluster's own pools, "" for another pool.
func (c Config) PoolFamily(name string) v1.IPFamily {
	for _, family := range address.Families() {
		if strings.EqualFold(name, c.PoolName(family)) {
			return family
		}
	}
	return ""
}

// IsOwnPool reports whether a pool is one of the cluster's own.
func (c Config) IsOwnPool(name string) bool { return c.PoolFamily(name) != "" }

// IsPreset reports whether other software fills the pools of the internal, or of the external, load balancers.
func (c Config) IsPreset(internal bool) bool {
	return internal && c.PresetInternal || !internal && c.PresetExternal
}

// Role is what a node is to load balancers.
type Role string

const (
	Receiver  Role = "receiver"  // belongs into the backend pool
	Excluded  Role = "excluded"  // a label keeps it out of the pool
	Bystander Role = "bystander" // does not join, and stays if it is a member
)

// RoleOf is what a node is to load balancers, by its labels and taints. Readiness does not count: the health probes check
// it.
func RoleOf(c Config, n *v1.Node) Role {
	_, controlPlane := n.Labels["node-role.kubernetes.io/control-plane"]
	_, master := n.Labels["node-role.kubernetes.io/master"]
	group, foreign := n.Labels["kubernetes.azure.com/resource-group"]
	text, labeled := n.Labels[v1.LabelNodeExcludeBalancers]
	excluded, err := strconv.ParseBool(text)
	switch {
	case labeled && (excluded || err != nil), // one that is no truth value excludes, as in the rest of Kubernetes
		strings.EqualFold(n.Labels["kubernetes.azure.com/managed"], "false"):
		return Excluded
	case n.DeletionTimestamp != nil,
		foreign && !strings.EqualFold(group, c.ResourceGroup),
		c.ExcludeControlPlane && (controlPlane || master || n.Labels["kubernetes.io/role"] == "master"),
		slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == "ToBeDeletedByClusterAutoscaler" }):
		return Bystander
	}
	return Receiver
}

// InternalIPs are the addresses of a node in the virtual network.
func InternalIPs(n *v1.Node) (ips []netip.Addr) {
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == v1.NodeInternalIP {
			ips = append(ips, ip.Unmap())
		}
	}
	return ips
}

// Selects reports whether a selector matches labels, or rejects them. An empty selector does neither. An invalid selector
// rejects all; the cloud configuration is checked for invalid ones.
func Selects(s *metav1.LabelSelector, of map[string]string) (matches, rejects bool) {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return false, false
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	matches = err == nil && selector.Matches(labels.Set(of))
	return matches, !matches
}
