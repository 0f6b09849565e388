package network

import "kaz/internal/azure"

// RouteTables is the full type of route tables.
const RouteTables = "Microsoft.Network/routeTables"

// VirtualAppliance is the next hop type of routes that lead to a machine's address.
const VirtualAppliance = "VirtualAppliance"

// RouteTable is the properties of a route table.
type RouteTable struct {
	Routes []azure.Child[Route] `json:"routes,omitempty"`

	ProvisioningState string `json:"provisioningState,omitempty" azure:"read"`
}

// Route is a route of a route table: the prefix of the destination and the next hop.
type Route struct {
	AddressPrefix    string `json:"addressPrefix,omitempty" azure:"fold"`
	NextHopType      string `json:"nextHopType,omitempty" azure:"fold"`
	NextHopIPAddress string `json:"nextHopIpAddress,omitempty" azure:"fold"`
}
