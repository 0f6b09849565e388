package rights

import (
	"cmp"
	"slices"
)

// Feature is an optional part of a cluster with its own rights.
type Feature string

// The features. Annotations of Services have features too, because a Service may use them at any
// time.
const (
	// Check reads the rights of the identity itself.
	Check Feature = "check"
	// Nodes reads the machines of nodes with their addresses: scale sets of both kinds, availability
	// sets and standalone machines.
	Nodes Feature = "nodes"
	// Zones reads the availability zones of the region.
	Zones Feature = "zones"
	// Services manages load balancers with their public IPs.
	Services Feature = "services"
	// InternalServices uses addresses of a subnet.
	InternalServices Feature = "internal-services"
	// SecurityGroup manages rules of the network security group.
	SecurityGroup Feature = "security-group"
	// PoolsOfInterfaces manages backend pools with network interfaces of machines.
	PoolsOfInterfaces Feature = "pools-of-interfaces"
	// PoolsOfAddresses manages backend pools with addresses of nodes.
	PoolsOfAddresses Feature = "pools-of-addresses"
	// PoolMigration lets Azure convert pools of interfaces to pools of addresses.
	PoolMigration Feature = "pool-migration"
	// Prefixes allocates public IPs in public IP prefixes.
	Prefixes Feature = "prefixes"
	// PrivateLinks manages private link services.
	PrivateLinks Feature = "private-links"
	// Routes manages routes to the pods of nodes.
	Routes Feature = "routes"
	// TaggedRanges reads block sizes from tags of scale sets.
	TaggedRanges Feature = "tagged-ranges"
)

// Features returns all features, in the order of the reference.
func Features() []Feature {
	return slices.Concat(ClusterFeatures(), DiskFeatures(), FileFeatures(), NodeGroupFeatures(), GatewayFeatures(), DNSFeatures())
}

// ClusterFeatures returns the features of the cloud-controller-manager.
func ClusterFeatures() []Feature {
	return []Feature{
		Check, Nodes, Zones, Services, InternalServices, SecurityGroup, PoolsOfInterfaces, PoolsOfAddresses,
		PoolMigration, Prefixes, PrivateLinks, Routes, TaggedRanges,
	}
}

// Scope is the kind of scope of an action. The cloud configuration determines the resource group or
// subscription.
type Scope string

// The scopes. All but the first two are resource groups.
const (
	Subscription        Scope = "the subscription of the cluster"
	NetworkSubscription Scope = "the subscription of the network"
	Machines            Scope = "the resource group of the machines"
	LoadBalancers       Scope = "the resource group of the load balancers"
	PublicIPs           Scope = "the resource group of the public IPs"
	SecurityGroups      Scope = "the resource group of the security group"
	VirtualNetwork      Scope = "the resource group of the virtual network"
	PrivateLinkServices Scope = "the resource group of the private link services"
	RouteTable          Scope = "the resource group of the route table"
	Disks               Scope = "the resource groups of disks and snapshots"
	DiskEncryption      Scope = "the resource groups of disk encryption sets and disk accesses"
	StorageAccounts     Scope = "the resource groups of storage accounts"
	PrivateZones        Scope = "the resource groups of private DNS zones"
	ApplicationGateways Scope = "the resource group of the application gateway"
	// RecordZones is where DNS zones for ExternalDNS are.
	RecordZones Scope = "the resource groups of the DNS zones that ExternalDNS writes"
)

// Scopes returns all scopes, in the order of the reference.
func Scopes() []Scope {
	return []Scope{
		Subscription, NetworkSubscription, Machines, LoadBalancers, PublicIPs, SecurityGroups, VirtualNetwork,
		PrivateLinkServices, RouteTable, Disks, DiskEncryption, StorageAccounts, PrivateZones, ApplicationGateways, RecordZones,
	}
}

// Need is one action that a feature needs at a scope.
type Need struct {
	Action  string // as in a role definition
	Scope   Scope
	Feature Feature
	// Why completes the sentence "it is needed to ...".
	Why string
	// Degrades means that the program works without the right, with fewer features or checks.
	Degrades bool
}

// Needed returns the needs of the features, sorted by scope and action, without duplicates. Without
// arguments it returns the needs of all features.
func Needed(features ...Feature) []Need {
	if len(features) == 0 {
		features = Features()
	}
	var all []Need
	for _, n := range table() {
		if slices.Contains(features, n.Feature) {
			all = append(all, n)
		}
	}
	scopes := Scopes()
	slices.SortStableFunc(all, func(a, b Need) int {
		return cmp.Or(
			cmp.Compare(slices.Index(scopes, a.Scope), slices.Index(scopes, b.Scope)),
			cmp.Compare(a.Action, b.Action),
			cmp.Compare(order(a.Degrades), order(b.Degrades)),
		)
	})
	return slices.CompactFunc(all, func(a, b Need) bool { return a.Scope == b.Scope && a.Action == b.Action })
}

// order sorts required rights before optional ones.
func order(degrades bool) int {
	if degrades {
		return 1
	}
	return 0
}

const (
	compute  = "Microsoft.Compute/"
	network  = "Microsoft.Network/"
	instance = compute + "virtualMachineScaleSets/virtualMachines/"
)

func table() []Need {
	return slices.Concat(check(), machines(), services(), backends(), extras(), podNetwork(), disks(), files(), nodeGroups(), gateways(),
		dnsZones())
}

// check is the right to read permissions at each resource group. Rights at subscriptions are not
// checked: they are optional and used at once. Those of disks and shares are checked by their use.
func check() []Need {
	var all []Need
	unchecked := []Scope{
		Subscription, NetworkSubscription, Disks, DiskEncryption, StorageAccounts, PrivateZones, ApplicationGateways, RecordZones,
	}
	for _, s := range Scopes() {
		if slices.Contains(unchecked, s) {
			continue
		}
		all = append(all, Need{"Microsoft.Authorization/permissions/read", s, Check, "check at start which rights are missing", true})
	}
	return all
}

func machines() []Need {
	return []Need{
		{"Microsoft.Resources/subscriptions/providers/read", NetworkSubscription, Zones,
			"read the region's zones for new public IPs", true},
		{compute + "virtualMachineScaleSets/read", Machines, Nodes, "find the machines of nodes", false},
		{instance + "read", Machines, Nodes, "find the machines of nodes", false},
		{instance + "instanceView/read", Machines, Nodes, "check whether the machine of a node that is not ready runs", false},
		{compute + "virtualMachineScaleSets/networkInterfaces/read", Machines, Nodes, "read the addresses of nodes", false},
		{compute + "virtualMachineScaleSets/publicIPAddresses/read", Machines, Nodes, "read the public addresses of nodes", false},
		{compute + "virtualMachines/read", Machines, Nodes, "find the machines of nodes", false},
		{compute + "virtualMachines/instanceView/read", Machines, Nodes,
			"check whether the machine of a node that is not ready runs", false},
		{compute + "availabilitySets/read", Machines, Nodes, "read the availability sets of machines", false},
		{network + "networkInterfaces/read", Machines, Nodes, "read the addresses of nodes", false},
		{network + "publicIPAddresses/read", Machines, Nodes, "read the public addresses of nodes", false},
	}
}

func services() []Need {
	return []Need{
		{network + "loadBalancers/read", LoadBalancers, Services, "read the load balancers of Services", false},
		{network + "loadBalancers/write", LoadBalancers, Services, "create and update load balancers for Services", false},
		{network + "loadBalancers/delete", LoadBalancers, Services, "delete a load balancer with its last Service", false},
		{network + "publicIPAddresses/read", PublicIPs, Services, "read the public IPs of Services", false},
		{network + "publicIPAddresses/write", PublicIPs, Services, "create and update public IPs for Services", false},
		{network + "publicIPAddresses/delete", PublicIPs, Services, "delete the public IP of a deleted Service", false},
		{network + "publicIPAddresses/join/action", PublicIPs, Services, "use a public IP at a load balancer", false},
		{network + "networkSecurityGroups/read", SecurityGroups, SecurityGroup, "read the security rules of Services", false},
		{network + "networkSecurityGroups/write", SecurityGroups, SecurityGroup, "allow the clients of Services", false},
		{network + "virtualNetworks/subnets/read", VirtualNetwork, InternalServices, "read the address ranges of a subnet", false},
		{network + "virtualNetworks/subnets/join/action", VirtualNetwork, InternalServices,
			"use an address of a subnet at a load balancer", false},
	}
}

// backends are the two ways to add nodes to backend pools. A write of a machine repeats everything
// that its interfaces are connected with, and Azure requires the join rights for it.
func backends() []Need {
	return []Need{
		{compute + "virtualMachineScaleSets/write", Machines, PoolsOfInterfaces, "add new instances to the backend pools", false},
		{instance + "write", Machines, PoolsOfInterfaces, "add instances to the backend pools", false},
		{network + "networkInterfaces/write", Machines, PoolsOfInterfaces, "add machines to the backend pools", false},
		{network + "publicIPAddresses/join/action", Machines, PoolsOfInterfaces, "write an interface that has a public address", true},
		{network + "loadBalancers/backendAddressPools/join/action", LoadBalancers, PoolsOfInterfaces,
			"add machines to the backend pools", false},
		{network + "virtualNetworks/subnets/join/action", VirtualNetwork, PoolsOfInterfaces,
			"write the interfaces of machines, which are in a subnet", false},
		{network + "networkSecurityGroups/join/action", SecurityGroups, PoolsOfInterfaces,
			"write the interfaces of machines, which may have a security group", true},
		{network + "virtualNetworks/joinLoadBalancer/action", VirtualNetwork, PoolsOfAddresses,
			"list addresses of the network in a backend pool", false},
		{network + "loadBalancers/migrateToIpBased/action", LoadBalancers, PoolMigration,
			"let Azure convert pools of interfaces to pools of addresses", true},
	}
}

// extras are the rights for annotations of Services.
func extras() []Need {
	return []Need{
		{network + "publicIPPrefixes/join/action", PublicIPs, Prefixes, "allocate a public IP in a public IP prefix", true},
		{network + "privateLinkServices/read", PrivateLinkServices, PrivateLinks, "read the private link services of Services", false},
		{network + "privateLinkServices/write", PrivateLinkServices, PrivateLinks, "create and update private link services", true},
		{network + "privateLinkServices/delete", PrivateLinkServices, PrivateLinks,
			"delete the private link service of a deleted Service", true},
		{network + "privateLinkServices/privateEndpointConnections/read", PrivateLinkServices, PrivateLinks,
			"read the connections of a private link service", true},
		{network + "privateLinkServices/privateEndpointConnections/delete", PrivateLinkServices, PrivateLinks,
			"delete the connections of a private link service before its deletion", true},
		{network + "loadBalancers/frontendIPConfigurations/join/action", LoadBalancers, PrivateLinks,
			"connect a private link service to a load balancer", true},
		{network + "virtualNetworks/subnets/read", VirtualNetwork, PrivateLinks, "read the subnet of a private link service", true},
		{network + "virtualNetworks/subnets/write", VirtualNetwork, PrivateLinks, "allow private link services in a subnet", true},
		{network + "virtualNetworks/subnets/join/action", VirtualNetwork, PrivateLinks,
			"use addresses of a subnet for a private link service", true},
	}
}

func podNetwork() []Need {
	return []Need{
		{network + "routeTables/read", RouteTable, Routes, "read the routes to pods", false},
		{network + "routeTables/write", RouteTable, Routes, "create, update and delete routes to pods", false},
		{network + "locations/usages/read", NetworkSubscription, Routes,
			"read how many routes Azure allows in a nearly full table", true},
		{compute + "virtualMachineScaleSets/read", Machines, TaggedRanges, "read the size of a node's range from a tag", false},
		{compute + "virtualMachines/read", Machines, TaggedRanges, "read the size of a node's range from a tag", false},
		{compute + "availabilitySets/read", Machines, TaggedRanges, "read the size of a node's range from a tag", false},
	}
}
