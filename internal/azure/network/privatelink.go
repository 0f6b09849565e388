package network

import "kaz/internal/azure"

// PrivateLinkService is the properties of a private link service. It lets other virtual networks reach the frontend
// of a load balancer.
type PrivateLinkService struct {
	LoadBalancerFrontendIPConfigurations []azure.Reference                        `json:"loadBalancerFrontendIpConfigurations,omitempty"`
	IPConfigurations                     []azure.Child[PrivateLinkAddress]        `json:"ipConfigurations,omitempty"`
	EnableProxyProtocol                  *bool                                    `json:"enableProxyProtocol,omitempty"`
	FQDNs                                []string                                 `json:"fqdns,omitempty" azure:"set"`
	Visibility                           *SubscriptionSet                         `json:"visibility,omitempty"`
	AutoApproval                         *SubscriptionSet                         `json:"autoApproval,omitempty"`
	PrivateEndpointConnections           []azure.Child[PrivateEndpointConnection] `json:"privateEndpointConnections,omitempty" azure:"read"`
	// ProvisioningState is as for [PublicIPAddress].
	ProvisioningState string `json:"provisioningState,omitempty" azure:"fold"`
}

// PrivateLinkAddress is an address from which a private link service talks to the
// load balancer.
type PrivateLinkAddress struct {
	Primary                   *bool            `json:"primary,omitempty"`
	PrivateIPAddress          string           `json:"privateIPAddress,omitempty" azure:"fold"`
	PrivateIPAllocationMethod string           `json:"privateIPAllocationMethod,omitempty" azure:"fold"`
	PrivateIPAddressVersion   string           `json:"privateIPAddressVersion,omitempty" azure:"fold"`
	Subnet                    *azure.Reference `json:"subnet,omitempty"`
}

// SubscriptionSet is the subscriptions that something is for.
type SubscriptionSet struct {
	Subscriptions []string `json:"subscriptions" azure:"set"`
}

// PrivateEndpointConnection is a private endpoint's connection to a private link service.
type PrivateEndpointConnection struct {
	PrivateEndpoint *azure.Reference `json:"privateEndpoint,omitempty" azure:"read"`
}
