package network

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

// quotas are the limits of a subscription in a region, with Azure's names.
var quotas = []struct {
	name, text, of string
	limit          int
}{
	{"VirtualNetworks", "Virtual Networks", "virtualNetworks", 1000},
	{"StaticPublicIPAddresses", "Static Public IP Addresses", "publicIPAddresses", 1000},
	{"NetworkSecurityGroups", "Network Security Groups", "networkSecurityGroups", 5000},
	{"PublicIPAddresses", "Public IP Addresses", "publicIPAddresses", 1000},
	{"PublicIpPrefixes", "Public Ip Prefixes", "publicIPPrefixes", 2147483647},
	{"NatGateways", "Nat Gateways", "natGateways", 1000},
	{"NetworkInterfaces", "Network Interfaces", "networkInterfaces", 65536},
	{"PrivateEndpoints", "Private Endpoints", "privateEndpoints", 65536},
	{"PrivateLinkServices", "Private Link Services", "privateLinkServices", 800},
	{"LoadBalancers", "Load Balancers", "loadBalancers", 1000},
	{"ApplicationSecurityGroups", "Application Security Groups", "applicationSecurityGroups", 3000},
	{"RouteTables", "Route Tables", "routeTables", 200},
}

// usages is the request for the usage and the limits of a subscription in a region.
func usages() behaviour.Route {
	return behaviour.Route{
		Method:     "GET",
		Pattern:    "/subscriptions/{subscription}/providers/Microsoft.Network/locations/{location}/usages",
		Permission: schema.Namespace + "locations/usages/read",
		Do: func(c *behaviour.Call) (behaviour.Reply, error) {
			values := make([]any, len(quotas))
			scope := azure.SubscriptionID(c.Param["subscription"])
			for i, q := range quotas {
				values[i] = behaviour.Object{
					"id":           string(scope) + "/providers/Microsoft.Network/locations/" + c.Param["location"] + "/usages/" + q.name,
					"name":         behaviour.Object{"value": q.name, "localizedValue": q.text},
					"currentValue": used(c, scope, q.of, q.name == "StaticPublicIPAddresses"), "limit": q.limit, "unit": "Count",
				}
			}
			return behaviour.Reply{Status: 200, Body: behaviour.Object{"value": values}}, nil
		},
	}
}

func used(c *behaviour.Call, scope azure.ID, of string, static bool) int {
	n := 0
	for _, doc := range c.List(scope, schema.Namespace+of) {
		if !strings.EqualFold(behaviour.Text(doc, "location"), c.Param["location"]) {
			continue
		}
		if !static || behaviour.Text(doc, "properties.publicIPAllocationMethod") == "Static" {
			n++
		}
	}
	return n
}
