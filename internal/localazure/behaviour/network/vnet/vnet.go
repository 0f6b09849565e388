// Package vnet has the behaviour of virtual networks and what is in them: subnets, peerings, route tables, NAT
// gateways and network interfaces. Layer L2.
package vnet

import "kaz/internal/localazure/behaviour"

// Types returns the resource types of this package.
func Types() []behaviour.Type {
	return []behaviour.Type{
		virtualNetworks(), subnets(), delegations(), peerings(),
		routeTables(), routes(), natGateways(),
		networkInterfaces(), ipConfigurations(),
	}
}
