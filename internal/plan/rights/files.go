package rights

// The features of the azurefile-csi-driver. Parameters of classes need some of them, and a class can appear at any time.
const (
	// Shares creates, grows, changes, lists and deletes shares, in accounts that exist.
	Shares Feature = "file-shares"
	// ShareSnapshots creates, lists and deletes snapshots of shares.
	ShareSnapshots Feature = "file-snapshots"
	// Accounts creates storage accounts, and tags those that are full.
	Accounts Feature = "file-accounts"
	// AccountSettings sets multichannel and the retention of deleted shares.
	AccountSettings Feature = "file-account-settings"
	// AccountKeys reads the keys of accounts: for Secrets, for copies, and for nodes.
	AccountKeys Feature = "file-keys"
	// ServiceEndpoints opens accounts for subnets, which NFS needs as well.
	ServiceEndpoints Feature = "file-service-endpoints"
	// PrivateEndpoints gives accounts private endpoints with names in DNS.
	PrivateEndpoints Feature = "file-private-endpoints"
)

// FileFeatures returns the features of the azurefile-csi-driver, in the order of the reference.
func FileFeatures() []Feature {
	return []Feature{Shares, ShareSnapshots, Accounts, AccountSettings, AccountKeys, ServiceEndpoints, PrivateEndpoints}
}

func files() []Need {
	const (
		account  = "Microsoft.Storage/storageAccounts/"
		service  = account + "fileServices/"
		share    = service + "shares/"
		vnet     = network + "virtualNetworks/"
		zone     = network + "privateDnsZones/"
		endpoint = network + "privateEndpoints/"
	)
	return []Need{
		{account + "read", StorageAccounts, Shares, "choose an account for a share", false},
		{share + "read", StorageAccounts, Shares, "read the shares of accounts", false},
		{share + "write", StorageAccounts, Shares, "create, grow and change shares", false},
		{share + "delete", StorageAccounts, Shares, "delete the share of a deleted volume", false},
		{share + "read", StorageAccounts, ShareSnapshots, "read snapshots of shares", false},
		{share + "write", StorageAccounts, ShareSnapshots, "create snapshots of shares", false},
		{share + "delete", StorageAccounts, ShareSnapshots, "delete snapshots of shares", false},
		{account + "write", StorageAccounts, Accounts, "create accounts, open them for subnets, and tag those that are full", false},
		{service + "read", StorageAccounts, AccountSettings, "read multichannel and the retention of an account", false},
		{service + "write", StorageAccounts, AccountSettings, "set multichannel and the retention of an account", false},
		{account + "listKeys/action", StorageAccounts, AccountKeys, "write Secrets with keys, copy shares, and mount without a Secret",
			false},
		{vnet + "subnets/read", VirtualNetwork, ServiceEndpoints, "see whether a subnet has the service endpoint of storage", false},
		{vnet + "subnets/write", VirtualNetwork, ServiceEndpoints, "add the service endpoint of storage to a subnet", true},
		{vnet + "subnets/joinViaServiceEndpoint/action", VirtualNetwork, ServiceEndpoints, "open an account for a subnet", false},
		{network + "natGateways/join/action", VirtualNetwork, ServiceEndpoints, "write a subnet that has a NAT gateway", true},
		{network + "networkSecurityGroups/join/action", SecurityGroups, ServiceEndpoints, "write a subnet that has a security group", true},
		{network + "routeTables/join/action", RouteTable, ServiceEndpoints, "write a subnet that has a route table", true},
		{account + "PrivateEndpointConnectionsApproval/action", StorageAccounts, PrivateEndpoints,
			"connect a private endpoint with an account", false},
		{endpoint + "read", VirtualNetwork, PrivateEndpoints, "read the private endpoints of accounts", false},
		{endpoint + "write", VirtualNetwork, PrivateEndpoints, "create private endpoints for accounts", false},
		{endpoint + "privateDnsZoneGroups/read", VirtualNetwork, PrivateEndpoints, "read the DNS zones of private endpoints", false},
		{endpoint + "privateDnsZoneGroups/write", VirtualNetwork, PrivateEndpoints, "give private endpoints names in DNS", false},
		{vnet + "subnets/join/action", VirtualNetwork, PrivateEndpoints, "use an address of a subnet for a private endpoint", false},
		{vnet + "join/action", VirtualNetwork, PrivateEndpoints, "link the private DNS zone with the network of the nodes", false},
		{zone + "read", PrivateZones, PrivateEndpoints, "read the private DNS zone of file services", false},
		{zone + "write", PrivateZones, PrivateEndpoints, "create the private DNS zone of file services", true},
		{zone + "join/action", PrivateZones, PrivateEndpoints, "give private endpoints names in DNS", false},
		{zone + "virtualNetworkLinks/read", PrivateZones, PrivateEndpoints, "read the link of the zone with the network", false},
		{zone + "virtualNetworkLinks/write", PrivateZones, PrivateEndpoints, "link the private DNS zone with the network of the nodes",
			true},
	}
}
