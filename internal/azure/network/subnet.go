package network

// Subnet is the properties of a subnet of a virtual network.
type Subnet struct {
	AddressPrefix   string   `json:"addressPrefix,omitempty" azure:"read"`
	AddressPrefixes []string `json:"addressPrefixes,omitempty" azure:"read"`
	// PrivateLinkServiceNetworkPolicies must be Disabled where a private link service
	// takes its addresses.
	PrivateLinkServiceNetworkPolicies string `json:"privateLinkServiceNetworkPolicies,omitempty" azure:"fold"`
}
