package vnet

import (
	"net/netip"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/schema"
)

// effective returns the action of a network interface that computes what applies to it. The interface must be attached to a machine.
func effective(compute func(c *behaviour.Call) any) behaviour.Action {
	return behaviour.Action{
		Long: true, Busy: "-",
		Do: func(c *behaviour.Call) (any, error) {
			if len(schema.ReferrersAt(c.World, c.ID, machineInterfaces)) == 0 {
				return nil, behaviour.Invalid("NetworkInterfaceNotAttachedToVM",
					"Network Interface %s is not attached to a virtual machine. The network interface must be attached to a running "+
						"virtual machine.", c.ID)
			}
			return nil, nil
		},
		Settle: func(c *behaviour.Call) (any, error) { return compute(c), nil },
	}
}

// firstSubnet returns the subnet of the first IP configuration of a network interface, and its id.
func firstSubnet(c *behaviour.Call) (azure.ID, behaviour.Object) {
	for _, configuration := range behaviour.Objects(c.Doc, "properties.ipConfigurations") {
		id := behaviour.RefID(configuration, "properties.subnet")
		subnet, _ := c.Get(id)
		return id, subnet
	}
	return "", nil
}

// systemRoutes are the prefixes that Azure drops unless a virtual network has them.
var systemRoutes = []string{"10.0.0.0/8", "192.168.0.0/16", "100.64.0.0/10", "172.16.0.0/12"}

// EffectiveRoutes returns the routes of the network interface of a call, and the id of its route table.
func EffectiveRoutes(c *behaviour.Call) (behaviour.Object, azure.ID) {
	_, subnet := firstSubnet(c)
	routes, _ := effectiveRoutes(c).(behaviour.Object)
	return routes, behaviour.RefID(subnet, "properties.routeTable")
}

// EffectiveGroups returns the rules of the security groups of the network interface of a call.
func EffectiveGroups(c *behaviour.Call) behaviour.Object {
	groups, _ := effectiveGroups(c).(behaviour.Object)
	return groups
}

// effectiveRoutes returns the routes of Azure and the routes of the subnet's route table. A route of the table makes the default route for
// the same prefix invalid.
func effectiveRoutes(c *behaviour.Call) any {
	id, subnet := firstSubnet(c)
	network, _ := c.Get(id.Parent())
	table, _ := c.Get(behaviour.RefID(subnet, "properties.routeTable"))
	routes := []any{}
	disabled := behaviour.Bool(table, "properties.disableBgpRoutePropagation")
	add := func(name, source, state, prefix, hop string, next []any) {
		route := behaviour.Object{"source": source, "state": state, "addressPrefix": []any{prefix}, "nextHopType": hop,
			"nextHopIpAddress": next, "disableBgpRoutePropagation": disabled, "hasBgpOverride": false}
		if name != "" {
			route["name"] = name
		}
		routes = append(routes, route)
	}
	custom := behaviour.Objects(table, "properties.routes")
	byDefault := func(prefix, hop string) {
		state := "Active"
		for _, route := range custom {
			if behaviour.Text(route, "properties.addressPrefix") == prefix {
				state = "Invalid"
			}
		}
		add("", "Default", state, prefix, hop, []any{})
	}
	for _, prefix := range ipam.AddressSpace(network) {
		byDefault(prefix, "VnetLocal")
	}
	for _, peering := range behaviour.Objects(network, peeringsPath) {
		for _, prefix := range behaviour.Texts(peering, "properties.remoteAddressSpace.addressPrefixes") {
			byDefault(prefix, "VNetPeering")
		}
	}
	byDefault("0.0.0.0/0", "Internet")
	for _, prefix := range systemRoutes {
		byDefault(prefix, "None")
	}
	for _, route := range custom {
		next := []any{}
		if address := behaviour.Text(route, "properties.nextHopIpAddress"); address != "" {
			next = append(next, address)
		}
		add(behaviour.Text(route, "name"), "User", "Active", behaviour.Text(route, "properties.addressPrefix"),
			behaviour.Text(route, "properties.nextHopType"), next)
	}
	return behaviour.Object{"value": routes}
}

// effectiveGroups returns the rules of the security groups of a network interface and of its subnet.
func effectiveGroups(c *behaviour.Call) any {
	id, subnet := firstSubnet(c)
	groups := []any{}
	for _, at := range []struct {
		kind string
		id   azure.ID
		doc  behaviour.Object
	}{{"subnet", id, subnet}, {"networkInterface", c.ID, c.Doc}} {
		group := behaviour.RefID(at.doc, "properties.networkSecurityGroup")
		doc, there := c.Get(group)
		if !there {
			continue
		}
		rules := []any{}
		for _, list := range []string{"securityRules", "defaultSecurityRules"} {
			for _, rule := range behaviour.Objects(doc, "properties."+list) {
				rules = append(rules, effectiveRule(list+"/", rule))
			}
		}
		groups = append(groups, behaviour.Object{"networkSecurityGroup": behaviour.Ref(group),
			"association": behaviour.Object{at.kind: behaviour.Ref(at.id)}, "effectiveSecurityRules": rules})
	}
	return behaviour.Object{"value": groups}
}

// effectiveRule returns a rule with its ports as ranges, and its single values as lists too.
func effectiveRule(prefix string, rule behaviour.Object) behaviour.Object {
	made := behaviour.Object{"name": prefix + behaviour.Text(rule, "name")}
	for _, field := range []string{"protocol", "access", "direction", "priority", "sourceAddressPrefix", "destinationAddressPrefix"} {
		if value := behaviour.At(rule, "properties."+field); value != nil {
			made[field] = value
		}
	}
	if made["protocol"] == "*" {
		made["protocol"] = "All"
	}
	for _, side := range []string{"source", "destination"} {
		ports := behaviour.Texts(rule, "properties."+side+"PortRanges")
		addresses := behaviour.Texts(rule, "properties."+side+"AddressPrefixes")
		if one := behaviour.Text(rule, "properties."+side+"PortRange"); one != "" {
			ports = append(ports, one)
		}
		if one := behaviour.Text(rule, "properties."+side+"AddressPrefix"); one != "" {
			addresses = append(addresses, one)
		}
		for i, port := range ports {
			ports[i] = portRange(port)
		}
		made[side+"PortRanges"], made[side+"AddressPrefixes"] = schema.Array(ports), schema.Array(addresses)
		if len(ports) == 1 {
			made[side+"PortRange"] = ports[0]
		}
	}
	return made
}

// portRange returns "80-80" for "80" and "0-65535" for "*".
func portRange(port string) string {
	switch {
	case port == "*":
		return "0-65535"
	case strings.Contains(port, "-"):
		return port
	}
	return port + "-" + port
}

// balancersOf returns the load balancers that have an interface in a pool or a NAT rule.
func balancersOf(c *behaviour.Call) (any, error) {
	all := []any{}
	seen := map[string]bool{}
	for _, configuration := range behaviour.Objects(c.Old, "properties.ipConfigurations") {
		references := append(behaviour.Objects(configuration, "properties.loadBalancerBackendAddressPools"),
			behaviour.Objects(configuration, "properties.loadBalancerInboundNatRules")...)
		for _, reference := range references {
			id := azure.ID(behaviour.Text(reference, "id")).Parent()
			if view, there := c.View(id); there && !seen[id.Key()] {
				seen[id.Key()] = true
				all = append(all, view)
			}
		}
	}
	return behaviour.Object{"value": all}, nil
}

// networkUsage returns how many addresses each subnet of a virtual network uses. Azure keeps five of each range.
func networkUsage(c *behaviour.Call) (any, error) {
	const reserved = 5
	usages := []any{}
	for _, subnet := range behaviour.Objects(c.Old, "properties.subnets") {
		id := c.ID.Child("subnets", behaviour.Text(subnet, "name"))
		limit := 0
		for _, text := range ipam.SubnetPrefixes(subnet) {
			if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is4() {
				limit += 1<<(p.Addr().BitLen()-p.Bits()) - reserved
			}
		}
		usages = append(usages, behaviour.Object{"id": string(id), "currentValue": len(subnetUsers(c.World, id)), "limit": limit,
			"name": behaviour.Object{"value": "SubnetSpace", "localizedValue": "Subnet size and usage"}, "unit": "Count"})
	}
	return behaviour.Object{"value": usages}, nil
}
