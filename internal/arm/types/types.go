// Package types is the table of the differences between Azure's resource types. It says which api-version a type has,
// how requests are counted and how operations may be watched. It also says what a write answers and what it makes
// stale. Layer L2: data, and nothing that reads or sends.
//
// The fields that tell the elements of a type's lists apart are part of its view: see the `azure` tags in
// internal/azure/....
package types

import (
	"strings"

	"kaz/internal/azure"
)

// Type is one row of the table. It is for a full type, or for the start of a type and all types below it. What a row
// leaves out comes from the row of the longest shorter start.
type Type struct {
	Name string
	// Version is the api-version that requests speak. Azure's public SDKs speak these, so
	// every cloud that users have knows them.
	Version string
	// Shared marks a document that many callers wait for when it is written. Its requests go before the requests for
	// single resources. It holds for exactly this type.
	Shared bool
	// CountsEach says that Azure counts requests at each resource too. A refusal stops only the same request at the
	// same resource. The resource is not read to see early how an operation is doing.
	CountsEach bool
	// CountsChildren says that Azure counts the requests to all children of one resource together, apart from those to others. A
	// refusal stops only these.
	CountsChildren bool
	// InTurn says that Azure has refused writes of several resources of one parent that arrived at the same time.
	// Requests are sent in turn: each after the answer to the one before, while the operations run side by side. It
	// holds for exactly this type.
	InTurn bool
	// Shown lists the large parts that Azure shows in a document and takes no value for. They are not sent back. It
	// holds for exactly this type.
	Shown []azure.Part
	// Answer says whether a write answers with what a read would answer.
	Answer Answer
	// Stale are the types, or starts of types, that a write makes stale: Azure keeps references in both directions,
	// and cascades. Some are always stale and not in the table: the resource, what it is part of, its parts, and the
	// lists that contain them.
	Stale []string
}

// Answer is what a write answers with.
type Answer string

// The answers. A type without an answer in its rows answers in part.
const (
	Whole Answer = "whole"
	Part  Answer = "part"
)

// all makes everything stale. none makes nothing stale, except what is always stale.
var all, none = []string{""}, []string{}

const (
	compute    = "2025-04-01"
	diskAPI    = "2025-01-02"
	network    = "2025-05-01"
	scaleSetIP = "2018-10-01" // the only version in which scale sets' NICs and public IPs exist
	resources  = "2021-04-01"

	vnet     = "Microsoft.Network/virtualNetworks"
	lb       = "Microsoft.Network/loadBalancers"
	pip      = "Microsoft.Network/publicIPAddresses"
	prefix   = "Microsoft.Network/publicIPPrefixes"
	nic      = "Microsoft.Network/networkInterfaces"
	nsg      = "Microsoft.Network/networkSecurityGroups"
	asg      = "Microsoft.Network/applicationSecurityGroups"
	routes   = "Microsoft.Network/routeTables"
	nat      = "Microsoft.Network/natGateways"
	pls      = "Microsoft.Network/privateLinkServices"
	endpoint = "Microsoft.Network/privateEndpoints"
	gateway  = "Microsoft.Network/applicationGateways"
	dns      = "Microsoft.Network/dnsZones"
	zone     = "Microsoft.Network/privateDnsZones"
	vm       = "Microsoft.Compute/virtualMachines"
	vmss     = "Microsoft.Compute/virtualMachineScaleSets"
	set      = "Microsoft.Compute/availabilitySets"
	disk     = "Microsoft.Compute/disks"
	snapshot = "Microsoft.Compute/snapshots"
)

// machine is what the write of a machine makes stale. A machine attaches, creates and deletes what it has, and shows
// wherever its addresses are.
var machine = []string{vm, vmss, set, disk, nic, pip, prefix, lb, gateway, nsg, asg, vnet}

// interfacesIn are the network interfaces in pools. Azure shows each one twice, in some 250 bytes and in a kilobyte.
func interfacesIn(properties string) []azure.Part {
	return []azure.Part{{Path: properties + "backendIPConfigurations"},
		{Path: properties + "loadBalancerBackendAddresses", Having: "properties.networkInterfaceIPConfiguration"}}
}

// Table lists the types. It is the one place where they are told apart.
func Table() []Type {
	return []Type{
		{Name: "Microsoft.Compute", Version: compute, CountsEach: true, Answer: Whole},
		{Name: vm, Stale: machine},
		{Name: vmss, Stale: machine},
		{Name: vmss + "/virtualMachines", InTurn: true},
		{Name: vmss + "/networkInterfaces", Version: scaleSetIP},
		{Name: vmss + "/publicIPAddresses", Version: scaleSetIP},
		{Name: vmss + "/virtualMachines/networkInterfaces", Version: scaleSetIP},
		{Name: set, Answer: Part, Stale: []string{vm, vmss}},
		{Name: disk, Version: diskAPI, Stale: []string{vm, vmss, snapshot}},
		{Name: snapshot, Version: diskAPI, Stale: []string{disk}},
		{Name: "Microsoft.Compute/diskAccesses", Version: diskAPI},
		{Name: "Microsoft.Compute/diskEncryptionSets", Version: diskAPI},
		{Name: "Microsoft.Compute/galleries", Version: "2025-03-03"},
		{Name: "Microsoft.Compute/cloudServices", Version: "2024-11-04"},
		{Name: "Microsoft.Compute/skus", Version: "2021-07-01"},
		{Name: "Microsoft.Network", Version: network, Answer: Whole},
		// Frontends show in addresses and subnets, NAT rules in interfaces, private link services in their own
		// documents. The documents of scale sets and machines do not show frontends.
		{Name: lb, Shared: true, Shown: interfacesIn("properties.backendAddressPools.properties."),
			Stale: []string{pip, prefix, vnet, nic, pls}},
		{Name: lb + "/backendAddressPools", Shown: interfacesIn("properties.")},
		{Name: gateway, Stale: []string{pip, vnet, nic, vmss, endpoint}},
		{Name: nat, Stale: []string{pip, prefix, vnet}},
		// An address shows in its prefix. All other documents name it by its id.
		{Name: pip, Stale: []string{prefix}},
		{Name: prefix, Stale: []string{pip, lb, nat}},
		// An interface's write decides membership in pools.
		{Name: nic, Stale: []string{vnet, pip, lb, gateway, nsg, asg, vm}},
		// A network's write carries its subnets, and their associations show at the other end.
		{Name: vnet, Stale: []string{nsg, routes, nat, nic, endpoint}},
		{Name: nsg, Shared: true, Stale: []string{vnet, nic}},
		{Name: asg, Stale: []string{nsg, nic}},
		{Name: routes, Shared: true, Stale: []string{vnet}},
		{Name: pls, Stale: []string{lb, vnet, nic, endpoint}},
		{Name: endpoint, Stale: []string{pls, vnet, nic, asg, zone, "Microsoft.Storage/storageAccounts"}},
		{Name: dns, Version: "2018-05-01", CountsChildren: true, Stale: none},
		{Name: "Microsoft.Network/trafficManagerProfiles", Version: "2022-04-01"}, // a service with versions of its own
		{Name: zone, Version: "2024-06-01", CountsChildren: true, Stale: []string{vnet}},

		// A deployment writes anything, and a group's delete takes all with it.
		{Name: "Microsoft.Resources", Version: resources, Stale: all},
		{Name: "Microsoft.Resources/subscriptions", Version: "2022-12-01"},
		{Name: "Microsoft.Resources/templateSpecs", Version: "2022-02-01"},
		// Of any provider: what it offers, and its registration.
		{Name: "Microsoft.Resources/subscriptions/providers", Version: resources},
		{Name: "Microsoft.Resources/subscriptions/resourceGroups", Version: resources},

		{Name: "Microsoft.Authorization", Version: "2022-04-01", Stale: none},
		{Name: "Microsoft.Authorization/locks", Version: "2020-05-01"},
		{Name: "Microsoft.ContainerRegistry", Version: "2023-07-01", Stale: []string{endpoint}},
		{Name: "Microsoft.ContainerRegistry/registries/tasks", Version: "2019-06-01-preview"},
		// A managed cluster has a group of its own.
		{Name: "Microsoft.ContainerService", Version: "2025-02-01", Stale: all},
		{Name: "Microsoft.KeyVault", Version: "2024-11-01", Stale: []string{endpoint}},
		{Name: "Microsoft.ManagedIdentity", Version: "2024-11-30", Stale: none},
		{Name: "Microsoft.Storage", Version: "2025-01-01", Stale: []string{endpoint}},
	}
}

// StackVersions are the api-versions of an Azure Stack Hub, by type.
func StackVersions() map[string]string {
	return map[string]string{
		"Microsoft.Authorization": "2015-07-01",
		vm:                        "2017-12-01",
		vmss:                      "2019-07-01",
		set:                       "2019-07-01",
		disk:                      "2019-03-01",
		snapshot:                  "2019-03-01",
		"Microsoft.Network":       "2018-11-01",
		pls:                       "2019-03-01",
		"Microsoft.Storage":       "2018-02-01",
	}
}

// ChinaVersions are the api-versions in which the cloud in China differs, by type.
func ChinaVersions() map[string]string {
	return map[string]string{"Microsoft.Storage": "2023-05-01"}
}

// Index finds rows by type.
type Index map[string]Type

// NewIndex is the table by lower-case name.
func NewIndex() Index {
	x := Index{}
	for _, t := range Table() {
		x[strings.ToLower(t.Name)] = t
	}
	return x
}

// Of is what the table says of a full type in any case. An unknown type makes
// everything stale.
func (x Index) Of(fullType string) Type {
	found := Type{Name: fullType}
	for at := strings.ToLower(fullType); at != ""; at = parent(at) {
		row, ok := x[at]
		if !ok {
			continue
		}
		if strings.EqualFold(row.Name, fullType) {
			found.Shared, found.InTurn, found.Shown = row.Shared, row.InTurn, row.Shown
		}
		if found.Version == "" {
			found.Version = row.Version
		}
		if found.Answer == "" {
			found.Answer = row.Answer
		}
		if found.Stale == nil {
			found.Stale = row.Stale
		}
		found.CountsEach = found.CountsEach || row.CountsEach
		found.CountsChildren = found.CountsChildren || row.CountsChildren && !strings.EqualFold(row.Name, fullType)
	}
	if found.Stale == nil {
		found.Stale = all
	}
	return found
}

// parent cuts the last segment of a type.
func parent(t string) string { return t[:max(strings.LastIndexByte(t, '/'), 0)] }
