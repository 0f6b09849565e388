// Package network composes the behaviour of Microsoft.Network from its packages. Packages schema and ipam have what all
// types share. Each other package has the types of one subject. Layer L2.
//
// A stored document has no back-references. Azure shows some references in both directions. They are computed from the
// world's reference index when the resource is read.
package network

import (
	_ "embed"
	"slices"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/appgateway"
	"kaz/internal/localazure/behaviour/network/dns"
	"kaz/internal/localazure/behaviour/network/loadbalancer"
	"kaz/internal/localazure/behaviour/network/privatelink"
	"kaz/internal/localazure/behaviour/network/publicip"
	"kaz/internal/localazure/behaviour/network/security"
	"kaz/internal/localazure/behaviour/network/trafficmanager"
	"kaz/internal/localazure/behaviour/network/vnet"
	"kaz/internal/localazure/behaviour/network/watcher"
)

//go:embed types.txt
var table string

//go:embed actions.txt
var actions string

//go:embed routes.txt
var routes string

// Provider is Microsoft.Network.
func Provider() behaviour.Provider {
	types := slices.Concat(publicip.Types(), vnet.Types(), security.Types(), loadbalancer.Types(), privatelink.Types(), dns.Types(),
		appgateway.Types(), trafficmanager.Types())
	firewall := behaviour.Network()
	firewall.Protocol = behaviour.FirewallOperations()
	now := behaviour.Network() // writes end in their reply
	now.Long = map[behaviour.Verb]behaviour.Headers{behaviour.Delete: now.Long[behaviour.Delete]}
	types = behaviour.Describe(table, map[string]behaviour.Style{"network": behaviour.Network(), "firewall": firewall, "now": now}, types)
	types = behaviour.Describe(actions, nil, types)
	for i := range types {
		complete(&types[i])
	}
	return behaviour.Provider{
		Types: types,
		Routes: slices.Concat(publicip.Routes(), vnet.Routes(), trafficmanager.Routes(), sharedKeyRoutes(),
			behaviour.DescribeRoutes(routes), []behaviour.Route{usages()}),
	}
}

// complete gives a type of the tables what takes more than a row.
func complete(t *behaviour.Type) {
	switch t.Name {
	case "Microsoft.Network/connections":
		t.Fill = keepSharedKey
		t.Show = func(_ *behaviour.Call, view behaviour.Object) { behaviour.Hide(view) }
	case "Microsoft.Network/virtualNetworkGateways":
		t.Views = map[string]func(c *behaviour.Call) (any, error){"connections": connectionsOf}
		t.Fill, t.Settle, t.Show = fillGateway, peerGateway, hide
		t.Own = append(slices.Clip(t.Own), ipsecField)
		t.Actions["listRadiusSecrets"] = listRadiusSecrets("properties.vpnClientConfiguration.radiusServers")
		t.Actions["setvpnclientipsecparameters"] = ipsecParameters(true)
		t.Actions["getvpnclientipsecparameters"] = ipsecParameters(false)
	case "Microsoft.Network/vpnServerConfigurations":
		t.Actions = map[string]behaviour.Action{"listRadiusSecrets": listRadiusSecrets("properties.radiusServers")}
	case "Microsoft.Network/networkWatchers":
		watcher.Complete(t)
	case "Microsoft.Network/publicIPAddresses":
		t.Actions["ddosProtectionStatus"] = polledAction(addressProtection)
	case "Microsoft.Network/virtualNetworks":
		t.Actions["ddosProtectionStatus"] = polledAction(networkProtection)
	case "Microsoft.Network/virtualWans":
		t.Actions["vpnServerConfigurations"] = polledAction(serverConfigurations)
	case "Microsoft.Network/expressRoutePorts":
		t.Fill = keepLinks
	case "Microsoft.Network/expressRouteCircuits":
		t.Fill = fillCircuit
	case "Microsoft.Network/azureFirewalls":
		t.Settle, t.Show = addressFirewall, hide
		t.Own = append(slices.Clip(t.Own), leasesField)
	case "Microsoft.Network/firewallPolicies", "Microsoft.Network/firewallPolicies/ruleCollectionGroups":
		t.Show = showSize
	case "Microsoft.Network/virtualHubs":
		t.Settle = routeHub
	case "Microsoft.Network/vpnGateways":
		t.Settle, t.Show = peerHubGateway, hide
		t.Own = append(slices.Clip(t.Own), leasesField)
	case "Microsoft.Network/networkVirtualAppliances":
		t.Settle, t.Show = interfaceAppliance, hide
		t.Own = append(slices.Clip(t.Own), leasesField, "properties.addressPrefix", "properties.privateIpAddress")
	}
}
