package vnet

import (
	"net/netip"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/schema"
)

const subnetRouteTable = "properties.subnets.properties.routeTable"

func routeTables() behaviour.Type {
	return schema.Tracked("routeTables", behaviour.Type{
		Style: schema.RetryAfter(2, 3),
		Own:   []string{"properties.subnets"},
		Fill: func(c *behaviour.Call) error {
			if err := schema.Flag(c, "properties.disableBgpRoutePropagation", false); err != nil {
				return err
			}
			return schema.List(c, "properties.routes")
		},
		Check: checkRoutes,
		InUse: func(c *behaviour.Call, _ []behaviour.Referrer) error {
			return behaviour.Invalid("InUseRouteTableCannotBeDeleted", "Route table %s is in use and cannot be deleted.", c.ID.Name())
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			schema.ShowReferences(view, "properties.subnets", schema.ReferrersAt(c.World, c.ID, subnetRouteTable))
		},
	})
}

// checkRoutes refuses more than 400 routes, and two routes for the same addresses.
func checkRoutes(c *behaviour.Call) error {
	const most = 400
	routes := behaviour.Objects(c.Doc, "properties.routes")
	if err := schema.CheckLimit(c, "RouteCountLimitReached", "routes", len(routes), most); err != nil {
		return err
	}
	to := map[string]string{}
	for _, route := range routes {
		prefix := strings.ToLower(behaviour.Text(route, "properties.addressPrefix"))
		if other := to[prefix]; other != "" {
			return behaviour.Invalid("RouteConflict", "Route %s conflicts with route %s. Routes cannot have the same AddressPrefix %s.",
				behaviour.Text(route, "name"), other, prefix)
		}
		to[prefix] = behaviour.Text(route, "name")
	}
	return nil
}

func routes() behaviour.Type {
	return schema.Inside("routeTables/routes", "properties.routes", behaviour.Type{
		Style: schema.RetryAfter(2, 3),
		Fill:  fillRoute,
	})
}

func fillRoute(c *behaviour.Call) error {
	prefix := behaviour.Text(c.Doc, "properties.addressPrefix")
	if prefix == "" {
		return schema.Missing(c, "properties.addressPrefix")
	}
	if _, err := netip.ParsePrefix(prefix); err == nil || !ipam.IsServiceTag(prefix) || prefix == "*" {
		if _, err := ipam.ParsePrefix(c.ID, prefix); err != nil {
			return err
		}
	}
	if err := schema.Required(c, "properties.nextHopType", "VirtualNetworkGateway", "VnetLocal", "Internet", "VirtualAppliance",
		"None"); err != nil {
		return err
	}
	behaviour.Set(c.Doc, "properties.hasBgpOverride", false)
	return checkNextHop(c)
}

func checkNextHop(c *behaviour.Call) error {
	hop, kind := behaviour.Text(c.Doc, "properties.nextHopIpAddress"), behaviour.Text(c.Doc, "properties.nextHopType")
	if kind != "VirtualAppliance" {
		if hop != "" {
			return behaviour.Invalid("NextHopIpAddressNotAllowed",
				"NextHopIpAddress must be Null or Empty in route %s when NextHopType is %s.", c.ID.Name(), kind)
		}
		behaviour.Remove(c.Doc, "properties.nextHopIpAddress")
		return nil
	}
	if hop == "" {
		return behaviour.Invalid("MissingNextHopIpAddress",
			"NextHopIpAddress cannot be Null or Empty in route %s when NextHopType is VirtualAppliance.", c.ID.Name())
	}
	if _, ok := ipam.Parse(hop); !ok {
		return behaviour.Invalid("InvalidNextHopIpAddress", "NextHopIpAddress %s in route %s is not a valid IP address.", hop, c.ID.Name())
	}
	return nil
}
