// Package storage has typed views of the documents of Microsoft.Storage. Layer L0: pure data.
package storage

import (
	"kaz/internal/azure"
	"kaz/internal/azure/secret"
)

// Full types.
const (
	Accounts     = "Microsoft.Storage/storageAccounts"
	FileServices = Accounts + "/fileServices"
	Shares       = FileServices + "/shares"
)

// Account is the properties of a storage account.
type Account struct {
	ProvisioningState      string `json:"provisioningState,omitempty" azure:"read"`
	MinimumTLSVersion      string `json:"minimumTlsVersion,omitempty"`
	HTTPSOnly              *bool  `json:"supportsHttpsTrafficOnly,omitempty"`
	LargeFileShares        string `json:"largeFileSharesState,omitempty" azure:"fold"`
	AllowBlobPublicAccess  *bool  `json:"allowBlobPublicAccess,omitempty"`
	AllowSharedKeyAccess   *bool  `json:"allowSharedKeyAccess,omitempty"`
	AllowCrossTenantCopies *bool  `json:"allowCrossTenantReplication,omitempty"`
	PublicNetworkAccess    string `json:"publicNetworkAccess,omitempty" azure:"fold"`
	AccessTier             string `json:"accessTier,omitempty" azure:"fold"`
	HierarchicalNamespace  *bool  `json:"isHnsEnabled,omitempty"`
	NFSv3                  *bool  `json:"isNfsV3Enabled,omitempty"`

	Encryption     *AccountEncryption `json:"encryption,omitempty"`
	NetworkRules   *NetworkRules      `json:"networkAcls,omitempty"`
	FileIdentities *FileIdentities    `json:"azureFilesIdentityBasedAuthentication,omitempty"`
	Connections    []Connection       `json:"privateEndpointConnections,omitempty" azure:"read"`
}

// AccountEncryption is how an account's data is encrypted.
type AccountEncryption struct {
	KeySource string `json:"keySource,omitempty"`
	Twice     *bool  `json:"requireInfrastructureEncryption,omitempty"`
}

// NetworkRules says which networks reach an account.
type NetworkRules struct {
	DefaultAction string       `json:"defaultAction,omitempty" azure:"fold"`
	Bypass        string       `json:"bypass,omitempty"`
	Subnets       []SubnetRule `json:"virtualNetworkRules,omitempty" azure:"key=id"`
}

// SubnetRule lets a subnet reach an account.
type SubnetRule struct {
	ID     azure.ID `json:"id"`
	Action string   `json:"action,omitempty" azure:"fold"`
}

// FileIdentities says with which identities users can mount shares by SMB.
type FileIdentities struct {
	DirectoryService string    `json:"directoryServiceOptions,omitempty"`
	SMBOAuth         *SMBOAuth `json:"smbOAuthSettings,omitempty"`
}

// SMBOAuth says whether SMB takes tokens of Entra ID.
type SMBOAuth struct {
	Enabled *bool `json:"isSmbOAuthEnabled,omitempty"`
}

// Connection is a private endpoint of an account.
type Connection struct {
	ID azure.ID `json:"id" azure:"key"`
}

// FileService is the properties of the file service of an account. The name of a file service is default.
type FileService struct {
	DeletedShares *Retention        `json:"shareDeleteRetentionPolicy,omitempty"`
	Protocols     *ProtocolSettings `json:"protocolSettings,omitempty"`
}

// Retention says for how long deleted shares are kept.
type Retention struct {
	Enabled *bool `json:"enabled,omitempty"`
	Days    int   `json:"days,omitempty"`
}

// ProtocolSettings are the settings of the protocols of shares.
type ProtocolSettings struct {
	SMB *SMBSettings `json:"smb,omitempty"`
}

// SMBSettings are the settings of SMB.
type SMBSettings struct {
	Multichannel *Multichannel `json:"multichannel,omitempty"`
}

// Multichannel says whether a client can use several connections.
type Multichannel struct {
	Enabled *bool `json:"enabled,omitempty"`
}

// Share is the properties of a share.
type Share struct {
	QuotaGiB      int64             `json:"shareQuota,omitempty"`
	Protocols     string            `json:"enabledProtocols,omitempty" azure:"fold"`
	AccessTier    string            `json:"accessTier,omitempty" azure:"fold"`
	RootSquash    string            `json:"rootSquash,omitempty" azure:"fold"`
	IOPS          *int64            `json:"provisionedIops,omitempty"`
	BandwidthMiBs *int64            `json:"provisionedBandwidthMibps,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	SnapshotTime  string            `json:"snapshotTime,omitempty" azure:"read"` // of a snapshot, RFC 3339
	Deleted       bool              `json:"deleted,omitempty" azure:"read"`      // deleted, and kept for a time
}

// Keys is the answer of the action listKeys of an account.
type Keys struct {
	Keys []Key `json:"keys"`
}

// Key is a key of an account.
type Key struct {
	Name    string      `json:"keyName"`
	Value   secret.Text `json:"value"`
	Created string      `json:"creationTime"` // RFC 3339
}

// FileServiceOf returns the id of the file service of an account.
func FileServiceOf(account azure.ID) azure.ID { return account.Child("fileServices", "default") }

// ShareOf returns the id of a share of an account.
func ShareOf(account azure.ID, name string) azure.ID {
	return FileServiceOf(account).Child("shares", name)
}
