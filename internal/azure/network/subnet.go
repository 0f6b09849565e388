package network

// Subnet is the properties of a subnet of a virtual network.
type Subnet struct {
	AddressPrefix   string   `json:"addressPrefix,omitempty" azure:"read"`
	AddressPrefixes []string `json:"addressPrefixes,omitempty" azure:"read"`
	// PrivateLinkServiceNetworkPolicies must be Disabled where a private link service
	// takes its addresses.
	PrivateLinkServiceNetworkPolicies string `json:"privateLinkServiceNetworkPolicies,omitempty" azure:"fold"`
	// PrivateEndpointNetworkPolicies must be Disabled where older regions give private endpoints their addresses.
	PrivateEndpointNetworkPolicies string            `json:"privateEndpointNetworkPolicies,omitempty" azure:"fold"`
	ServiceEndpoints               []ServiceEndpoint `json:"serviceEndpoints,omitempty" azure:"key=service"`
}

// ServiceEndpoint lets a subnet reach a service by Azure's own network.
type ServiceEndpoint struct {
	Service   string   `json:"service"`
	Locations []string `json:"locations,omitempty" azure:"set"`
}
