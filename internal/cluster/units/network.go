package units

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/naming"
)

// egress is how machines reach the internet.
type egress struct {
	nat graph.Ref // a NAT gateway, or none
	// pool is the pool of the load balancer for outbound traffic of nodes, or none.
	pool graph.BackendPool
	// addresses are the public addresses of outbound traffic of nodes.
	addresses []graph.Ref
	// api is the public address of the API server if the control plane's outbound traffic has it, or none.
	api graph.Ref
}

// sources are the public addresses from which the machines of the cluster come.
func (e egress) sources() []graph.Ref {
	if e.api.IsZero() {
		return e.addresses
	}
	return append(slices.Clone(e.addresses), e.api)
}

// outbound makes what outbound traffic needs. UserDefinedRouting and None need nothing.
func (b *builder) outbound() egress {
	var e egress
	o := b.spec.Network.Outbound
	if o.Type != "NATGateway" && o.Type != "LoadBalancer" {
		return e
	}
	u := b.unit("outbound")
	var addresses []any
	for i := range o.PublicIPs {
		ref := u.Add(graph.Resource{
			Symbol: fmt.Sprintf("ip-%d", i), Type: "Microsoft.Network/publicIPAddresses", Name: b.names.OutboundAddress(i),
			Body: b.publicAddress(nil),
		})
		e.addresses = append(e.addresses, ref)
		addresses = append(addresses, id(ref))
	}
	if o.Type == "NATGateway" {
		e.nat = u.Add(graph.Resource{
			Symbol: "nat", Type: "Microsoft.Network/natGateways", Name: b.names.With("nat"),
			Body: object{"location": b.location(), "sku": object{"name": "Standard"}, "properties": object{
				"idleTimeoutInMinutes": o.IdleTimeoutMinutes, "publicIpAddresses": addresses,
			}},
		})
		return e
	}
	if b.names.Public() {
		e.api = b.apiAddress(u, "api-ip")
	}
	self := graph.SelfRef(u.Name, "balancer")
	var frontends, used []any
	for i, address := range addresses {
		frontends = append(frontends, object{"name": OutboundFrontend(i), "properties": object{"publicIPAddress": address}})
		used = append(used, id(self.Part("frontendIPConfigurations", OutboundFrontend(i))))
	}
	lb := u.Add(graph.Resource{
		Symbol: "balancer", Type: "Microsoft.Network/loadBalancers", Name: b.names.OutboundBalancer(),
		Body: object{"location": b.location(), "sku": object{"name": "Standard"}, "properties": object{
			"frontendIPConfigurations": frontends,
			"backendAddressPools":      []any{object{"name": OutboundPool}},
			"outboundRules":            []any{b.outboundRule(used, self.Part("backendAddressPools", OutboundPool))},
		}},
		// The cloud-controller-manager writes Services into it. Later changes of the outbound rule are made by [Outbound].
		Once: true,
	})
	e.pool = graph.BackendPool{Ref: lb.Part("backendAddressPools", OutboundPool)}
	return e
}

func (b *builder) outboundRule(frontends []any, pool graph.Ref) object {
	return object{"name": OutboundRule, "properties": object{
		"frontendIPConfigurations": frontends, "backendAddressPool": id(pool), "protocol": "All", "enableTcpReset": true,
		"idleTimeoutInMinutes": b.spec.Network.Outbound.IdleTimeoutMinutes,
	}}
}

// publicAddress is the body of a static public address in the zones of the control plane.
func (b *builder) publicAddress(properties object) object {
	all := object{"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"}
	maps.Copy(all, properties)
	body := object{"location": b.location(), "sku": object{"name": "Standard"}, "properties": all}
	if zones := b.spec.ControlPlane.Zones; len(zones) > 0 {
		body["zones"] = zoneNames(zones)
	}
	return body
}

// network is the network of the machines.
type network struct {
	vnet                graph.VirtualNetwork
	controlPlane, nodes graph.Subnet
	pools               map[string]graph.Subnet
}

func (b *builder) network(e egress) network {
	subnets := b.spec.Network.Subnets
	n := network{pools: map[string]graph.Subnet{}}
	if subnets.Nodes.ID != "" {
		n.vnet = graph.VirtualNetwork{Ref: graph.Existing(string(azure.ID(subnets.Nodes.ID).Parent()))}
		n.controlPlane, n.nodes = existingSubnet(subnets.ControlPlane.ID), existingSubnet(subnets.Nodes.ID)
		for _, pool := range b.d.Pools {
			n.pools[pool.Metadata.Name] = n.nodes
			if pool.Spec.Subnet.ID != "" {
				n.pools[pool.Metadata.Name] = existingSubnet(pool.Spec.Subnet.ID)
			}
		}
	} else {
		n = b.newNetwork(e)
	}
	b.ports["virtual-network"], b.ports["subnet.control-plane"], b.ports["subnet.nodes"] = n.vnet.Ref, n.controlPlane.Ref, n.nodes.Ref
	for pool, subnet := range n.pools {
		b.ports["subnet."+pool] = subnet.Ref
	}
	return n
}

func existingSubnet(id string) graph.Subnet { return graph.Subnet{Ref: graph.Existing(id)} }

func (b *builder) newNetwork(e egress) network {
	u := b.unit("network")
	controlPlane := u.Add(graph.Resource{
		Symbol: "security-control-plane", Type: "Microsoft.Network/networkSecurityGroups", Name: b.names.With("cp-nsg"),
		Body: object{"location": b.location(), "properties": object{"securityRules": b.rules(e)}},
	})
	nodes := u.Add(graph.Resource{
		Symbol: "security-nodes", Type: "Microsoft.Network/networkSecurityGroups", Name: b.names.With("node-nsg"), Once: true,
		Body: object{"location": b.location(), "properties": object{"securityRules": []any{}}},
	})
	table := graph.Existing(b.spec.Network.RouteTableID)
	if table.IsZero() && b.spec.Kubernetes.PodNetwork == "CloudRoutes" {
		table = u.Add(graph.Resource{
			Symbol: "routes", Type: "Microsoft.Network/routeTables", Name: b.names.With("rt"), Once: true,
			Body: object{"location": b.location(), "properties": object{"routes": []any{}}},
		})
	}
	subnet := func(name, cidr string, security graph.Ref) object {
		properties := object{"addressPrefix": cidr, "networkSecurityGroup": id(security), "defaultOutboundAccess": false}
		if !e.nat.IsZero() {
			properties["natGateway"] = id(e.nat)
		}
		if !table.IsZero() {
			properties["routeTable"] = id(graph.RouteTable{Ref: table})
		}
		return object{"name": name, "properties": properties}
	}
	s := b.spec.Network.Subnets
	all := []any{subnet("control-plane", s.ControlPlane.CIDR, controlPlane), subnet("nodes", s.Nodes.CIDR, nodes)}
	for _, pool := range b.d.Pools {
		if pool.Spec.Subnet.CIDR != "" {
			all = append(all, subnet(naming.PoolUnit(pool.Metadata.Name), pool.Spec.Subnet.CIDR, nodes))
		}
	}
	vnet := u.Add(graph.Resource{
		Symbol: "vnet", Type: "Microsoft.Network/virtualNetworks", Name: b.names.With("vnet"),
		Body: object{"location": b.location(), "properties": object{
			"addressSpace": object{"addressPrefixes": list(b.spec.Network.CIDRs)}, "subnets": all,
		}},
	})
	port := func(name string) graph.Subnet { return graph.Subnet{Ref: vnet.Part("subnets", name)} }
	n := network{vnet: graph.VirtualNetwork{Ref: vnet}, controlPlane: port("control-plane"), nodes: port("nodes"),
		pools: map[string]graph.Subnet{}}
	for _, pool := range b.d.Pools {
		n.pools[pool.Metadata.Name] = n.nodes
		if pool.Spec.Subnet.CIDR != "" {
			n.pools[pool.Metadata.Name] = port(naming.PoolUnit(pool.Metadata.Name))
		}
	}
	return n
}

// rules are the security rules of the control plane. Machines reach the public address of the API server from the addresses of
// their outbound traffic, and security groups see these addresses. So the rules allow them beside the sources of the definition.
func (b *builder) rules(e egress) []any {
	n := b.spec.Network
	rules := []any{}
	rule := func(name string, priority, port int, sources []any) {
		properties := object{
			"priority": priority, "direction": "Inbound", "access": "Allow", "protocol": "Tcp", "sourcePortRange": "*",
			"destinationAddressPrefix": "*", "destinationPortRange": fmt.Sprint(port),
		}
		if len(sources) == 1 {
			properties["sourceAddressPrefix"] = sources[0]
		} else {
			properties["sourceAddressPrefixes"] = sources
		}
		rules = append(rules, object{"name": name, "properties": properties})
	}
	ranges, tags := divide(n.APIServer.AllowedSources)
	if len(ranges) > 0 {
		rule("api-server", 2201, n.APIServer.Port, list(ranges))
	}
	for i, tag := range tags {
		rule("api-server-"+tagName(tag), 2300+i, n.APIServer.Port, []any{tag})
	}
	if b.names.Public() && !slices.Contains(n.APIServer.AllowedSources, "*") && len(e.addresses) > 0 {
		var own []any
		for _, address := range e.sources() {
			own = append(own, graph.Runtime{Of: address, Path: "ipAddress"})
		}
		rule("api-server-nodes", 2202, n.APIServer.Port, own)
	}
	ranges, tags = divide(n.SSHSources)
	if len(ranges) > 0 {
		rule("ssh", 2200, 22, list(ranges))
	}
	for i, tag := range tags {
		rule("ssh-"+tagName(tag), 2600+i, 22, []any{tag})
	}
	return rules
}

// divide tells ranges from service tags and *, of which Azure takes only one in a rule.
func divide(sources []string) (ranges, tags []string) {
	for _, source := range sources {
		if strings.ContainsAny(source[:1], "0123456789abcdef:") {
			ranges = append(ranges, source)
		} else {
			tags = append(tags, source)
		}
	}
	return ranges, tags
}

// api has the load balancers of the API server.
type api struct {
	pools []graph.BackendPool
	// names are the resources without which the API server's names do not resolve.
	names []graph.Ref
}

func (b *builder) api(n network, e egress) api {
	u := b.unit("api")
	var a api
	if b.names.Public() {
		address := e.api
		if address.IsZero() {
			address = b.apiAddress(u, "ip")
		}
		a.pools = append(a.pools, b.balancer(u, "public", b.names.With("api-lb"),
			object{"properties": object{"publicIPAddress": id(address)}}))
	}
	if b.names.Internal() {
		frontend := object{"properties": object{
			"subnet": id(n.controlPlane), "privateIPAddress": b.spec.Network.APIServer.InternalIP, "privateIPAllocationMethod": "Static",
		}}
		if zones := b.spec.ControlPlane.Zones; len(zones) > 0 {
			frontend["zones"] = zoneNames(zones)
		}
		a.pools = append(a.pools, b.balancer(u, "internal", b.names.With("api-ilb"), frontend))
		a.names = b.privateName(u, n)
	}
	b.ports["api"] = a.pools[0].Ref
	return a
}

// apiAddress adds the public address of the API server to a unit.
func (b *builder) apiAddress(u *graph.Unit, symbol string) graph.Ref {
	return u.Add(graph.Resource{
		Symbol: symbol, Type: "Microsoft.Network/publicIPAddresses", Name: b.names.APIAddress(),
		Body: b.publicAddress(object{"idleTimeoutInMinutes": 30, "dnsSettings": object{"domainNameLabel": b.names.DNSLabel()}}),
	})
}

// balancer adds a load balancer for the API server.
func (b *builder) balancer(u *graph.Unit, symbol, name string, frontend object) graph.BackendPool {
	self := graph.SelfRef(u.Name, symbol)
	frontend["name"] = "api"
	port := b.spec.Network.APIServer.Port
	properties := object{
		"frontendIPConfigurations": []any{frontend},
		"backendAddressPools":      []any{object{"name": "api"}},
		"probes": []any{object{"name": "readyz", "properties": object{
			"protocol": "Https", "port": port, "requestPath": "/readyz", "intervalInSeconds": 5, "probeThreshold": 2,
		}}},
		"loadBalancingRules": []any{object{"name": "api", "properties": object{
			"frontendIPConfiguration": id(self.Part("frontendIPConfigurations", "api")),
			"backendAddressPool":      id(self.Part("backendAddressPools", "api")),
			"probe":                   id(self.Part("probes", "readyz")),
			"protocol":                "Tcp", "frontendPort": port, "backendPort": port, "idleTimeoutInMinutes": 30, "enableTcpReset": true,
			"disableOutboundSnat": true,
		}}},
	}
	if symbol == "public" && b.spec.Network.Outbound.Type == "LoadBalancer" {
		properties["outboundRules"] = []any{
			b.outboundRule([]any{id(self.Part("frontendIPConfigurations", "api"))}, self.Part("backendAddressPools", "api")),
		}
	}
	lb := u.Add(graph.Resource{
		Symbol: symbol, Type: "Microsoft.Network/loadBalancers", Name: name,
		Body: object{"location": b.location(), "sku": object{"name": "Standard"}, "properties": properties},
	})
	return graph.BackendPool{Ref: lb.Part("backendAddressPools", "api")}
}

// privateName adds the private zone with the internal name of the API server.
func (b *builder) privateName(u *graph.Unit, n network) []graph.Ref {
	zone := u.Add(graph.Resource{
		Symbol: "zone", Type: "Microsoft.Network/privateDnsZones", Name: b.names.Zone(), Body: object{"location": "global"},
	})
	link := u.Add(graph.Resource{
		Symbol: "zone-link", Type: "Microsoft.Network/privateDnsZones/virtualNetworkLinks",
		Name:  b.names.Zone() + "/" + b.names.With("vnet"),
		After: []graph.Ref{zone},
		Body:  object{"location": "global", "properties": object{"registrationEnabled": false, "virtualNetwork": id(n.vnet)}},
	})
	record := u.Add(graph.Resource{
		Symbol: "zone-record", Type: "Microsoft.Network/privateDnsZones/A", Name: b.names.Zone() + "/api", After: []graph.Ref{zone},
		Body: object{"properties": object{"ttl": 60, "aRecords": []any{object{"ipv4Address": b.spec.Network.APIServer.InternalIP}}}},
	})
	return []graph.Ref{link, record}
}

// tagName is the name of a service tag in the name of a rule.
func tagName(tag string) string {
	if tag == "*" {
		return "any"
	}
	return symbol(tag)
}
