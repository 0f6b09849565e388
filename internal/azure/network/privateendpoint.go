package network

import "kaz/internal/azure"

// Full types of private endpoints and private DNS zones.
const (
	PrivateEndpoints     = "Microsoft.Network/privateEndpoints"
	PrivateZones         = "Microsoft.Network/privateDnsZones"
	PrivateZoneLinks     = PrivateZones + "/virtualNetworkLinks"
	PrivateZoneGroupPart = "privateDnsZoneGroups"
)

// PrivateEndpoint is the properties of a private endpoint: an address of a service in a subnet.
type PrivateEndpoint struct {
	ProvisioningState string                        `json:"provisioningState,omitempty" azure:"read"`
	Subnet            azure.Reference               `json:"subnet"`
	Connections       []azure.Child[LinkConnection] `json:"privateLinkServiceConnections,omitempty"`
}

// LinkConnection is the service of a private endpoint.
type LinkConnection struct {
	Service azure.ID `json:"privateLinkServiceId,omitempty"`
	Groups  []string `json:"groupIds,omitempty" azure:"set"`
}

// PrivateZone is the properties of a private DNS zone. It has none that are written.
type PrivateZone struct {
	ProvisioningState string `json:"provisioningState,omitempty" azure:"read"`
}

// PrivateZoneLink is the properties of the link of a private DNS zone with a virtual network.
type PrivateZoneLink struct {
	VirtualNetwork      azure.Reference `json:"virtualNetwork"`
	RegistrationEnabled *bool           `json:"registrationEnabled,omitempty"`
}

// PrivateZoneGroup is the properties of the zones in which a private endpoint has records.
type PrivateZoneGroup struct {
	Zones []PrivateZoneConfig `json:"privateDnsZoneConfigs,omitempty"`
}

// PrivateZoneConfig is a zone in which a private endpoint has records.
type PrivateZoneConfig struct {
	Name       string              `json:"name" azure:"key"`
	Properties PrivateZoneConfigOf `json:"properties"`
}

// PrivateZoneConfigOf names the zone.
type PrivateZoneConfigOf struct {
	Zone azure.ID `json:"privateDnsZoneId,omitempty"`
}
