// Package network holds the property structs of Microsoft.Network: of each
// resource the fields that kaz reads or owns, tagged for azure.Overlay. Layer L0:
// data only.
package network

// Full types.
const (
	LoadBalancers     = "Microsoft.Network/loadBalancers"
	PublicIPAddresses = "Microsoft.Network/publicIPAddresses"
	LoadBalancerPools = "Microsoft.Network/loadBalancers/backendAddressPools"
	SecurityGroups    = "Microsoft.Network/networkSecurityGroups"
	Interfaces        = "Microsoft.Network/networkInterfaces"
	VirtualNetworks   = "Microsoft.Network/virtualNetworks"
	Subnets           = "Microsoft.Network/virtualNetworks/subnets"
	PublicIPPrefixes  = "Microsoft.Network/publicIPPrefixes"

	PrivateLinkServices        = "Microsoft.Network/privateLinkServices"
	PrivateEndpointConnections = "Microsoft.Network/privateLinkServices/privateEndpointConnections"
)

// Type segments of what a load balancer holds.
const (
	FrontendIPConfigurations = "frontendIPConfigurations"
	BackendAddressPools      = "backendAddressPools"
	Probes                   = "probes"
)
