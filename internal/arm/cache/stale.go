package cache

import (
	"strings"

	"kaz/internal/azure"
)

// consequence says what else than the written resource itself a write makes stale.
// Azure keeps references both ways, and cascades, so that a write of one resource
// shows in others.
//
// Always stale, so not in the table: the resource, what it is part of, its parts,
// and the lists that they are in.
type consequence struct {
	// write is a resource type or the start of one; the longest that fits counts.
	write string
	// stale are types, or starts of types; "" is everything.
	stale []string
}

// consequences is the table. A type that it does not know makes everything stale.
func consequences() []consequence {
	const (
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
	// A machine's write attaches, makes and deletes what machines have, and is seen
	// wherever their addresses are.
	machine := []string{vm, vmss, set, disk, nic, pip, prefix, lb, gateway, nsg, asg, vnet}
	return []consequence{
		// Frontends show in addresses and subnets, NAT rules in interfaces, links at the
		// link. The documents of scale sets and machines say nothing of the frontend side.
		{lb, []string{pip, prefix, vnet, nic, pls}},
		{gateway, []string{pip, vnet, nic, vmss, endpoint}},
		{nat, []string{pip, prefix, vnet}},
		// An address shows in its prefix; all others name it by its id.
		{pip, []string{prefix}},
		{prefix, []string{pip, lb, nat}},
		// An interface's write decides membership in pools.
		{nic, []string{vnet, pip, lb, gateway, nsg, asg, vm}},
		// A network's write carries its subnets, whose associations show at the other end.
		{vnet, []string{nsg, routes, nat, nic, endpoint}},
		{nsg, []string{vnet, nic}},
		{asg, []string{nsg, nic}},
		{routes, []string{vnet}},
		{pls, []string{lb, vnet, nic, endpoint}},
		{endpoint, []string{pls, vnet, nic, asg, zone, "Microsoft.Storage/storageAccounts"}},
		{dns, nil},
		{zone, []string{vnet}},

		{vm, machine},
		{vmss, machine},
		{set, []string{vm, vmss}},
		{disk, []string{vm, vmss, snapshot}},
		{snapshot, []string{disk}},

		{"Microsoft.Storage", []string{endpoint}},
		{"Microsoft.ContainerRegistry", []string{endpoint}},
		{"Microsoft.KeyVault", []string{endpoint}},
		{"Microsoft.ManagedIdentity", nil},
		{"Microsoft.Authorization", nil},
		// A deployment writes anything, a group's delete takes all with it, and a
		// managed cluster has a group of its own.
		{"Microsoft.Resources", []string{""}},
		{"Microsoft.ContainerService", []string{""}},
	}
}

// asks are the actions that only read, whatever they are called on.
func asks() map[string]bool {
	names := map[string]bool{}
	for _, name := range []string{
		"listKeys", "listCredentials", "listAccountSas", "listServiceSas", "listClusterAdminCredential",
		"listClusterUserCredential", "validate", "whatIf", "exportTemplate", "checkNameAvailability",
		"retrieveBootDiagnosticsData", "effectiveRouteTable", "effectiveNetworkSecurityGroups",
	} {
		names[strings.ToLower(name)] = true
	}
	return names
}

// rules are the table in the form that writes look things up in.
type rules map[string][]string

func newRules() rules {
	r := rules{}
	for _, c := range consequences() {
		stale := make([]string, len(c.stale))
		for i, t := range c.stale {
			stale[i] = strings.ToLower(t)
		}
		r[strings.ToLower(c.write)] = stale
	}
	return r
}

// of is what the write of a type makes stale.
func (r rules) of(writtenType string) []string {
	for t := writtenType; t != ""; t = parentType(t) {
		if stale, ok := r[t]; ok {
			return stale
		}
	}
	return []string{""}
}

// parentType cuts the last segment of a type.
func parentType(t string) string {
	return t[:max(strings.LastIndexByte(t, '/'), 0)]
}

// within reports whether type t is kind, or a part of it. Both are in lower case.
func within(t, kind string) bool {
	return kind == "" || t == kind || len(t) > len(kind) && t[len(kind)] == '/' && t[:len(kind)] == kind
}

// write is a change of Azure, of which reads may have to know.
type write struct {
	id    azure.ID
	typ   string // lower case
	stale []string
}

// reaches reports whether what was read may be another after the write.
func (w write) reaches(r read) bool {
	for _, t := range w.stale {
		if within(r.typ, t) {
			return true
		}
	}
	if !r.list {
		return r.scope.Under(w.id) || r.scope.TopLevel().Equal(w.id.TopLevel())
	}
	return (w.id.Under(r.scope) || r.scope.Under(w.id)) && (within(r.typ, w.typ) || within(w.typ, r.typ) || r.typ == everyResource)
}

// everyResource is the type of lists that hold resources of all types.
const everyResource = "microsoft.resources/resources"
