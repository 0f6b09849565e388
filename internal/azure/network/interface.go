package network

import "kaz/internal/azure"

// Interface is the properties of a network interface.
type Interface struct {
	Primary          *bool                          `json:"primary,omitempty" azure:"read"`
	IPConfigurations []azure.Child[IPConfiguration] `json:"ipConfigurations,omitempty"`

	ProvisioningState string           `json:"provisioningState,omitempty" azure:"read"`
	VirtualMachine    *azure.Reference `json:"virtualMachine,omitempty" azure:"read"`
}

// IPConfiguration is one address of a network interface.
type IPConfiguration struct {
	Primary                 *bool            `json:"primary,omitempty"`
	PrivateIPAddress        string           `json:"privateIPAddress,omitempty" azure:"read"`
	PrivateIPAddressVersion string           `json:"privateIPAddressVersion,omitempty" azure:"fold"`
	PublicIPAddress         *azure.Reference `json:"publicIPAddress,omitempty"`

	LoadBalancerBackendAddressPools []azure.Reference `json:"loadBalancerBackendAddressPools,omitempty"`
}
