package access

import (
	"testing"
)

func TestPermissionsMatchActions(t *testing.T) {
	for _, c := range []struct {
		actions, not []string
		action       string
		want         bool
	}{
		{[]string{"*"}, nil, "A.B/c/write", true},
		{[]string{"*/read"}, nil, "A.B/c/d/read", true},
		{[]string{"*/read"}, nil, "A.B/c/write", false},
		{[]string{"a.b/C/*"}, nil, "A.B/c/start/action", true},
		{[]string{"A.B/*/read"}, nil, "A.B/c/read", true},
		{[]string{"A.B/c/read"}, nil, "A.B/c/readmore", false},
		{[]string{"A.B/*a*/read"}, nil, "A.B/xay/read", true},
		{[]string{"*"}, []string{"A.B/*/delete"}, "A.B/c/delete", false},
		{nil, nil, "A.B/c/read", false},
	} {
		if got := (Permission{Actions: c.actions, NotActions: c.not}).allows(c.action); got != c.want {
			t.Errorf("%v without %v allows %s: %v", c.actions, c.not, c.action, got)
		}
	}
}

// TestRightsOfLinks checks which right a link takes by its place in the document.
func TestRightsOfLinks(t *testing.T) {
	const (
		subnet  = "Microsoft.Network/virtualNetworks/subnets"
		account = "Microsoft.Storage/storageAccounts"
		service = "Microsoft.Network/privateLinkServices"
	)
	for _, c := range []struct{ from, path, to, want string }{
		{"Microsoft.Network/networkInterfaces", "properties.ipConfigurations.properties.subnet", subnet, subnet + "/join/action"},
		{account, "properties.networkAcls.virtualNetworkRules", subnet, subnet + "/joinViaServiceEndpoint/action"},
		{"Microsoft.KeyVault/vaults", "properties.networkAcls.virtualNetworkRules", subnet, subnet + "/joinViaServiceEndpoint/action"},
		{"Microsoft.Network/privateEndpoints", "properties.subnet", subnet, subnet + "/join/action"},
		{"Microsoft.Network/privateEndpoints", "properties.privateLinkServiceConnections.properties.privateLinkServiceId", account,
			account + "/PrivateEndpointConnectionsApproval/action"},
		{"Microsoft.Network/privateEndpoints", "properties.privateLinkServiceConnections.properties.privateLinkServiceId", service,
			service + "/PrivateEndpointConnectionsApproval/action"},
		{"Microsoft.Network/privateEndpoints", "properties.manualPrivateLinkServiceConnections.properties.privateLinkServiceId", account,
			""},
		{"Microsoft.Network/privateEndpoints/privateDnsZoneGroups", "properties.privateDnsZoneConfigs.properties.privateDnsZoneId",
			"Microsoft.Network/privateDnsZones", "Microsoft.Network/privateDnsZones/join/action"},
		{"Microsoft.Network/virtualNetworks/virtualNetworkPeerings", "properties.remoteVirtualNetwork", "Microsoft.Network/virtualNetworks",
			"Microsoft.Network/virtualNetworks/peer/action"},
		{"Microsoft.Compute/virtualMachines", "properties.storageProfile.dataDisks.managedDisk", "Microsoft.Compute/disks",
			"Microsoft.Compute/disks/write"},
		{"Microsoft.Compute/snapshots", "properties.creationData.sourceResourceId", "Microsoft.Compute/disks",
			"Microsoft.Compute/disks/beginGetAccess/action"},
		{"Microsoft.Storage/storageAccounts", "identity.userAssignedIdentities", "Microsoft.ManagedIdentity/userAssignedIdentities",
			"Microsoft.ManagedIdentity/userAssignedIdentities/assign/action"},
		{"Microsoft.Authorization/policyAssignments", "properties.policyDefinitionId", "Microsoft.Authorization/policyDefinitions", ""},
		{"Microsoft.Compute/virtualMachines", "tags.owner", "Microsoft.Compute/availabilitySets", ""},
		{"Microsoft.Compute/virtualMachines", "properties.availabilitySet", "Microsoft.Compute/availabilitySets",
			"Microsoft.Compute/availabilitySets/write"},
		{"Microsoft.Network/privateDnsZones/virtualNetworkLinks", "properties.virtualNetwork", "Microsoft.Network/virtualNetworks",
			"Microsoft.Network/virtualNetworks/join/action"},
	} {
		if got := linkAction(c.from, "", c.path, c.to); got != c.want {
			t.Errorf("%s of %s to %s: %q, want %q", c.path, c.from, c.to, got, c.want)
		}
	}
}
