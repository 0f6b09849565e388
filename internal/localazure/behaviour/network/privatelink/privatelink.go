// Package privatelink has the behaviour of private link services, private endpoints and their DNS zone groups. Layer L2.
package privatelink

import "kaz/internal/localazure/behaviour"

// Types returns the resource types of this package.
func Types() []behaviour.Type {
	return []behaviour.Type{
		privateLinkServices(), linkConfigurations(), endpointConnections(),
		privateEndpoints(), linkConnections("privateLinkServiceConnections"), linkConnections("manualPrivateLinkServiceConnections"),
		zoneGroups(), zoneConfigurations(),
	}
}
