package network

import "kaz/internal/azure"

// PublicIPAddress is the properties of a public IP.
type PublicIPAddress struct {
	PublicIPAllocationMethod string           `json:"publicIPAllocationMethod,omitempty" azure:"fold"`
	PublicIPAddressVersion   string           `json:"publicIPAddressVersion,omitempty" azure:"fold"`
	PublicIPPrefix           *azure.Reference `json:"publicIPPrefix,omitempty"`
	IPTags                   []IPTag          `json:"ipTags,omitempty" azure:"positional"`
	// DNSSettings removes the label if it is absent in a view. A view without an opinion repeats the present
	// settings.
	DNSSettings *DNSSettings `json:"dnsSettings,omitempty" azure:"exact"`
	// ProvisioningState is Azure's own. A view states it only so that a failed resource is written once more.
	ProvisioningState string `json:"provisioningState,omitempty" azure:"fold"`

	IPAddress       string           `json:"ipAddress,omitempty" azure:"read"`
	IPConfiguration *azure.Reference `json:"ipConfiguration,omitempty" azure:"read"`
	NATGateway      *azure.Reference `json:"natGateway,omitempty" azure:"read"`
}

// IPTag says what kind of address a public IP is: how it is routed, and what may use it.
type IPTag struct {
	IPTagType string `json:"ipTagType"`
	Tag       string `json:"tag"`
}

// DNSSettings name a public IP in Azure's DNS.
type DNSSettings struct {
	DomainNameLabel string `json:"domainNameLabel,omitempty" azure:"fold"`
}
