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

// Routes returns the requests of this package that are not to a resource.
func Routes() []behaviour.Route {
	const subscription, group = "/subscriptions/{subscription}", "/resourceGroups/{group}"
	return []behaviour.Route{
		availableDelegations(subscription, subscription),
		availableDelegations(subscription+group, subscription+"/resourceGroup/{group}"),
	}
}
