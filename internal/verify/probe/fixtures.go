package probe

import (
	"context"

	"kaz/internal/azure"
	"kaz/internal/verify/bench"
)

type (
	object = bench.Object
	list   = bench.List
)

// Names of the fixtures.
const network = "network"

// Types of resources that several areas use.
const (
	vnetType = "Microsoft.Network/virtualNetworks"
	pipType  = "Microsoft.Network/publicIPAddresses"
	nsgType  = "Microsoft.Network/networkSecurityGroups"
	lbType   = "Microsoft.Network/loadBalancers"
	nicType  = "Microsoft.Network/networkInterfaces"
	diskType = "Microsoft.Compute/disks"
)

// fixtures lists what probes share, in the order in which it is made.
func fixtures() []Fixture {
	return []Fixture{
		{Name: network, Minutes: 1, Rights: all(vnetType), Make: makeNetwork},
		{Name: machine, Minutes: 3, Cents: 5, Rights: all(machineType, nicType), Make: makeMachine},
		{Name: instances, Minutes: 3, Cents: 5, Rights: all(scaleSetType), Make: makeInstances},
		{Name: gateway, Minutes: 8, Cents: 60, Rights: all(gatewayType, pipType), Make: makeGateway},
		{Name: account, Minutes: 1, Cents: 1, Rights: all(accountType), Make: makeAccount},
		{Name: zone, Minutes: 1, Cents: 2, Rights: all(zoneType), Make: makeZone},
		{Name: privateZone, Minutes: 1, Cents: 2, Rights: all(privateZoneType), Make: makePrivateZone},
		{Name: vault, Minutes: 1, Cents: 1, Rights: vaultRights(), Make: makeVault},
	}
}

// shared is the id of a fixture's resource.
func shared(b *bench.Bench, fullType, name string) azure.ID {
	return b.GroupID().Resource(fullType, "shared-"+name)
}

// vnet and subnet are those of the fixture network.
func vnet(b *bench.Bench) azure.ID   { return shared(b, vnetType, "vnet") }
func subnet(b *bench.Bench) azure.ID { return vnet(b).Child("subnets", "machines") }

func makeNetwork(ctx context.Context, b *bench.Bench) {
	b.Make(ctx, vnet(b), at(b, object{
		"addressSpace": object{"addressPrefixes": list{"10.77.0.0/16"}},
		"subnets": list{
			object{"name": "machines", "properties": object{"addressPrefix": "10.77.0.0/24"}},
			object{"name": "gateways", "properties": object{"addressPrefix": "10.77.1.0/24"}},
		},
	}))
}

// at is a resource with properties at the location of the run.
func at(b *bench.Bench, properties object) object {
	return object{"location": b.Location, "properties": properties}
}

// sku is a resource with a SKU.
func sku(name string, resource object) object {
	resource["sku"] = object{"name": name}
	return resource
}

func ref(id azure.ID) object { return object{"id": string(id)} }

// child is a child resource in its parent's document.
func child(name string, properties object) object {
	return object{"name": name, "properties": properties}
}
