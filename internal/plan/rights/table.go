package rights

import (
	"cmp"
	"slices"
)

// Feature is something that a cluster can be configured to use, and that needs rights
// of its own.
type Feature string

// The features. What a Service asks for by an annotation is one, too: nobody can tell
// at start whether one ever will.
const (
	// Check asks Azure for one's own rights.
	Check Feature = "check"
	// Nodes are the machines that nodes run on: scale sets of both kinds, availability
	// sets and standalone machines, with their addresses.
	Nodes Feature = "nodes"
	// Zones are the availability zones of the region.
	Zones Feature = "zones"
	// Services are load balancers with their public IPs.
	Services Feature = "services"
	// InternalServices take an address out of a subnet.
	InternalServices Feature = "internal-services"
	// SecurityGroup is the network security group that lets clients in.
	SecurityGroup Feature = "security-group"
	// PoolsOfInterfaces are backend pools that machines join by their interfaces.
	PoolsOfInterfaces Feature = "pools-of-interfaces"
	// PoolsOfAddresses are backend pools that list the addresses of nodes.
	PoolsOfAddresses Feature = "pools-of-addresses"
	// PoolMigration has Azure itself turn pools of interfaces into pools of addresses.
	PoolMigration Feature = "pool-migration"
	// Prefixes are public IP prefixes that Services take their addresses from.
	Prefixes Feature = "prefixes"
	// PrivateLinks are private link services.
	PrivateLinks Feature = "private-links"
	// Routes are the routes to the nodes' pods.
	Routes Feature = "routes"
	// TaggedRanges are ranges of pods whose size a scale set's tag says.
	TaggedRanges Feature = "tagged-ranges"
)

// Features are all of them, in the order of the reference.
func Features() []Feature {
	return []Feature{
		Check, Nodes, Zones, Services, InternalServices, SecurityGroup, PoolsOfInterfaces, PoolsOfAddresses,
		PoolMigration, Prefixes, PrivateLinks, Routes, TaggedRanges,
	}
}

// Scope is what of a cluster an action is done to. Which resource group or
// subscription that is, the cloud configuration says.
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
)

// Scopes are all of them, in the order of the reference.
func Scopes() []Scope {
	return []Scope{
		Subscription, NetworkSubscription, Machines, LoadBalancers, PublicIPs, SecurityGroups, VirtualNetwork,
		PrivateLinkServices, RouteTable,
	}
}

// Need is one action that a feature needs at a scope.
type Need struct {
	Action  string // as a role definition names it
	Scope   Scope
	Feature Feature
	// Why completes the sentence "it is needed to ...".
	Why string
	// Degrades says that a program goes on without it: it does less, or asks less.
	Degrades bool
}

// Needed lists what the features need, sorted by scope and action, each action once a
// scope. Without features it is what all of them need.
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

// order puts what cannot be done without first.
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
	return slices.Concat(check(), machines(), services(), backends(), extras(), podNetwork())
}

// check is one right, at every scope that is asked about: the resource groups. What is
// needed of a subscription is asked for at once, and can be done without.
func check() []Need {
	var all []Need
	for _, s := range Scopes() {
		if s == Subscription || s == NetworkSubscription {
			continue
		}
		all = append(all, Need{"Microsoft.Authorization/permissions/read", s, Check, "know at start which rights are missing", true})
	}
	return all
}

func machines() []Need {
	return []Need{
		{"Microsoft.Resources/subscriptions/providers/read", NetworkSubscription, Zones, "know the region's zones, which new public IPs span", true},
		{compute + "virtualMachineScaleSets/read", Machines, Nodes, "find the machines of nodes", false},
		{instance + "read", Machines, Nodes, "find the machines of nodes", false},
		{instance + "instanceView/read", Machines, Nodes, "see whether the machine of a node that is not ready runs", false},
		{compute + "virtualMachineScaleSets/networkInterfaces/read", Machines, Nodes, "know the addresses of nodes", false},
		{compute + "virtualMachineScaleSets/publicIPAddresses/read", Machines, Nodes, "know the public addresses of nodes", false},
		{compute + "virtualMachines/read", Machines, Nodes, "find the machines of nodes", false},
		{compute + "virtualMachines/instanceView/read", Machines, Nodes, "see whether the machine of a node that is not ready runs", false},
		{compute + "availabilitySets/read", Machines, Nodes, "know the sets that machines are in", false},
		{network + "networkInterfaces/read", Machines, Nodes, "know the addresses of nodes", false},
		{network + "publicIPAddresses/read", Machines, Nodes, "know the public addresses of nodes", false},
	}
}

func services() []Need {
	return []Need{
		{network + "loadBalancers/read", LoadBalancers, Services, "see the load balancers of Services", false},
		{network + "loadBalancers/write", LoadBalancers, Services, "make load balancers for Services", false},
		{network + "loadBalancers/delete", LoadBalancers, Services, "remove a load balancer with its last Service", false},
		{network + "publicIPAddresses/read", PublicIPs, Services, "see the addresses of Services", false},
		{network + "publicIPAddresses/write", PublicIPs, Services, "make addresses for Services", false},
		{network + "publicIPAddresses/delete", PublicIPs, Services, "remove the address of a Service that is gone", false},
		{network + "publicIPAddresses/join/action", PublicIPs, Services, "give an address to a load balancer", false},
		{network + "networkSecurityGroups/read", SecurityGroups, SecurityGroup, "see who may reach Services", false},
		{network + "networkSecurityGroups/write", SecurityGroups, SecurityGroup, "let the clients of Services in", false},
		{network + "virtualNetworks/subnets/read", VirtualNetwork, InternalServices, "know the addresses of a subnet", false},
		{network + "virtualNetworks/subnets/join/action", VirtualNetwork, InternalServices, "give a load balancer an address in a subnet", false},
	}
}

// backends are the two ways in which nodes get into the backend pools. A write of a
// machine names all that its interfaces are connected with, and Azure wants the right
// to connect it again.
func backends() []Need {
	return []Need{
		{compute + "virtualMachineScaleSets/write", Machines, PoolsOfInterfaces, "let new instances into the backend pools", false},
		{instance + "write", Machines, PoolsOfInterfaces, "let instances into the backend pools", false},
		{network + "networkInterfaces/write", Machines, PoolsOfInterfaces, "let machines into the backend pools", false},
		{network + "publicIPAddresses/join/action", Machines, PoolsOfInterfaces, "write an interface that has a public address", true},
		{network + "loadBalancers/backendAddressPools/join/action", LoadBalancers, PoolsOfInterfaces, "let machines into the backend pools", false},
		{network + "virtualNetworks/subnets/join/action", VirtualNetwork, PoolsOfInterfaces, "write the interfaces of machines, which are in a subnet", false},
		{network + "networkSecurityGroups/join/action", SecurityGroups, PoolsOfInterfaces, "write the interfaces of machines, which may have a security group", true},
		{network + "virtualNetworks/joinLoadBalancer/action", VirtualNetwork, PoolsOfAddresses, "list addresses of the network in a backend pool", false},
		{network + "loadBalancers/migrateToIpBased/action", LoadBalancers, PoolMigration, "have Azure turn pools of interfaces into pools of addresses", true},
	}
}

// extras are what single Services ask for by annotations.
func extras() []Need {
	return []Need{
		{network + "publicIPPrefixes/join/action", PublicIPs, Prefixes, "take an address out of a public IP prefix", true},
		{network + "privateLinkServices/read", PrivateLinkServices, PrivateLinks, "see the private link services of Services", false},
		{network + "privateLinkServices/write", PrivateLinkServices, PrivateLinks, "make a private link service for a Service", true},
		{network + "privateLinkServices/delete", PrivateLinkServices, PrivateLinks, "remove the private link service of a Service that is gone", true},
		{network + "privateLinkServices/privateEndpointConnections/read", PrivateLinkServices, PrivateLinks, "see who is connected to a private link service", true},
		{network + "privateLinkServices/privateEndpointConnections/delete", PrivateLinkServices, PrivateLinks, "end the connections of a private link service that goes", true},
		{network + "loadBalancers/frontendIPConfigurations/join/action", LoadBalancers, PrivateLinks, "connect a private link service with a load balancer", true},
		{network + "virtualNetworks/subnets/read", VirtualNetwork, PrivateLinks, "know the subnet of a private link service", true},
		{network + "virtualNetworks/subnets/write", VirtualNetwork, PrivateLinks, "let a subnet have private link services", true},
		{network + "virtualNetworks/subnets/join/action", VirtualNetwork, PrivateLinks, "give a private link service an address in a subnet", true},
	}
}

func podNetwork() []Need {
	return []Need{
		{network + "routeTables/read", RouteTable, Routes, "see the routes to pods", false},
		{network + "routeTables/write", RouteTable, Routes, "make routes to pods", false},
		{network + "locations/usages/read", NetworkSubscription, Routes, "know how many routes Azure allows in a table that is nearly full", true},
		{compute + "virtualMachineScaleSets/read", Machines, TaggedRanges, "read the size of a node's range from a tag", false},
		{compute + "virtualMachines/read", Machines, TaggedRanges, "read the size of a node's range from a tag", false},
		{compute + "availabilitySets/read", Machines, TaggedRanges, "read the size of a node's range from a tag", false},
	}
}
