package graph

import (
	"strings"

	"kaz/internal/azure"
)

// Unit is a group of resources that are deployed together, as one nested deployment.
type Unit struct {
	// Name is unique in a cluster.
	Name string
	// Group is the resource group of the unit if it is not the cluster's, as an id.
	Group     azure.ID
	Resources []*Resource
}

// Add adds a resource and returns a reference to it.
func (u *Unit) Add(r Resource) Ref {
	u.Resources = append(u.Resources, &r)
	return Ref{unit: u.Name, symbol: r.Symbol}
}

// Resource is one Azure resource.
type Resource struct {
	// Symbol is the name of the resource in its unit.
	Symbol string
	Type   string
	// Version is the api-version, by default that of [Versions].
	Version string
	// Name has a segment for each segment of the type behind the provider: "account/default/container".
	Name string
	// Condition is the parameter of the type bool that decides whether the resource is deployed, "" for always.
	Condition string
	// Scope is the resource that an extension resource, such as a role assignment, belongs to. The zero value is the group.
	Scope Ref
	// After are resources that must be there first, beside those that Body refers to.
	After []Ref
	// Once says that the resource is made once and never written again. It is a resource into which other programs write,
	// too: the cloud-controller-manager writes into a security group. Or it is a machine, which is replaced and not changed.
	Once bool
	// Body has everything but type, apiVersion, name, condition, scope and dependsOn. Its values are those of encoding/json,
	// and [Ref], the ports, [Runtime] and [Parameter].
	Body map[string]any
}

// Ref is a reference to a resource, or to a part of one.
type Ref struct {
	unit, symbol string
	existing     azure.ID
	part         []string
}

// Existing refers to a resource that is not of the cluster.
func Existing(id string) Ref { return Ref{existing: azure.ID(id)} }

// Part refers to a part of the resource, such as "subnets", "nodes".
func (r Ref) Part(typeAndName ...string) Ref {
	r.part = append(append([]string(nil), r.part...), typeAndName...)
	return r
}

// IsZero reports whether there is no reference.
func (r Ref) IsZero() bool { return r.symbol == "" && r.existing == "" }

// Exists returns the id of a resource that is not of the cluster.
func (r Ref) Exists() (azure.ID, bool) {
	return azure.ID(strings.Join(append([]string{string(r.existing)}, r.part...), "/")), r.existing != ""
}

// Target returns the unit and the symbol of a resource of the cluster.
func (r Ref) Target() (unit, symbol string) { return r.unit, r.symbol }

// Parts are the types and names of the part of the resource that the reference is about, none for the whole.
func (r Ref) Parts() []string { return r.part }

func (r Ref) ref() Ref { return r }

// Port is what a unit provides to others: a typed [Ref].
type Port interface{ ref() Ref }

// Of returns the reference of a port.
func Of(p Port) Ref { return p.ref() }

// The ports.
type (
	// Subnet is a subnet for machines.
	Subnet struct{ Ref }
	// RouteTable is the route table for routes to pods.
	RouteTable struct{ Ref }
	// VirtualNetwork is a virtual network.
	VirtualNetwork struct{ Ref }
	// BackendPool is a pool of a load balancer.
	BackendPool struct{ Ref }
	// Identity is a managed identity.
	Identity struct{ Ref }
	// Vault is a key vault.
	Vault struct{ Ref }
	// Account is a storage account.
	Account struct{ Ref }
	// AvailabilitySet is an availability set.
	AvailabilitySet struct{ Ref }
	// Ready is a resource that is complete when a machine is ready for others.
	Ready struct{ Ref }
)

// PrincipalID is the object id of an identity, which Azure chooses.
func (i Identity) PrincipalID() Runtime { return Runtime{i.Ref, "principalId"} }

// ClientID is the client id of an identity, which Azure chooses.
func (i Identity) ClientID() Runtime { return Runtime{i.Ref, "clientId"} }

// Runtime is a property of a resource that only Azure knows.
type Runtime struct {
	Of   Ref
	Path string
}

// Parameter is the value of a parameter of the template.
type Parameter string

// Concat is a text of parts: literal texts, [Ref], [Runtime] and [Parameter].
type Concat []any

// Versions are the api-versions of all types that kaz deploys.
func Versions() map[string]string {
	return map[string]string{
		"Microsoft.Authorization/roleAssignments":                   "2022-04-01",
		"Microsoft.Compute/availabilitySets":                        "2024-11-01",
		"Microsoft.Compute/disks":                                   "2024-03-02",
		"Microsoft.Compute/virtualMachineScaleSets":                 "2024-11-01",
		"Microsoft.Compute/virtualMachines":                         "2024-11-01",
		"Microsoft.Compute/virtualMachines/extensions":              "2024-11-01",
		"Microsoft.KeyVault/vaults":                                 "2024-11-01",
		"Microsoft.KeyVault/vaults/secrets":                         "2024-11-01",
		"Microsoft.ManagedIdentity/userAssignedIdentities":          "2024-11-30",
		"Microsoft.Network/loadBalancers":                           "2024-05-01",
		"Microsoft.Network/natGateways":                             "2024-05-01",
		"Microsoft.Network/networkInterfaces":                       "2024-05-01",
		"Microsoft.Network/networkSecurityGroups":                   "2024-05-01",
		"Microsoft.Network/privateDnsZones":                         "2024-06-01",
		"Microsoft.Network/privateDnsZones/A":                       "2024-06-01",
		"Microsoft.Network/privateDnsZones/virtualNetworkLinks":     "2024-06-01",
		"Microsoft.Network/publicIPAddresses":                       "2024-05-01",
		"Microsoft.Network/routeTables":                             "2024-05-01",
		"Microsoft.Network/virtualNetworks":                         "2024-05-01",
		"Microsoft.Resources/deployments":                           "2021-04-01",
		"Microsoft.Storage/storageAccounts":                         "2024-01-01",
		"Microsoft.Storage/storageAccounts/blobServices":            "2024-01-01",
		"Microsoft.Storage/storageAccounts/blobServices/containers": "2024-01-01",
		"Microsoft.Storage/storageAccounts/managementPolicies":      "2024-01-01",
	}
}

// APIVersion is the api-version of the resource.
func (r *Resource) APIVersion() string {
	if r.Version != "" {
		return r.Version
	}
	return Versions()[r.Type]
}

// TypeOf is the full type of a part.
func (r Ref) TypeOf(whole string) string {
	for i := 0; i < len(r.part); i += 2 {
		whole += "/" + r.part[i]
	}
	return whole
}

// Names are the segments of the name of a part.
func (r Ref) Names(whole string) []string {
	names := strings.Split(whole, "/")
	for i := 1; i < len(r.part); i += 2 {
		names = append(names, r.part[i])
	}
	return names
}

// SelfRef refers to a resource of a unit by its symbol, for parts of a resource that refer to each other.
func SelfRef(unit, symbol string) Ref { return Ref{unit: unit, symbol: symbol} }

// Keyed is a map with one key, which is the id of a resource.
type Keyed struct {
	Key   Ref
	Value any
}

// Number is a decimal number as text, which templates have no literal for.
type Number string
