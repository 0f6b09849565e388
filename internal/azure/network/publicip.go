package network

import "kaz/internal/azure"

// PublicIPAddress is the properties of a public IP.
type PublicIPAddress struct {
	PublicIPAllocationMethod string `json:"publicIPAllocationMethod,omitempty" azure:"fold"`
	PublicIPAddressVersion   string `json:"publicIPAddressVersion,omitempty" azure:"fold"`

	IPAddress       string           `json:"ipAddress,omitempty" azure:"read"`
	IPConfiguration *azure.Reference `json:"ipConfiguration,omitempty" azure:"read"`
}
