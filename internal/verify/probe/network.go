package probe

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"kaz/internal/azure"
	"kaz/internal/verify/bench"
)

func networkProbes() []Probe {
	const area = "network"
	return []Probe{
		{
			Name: "create-only", Area: area, Minutes: 1, Rights: all(nsgType, routesType), Run: createOnly,
			Tries: "PUT a security group and a route table that exist with If-None-Match: *; want 412",
		},
		{
			Name: "pool-at-creation", Area: area, Minutes: 2, Cents: 1, Needs: []string{network},
			Rights: append(all(lbType, pipType), lbType+"/backendAddressPools/read"), Run: poolAtCreation,
			Tries: "PUT a new load balancer with two members by address and read its pool; PUT it again with a third",
		},
		{
			Name: "pool-interfaces", Area: area, Minutes: 2, Cents: 1, Needs: []string{network},
			Rights: append(all(lbType, nicType), poolType+"/*", lbType+"/backendAddressPools/join/action"), Run: poolInterfaces,
			Tries: "put a network interface into a pool, read the pool, and write it back without its members",
		},
		{
			Name: "operation-urls", Area: area, Minutes: 2, Rights: all(vnetType, diskType), Run: operationURLs,
			Tries: "create a network and a disk, and compare the polling URLs with the endpoint",
		},
		{
			Name: "subnets-kept", Area: area, Minutes: 1, Rights: all(vnetType), Run: subnetsKept,
			Tries: "PUT a virtual network without its subnets; want that it keeps them",
		},
		{
			Name: "address-ranges", Area: area, Minutes: 1, Rights: all(vnetType), Run: addressRanges,
			Tries: "create networks with reserved address ranges; want refusals",
		},
		{
			Name: "overlapping-ranges", Area: area, Minutes: 1, Rights: all(nsgType), Run: overlappingRanges,
			Tries: "create a security rule with overlapping address ranges; want a refusal",
		},
		{
			Name: "route-count", Area: area, Minutes: 1, Rights: all(routesType), Run: routeCount,
			Tries: "create a route table with 401 routes; want a refusal",
		},
		{
			Name: "outbound-minutes", Area: area, Minutes: 1, Cents: 1, Rights: all(lbType, pipType), Run: outboundMinutes,
			Tries: "create an outbound rule with an idle timeout of 121 minutes; want a refusal. Then try 101",
		},
		{
			Name: "tag-names", Area: area, Minutes: 1, Rights: all(routesType), Run: tagNames,
			Tries: "create resources with tags that begin with microsoft, azure and windows; want refusals",
		},
	}
}

const (
	routesType = "Microsoft.Network/routeTables"
	poolType   = "Microsoft.Network/loadBalancers/backendAddressPools"
)

func createOnly(ctx context.Context, b *bench.Bench) {
	for _, id := range []azure.ID{b.ID(nsgType, "nsg"), b.ID(routesType, "routes")} {
		b.Make(ctx, id, at(b, object{}), bench.IfNew())
		a := b.Try(ctx, azure.Put, id, at(b, object{}), bench.IfNew())
		b.Agree(a.Refused(http.StatusPreconditionFailed), "PUT of %s that exists with If-None-Match: *: %s", kind(id), a)
	}
}

// kind is the last part of a type.
func kind(id azure.ID) string { return azure.ID("/" + id.Type()).Name() }

// frontend makes a public IP and returns the frontends of a load balancer with it.
func frontend(ctx context.Context, b *bench.Bench) list {
	ip := b.ID(pipType, "ip")
	b.Make(ctx, ip, sku("Standard", at(b, object{"publicIPAllocationMethod": "Static"})))
	return list{child("front", object{"publicIPAddress": ref(ip)})}
}

// members are addresses in the fixture network.
func members(b *bench.Bench, addresses ...string) list {
	var all list
	for _, a := range addresses {
		all = append(all, child("member-"+a, object{"ipAddress": a, "virtualNetwork": ref(vnet(b))}))
	}
	return all
}

const (
	poolAddresses  = "properties.loadBalancerBackendAddresses"
	poolInterfaced = "properties.backendIPConfigurations"
)

func poolAtCreation(ctx context.Context, b *bench.Bench) {
	id := b.ID(lbType, "lb")
	pool := id.Child("backendAddressPools", "pool")
	front := frontend(ctx, b)
	body := func(addresses ...string) object {
		return sku("Standard", at(b, object{
			"frontendIPConfigurations": front,
			"backendAddressPools":      list{child("pool", object{"loadBalancerBackendAddresses": members(b, addresses...)})},
		}))
	}
	b.Make(ctx, id, body("10.77.0.50", "10.77.0.51"))
	n := bench.Count(b.Get(ctx, pool), poolAddresses)
	b.See("after the PUT that creates the load balancer, its pool has %d of 2 members", n)
	b.Make(ctx, id, body("10.77.0.50", "10.77.0.51", "10.77.0.52"))
	n = bench.Count(b.Get(ctx, pool), poolAddresses)
	b.Agree(n == 3, "after a second PUT the pool has %d of 3 members", n)
}

func poolInterfaces(ctx context.Context, b *bench.Bench) {
	id, nic := b.ID(lbType, "lb"), b.ID(nicType, "nic")
	pool := id.Child("backendAddressPools", "pool")
	b.Make(ctx, id, sku("Standard", at(b, object{
		"frontendIPConfigurations": list{child("front", object{"subnet": ref(subnet(b))})},
		"backendAddressPools":      list{child("pool", object{})},
	})))
	b.Make(ctx, nic, at(b, object{"ipConfigurations": list{child("ip", object{
		"subnet": ref(subnet(b)), "primary": true, "loadBalancerBackendAddressPools": list{ref(pool)},
	})}}))
	doc := b.Get(ctx, pool)
	shown := bench.Has(doc, poolAddresses+".0.properties.networkInterfaceIPConfiguration")
	b.Agree(shown, "the GET of the pool has the interface in loadBalancerBackendAddresses: %t", shown)
	a := b.Try(ctx, azure.Put, pool, doc) // the client leaves out what is shown of interfaces
	b.Agree(!a.Failed, "PUT of the pool without its members: %s", a)
	n := bench.Count(b.Get(ctx, pool), poolInterfaced)
	b.Agree(n == 1, "after it the pool has %d of 1 interfaces", n)
}

func operationURLs(ctx context.Context, b *bench.Bench) {
	mark := b.Mark()
	b.Try(ctx, azure.Put, b.ID(vnetType, "vnet"), at(b, object{"addressSpace": object{"addressPrefixes": list{"10.78.0.0/16"}}}))
	b.Try(ctx, azure.Put, b.ID(diskType, "disk"), disk(b, "one"))
	for _, e := range b.Since(mark) {
		if e.Method != http.MethodPut {
			continue
		}
		sent, _ := url.Parse(e.URL) // it was sent
		for _, name := range []string{"Azure-AsyncOperation", "Location"} {
			poll, err := url.Parse(e.AnswerHeader.Get(name))
			if err != nil || poll.Host == "" {
				continue
			}
			same := poll.Scheme == sent.Scheme && poll.Hostname() == sent.Hostname() && port(poll) == port(sent)
			b.Agree(same, "%s of the PUT has the scheme, host and port of the endpoint: %t; it names a port: %t", name, same,
				poll.Port() != "")
		}
	}
}

// port is the port of a URL, also of one that names none.
func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

func subnetsKept(ctx context.Context, b *bench.Bench) {
	id := b.ID(vnetType, "vnet")
	space := object{"addressPrefixes": list{"10.78.0.0/16"}}
	b.Make(ctx, id, at(b, object{
		"addressSpace": space, "subnets": list{child("one", object{"addressPrefix": "10.78.0.0/24"})},
	}))
	a := b.Try(ctx, azure.Put, id, at(b, object{"addressSpace": space}))
	n := bench.Count(b.Get(ctx, id), "properties.subnets")
	b.Agree(!a.Failed && n == 1, "PUT without subnets: %s; it has %d of 1 subnets", a, n)
}

// refusal tries a write that Azure should refuse with status 400.
func refusal(ctx context.Context, b *bench.Bench, what string, id azure.ID, body any, codes ...string) {
	a := b.Try(ctx, azure.Put, id, body)
	b.Agree(a.Refused(http.StatusBadRequest, codes...), "%s: %s", what, a)
}

func addressRanges(ctx context.Context, b *bench.Bench) {
	for i, space := range []string{"169.254.0.0/16", "127.0.0.0/8", "224.0.0.0/4"} {
		refusal(ctx, b, space, b.ID(vnetType, fmt.Sprint("vnet", i)), at(b, object{"addressSpace": object{"addressPrefixes": list{space}}}))
	}
}

func overlappingRanges(ctx context.Context, b *bench.Bench) {
	refusal(ctx, b, "rule from 10.0.0.0/8 and 10.1.0.0/16", b.ID(nsgType, "nsg"), at(b, object{"securityRules": list{child("rule", object{
		"priority": 100, "direction": "Inbound", "access": "Allow", "protocol": "Tcp", "sourcePortRange": "*",
		"sourceAddressPrefixes": list{"10.0.0.0/8", "10.1.0.0/16"}, "destinationAddressPrefix": "*", "destinationPortRange": "80",
	})}}))
}

func routeCount(ctx context.Context, b *bench.Bench) {
	var routes list
	const beyond = 401
	for i := range beyond {
		routes = append(routes, child(fmt.Sprint("route", i), object{
			"addressPrefix": fmt.Sprintf("10.%d.%d.0/24", i/256, i%256), "nextHopType": "None",
		}))
	}
	refusal(ctx, b, "401 routes", b.ID(routesType, "routes"), at(b, object{"routes": routes}))
}

func outboundMinutes(ctx context.Context, b *bench.Bench) {
	id := b.ID(lbType, "lb")
	front := frontend(ctx, b)
	body := func(minutes int) object {
		return sku("Standard", at(b, object{
			"frontendIPConfigurations": front,
			"backendAddressPools":      list{child("pool", object{})},
			"outboundRules": list{child("out", object{
				"protocol": "All", "idleTimeoutInMinutes": minutes, "allocatedOutboundPorts": 64,
				"frontendIPConfigurations": list{ref(id.Child("frontendIPConfigurations", "front"))},
				"backendAddressPool":       ref(id.Child("backendAddressPools", "pool")),
			})},
		}))
	}
	refusal(ctx, b, "outbound rule of 121 minutes", id, body(121))
	b.See("outbound rule of 101 minutes, which Microsoft's pages allow and forbid: %s", b.Try(ctx, azure.Put, id, body(101)))
}

func tagNames(ctx context.Context, b *bench.Bench) {
	for _, name := range []string{"microsoft-kaz", "azure-kaz", "windows-kaz"} {
		table := at(b, object{})
		table["tags"] = object{name: "x"}
		refusal(ctx, b, "tag "+name, b.ID(routesType, name), table)
	}
}
