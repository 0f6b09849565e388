package probe

import (
	"context"
	"net/http"

	"kaz/internal/azure"
	"kaz/internal/verify/bench"
)

func networkProbes() []Probe {
	return []Probe{
		{
			Name: "create-only", Area: "network", Minutes: 1, Rights: all(nsgType, routesType), Run: createOnly,
			Tries: "PUT a security group and a route table that exist with If-None-Match: *; want 412",
		},
		{
			Name: "pool-at-creation", Area: "network", Minutes: 2, Cents: 1, Needs: []string{network},
			Rights: append(all(lbType, pipType), lbType+"/backendAddressPools/read", vnetType+"/joinLoadBalancer/action"), Run: poolAtCreation,
			Tries: "PUT a new load balancer with two members by address and read its pool; then PUT it again",
		},
	}
}

const routesType = "Microsoft.Network/routeTables"

func createOnly(ctx context.Context, b *bench.Bench) {
	for _, id := range []azure.ID{b.ID(nsgType, "nsg"), b.ID(routesType, "routes")} {
		b.Make(ctx, id, at(b, object{}), bench.IfNew())
		a := b.Try(ctx, azure.Put, id, at(b, object{}), bench.IfNew())
		b.Agree(a.Refused(http.StatusPreconditionFailed), "PUT of %s that exists with If-None-Match: *: %s", kind(id), a)
	}
}

// kind is the last part of a type.
func kind(id azure.ID) string {
	return azure.ID("/" + id.Type()).Name()
}

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

func poolAtCreation(ctx context.Context, b *bench.Bench) {
	id := b.ID(lbType, "lb")
	pool := id.Child("backendAddressPools", "pool")
	body := func(addresses ...string) object {
		return sku("Standard", at(b, object{
			"frontendIPConfigurations": frontend(ctx, b),
			"backendAddressPools":      list{child("pool", object{"loadBalancerBackendAddresses": members(b, addresses...)})},
		}))
	}
	const addresses = "properties.loadBalancerBackendAddresses"
	b.Make(ctx, id, body("10.77.0.50", "10.77.0.51"))
	n := bench.Count(b.Get(ctx, pool), addresses)
	b.See("after the PUT that creates the load balancer, its pool has %d of 2 members", n)
	b.Make(ctx, id, body("10.77.0.50", "10.77.0.51", "10.77.0.52"))
	n = bench.Count(b.Get(ctx, pool), addresses)
	b.Agree(n == 3, "after a second PUT the pool has %d of 3 members", n)
}
