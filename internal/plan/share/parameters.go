package share

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/plan/parameter"
)

// Parameters is what a StorageClass, a VolumeAttributesClass or a persistent volume says of a share. Zero fields are not
// given.
type Parameters struct {
	SKU, Location, Account      string
	ResourceGroup, Subscription string

	ShareName, SharePrefix, DiskName string
	FSType, Protocol                 string
	Folder                           string
	CreateFolder                     *bool
	Server, EndpointSuffix           string

	StoreKey, SecretCache       *bool
	SecretName, SecretNamespace string
	LatestKey                   *bool
	KeyFromSecret               *bool // never ask Azure for a key

	CreateAccount, MatchTags, RandomAccount *bool
	Tags                                    map[string]string
	AccountQuota                            *int64 // GiB of all shares of an account

	LargeShares, DisableRetention *bool
	BlobPublicAccess              *bool
	PublicNetworkAccess           string
	SharedKeyAccess               *bool
	CrossTenantReplication        *bool
	InfrastructureEncryption      *bool
	Multichannel                  *bool
	AccountTier, ShareTier        string
	RootSquash                    string
	IOPS, Bandwidth               *int64 // Bandwidth is in MiB/s

	Endpoint                 string // EndpointPrivate, EndpointService or ""
	VNetGroup, VNet, Subnet  string
	VNetLink, ZoneGroup      string
	SkipZone                 *bool  // no private DNS zone
	DataPlane                string // "true", "oauth", or "" for Azure Resource Manager
	GroupChange              string // of a file system group
	MountPermissions         string
	EncryptInTransit         *bool
	ClientID, TenantID       string
	ManagedIdentity          *bool
	WorkloadIdentity         *bool
	OAuthToken               *bool
	MountOptions             string // of an inline volume, with commas
	Ephemeral                *bool
	FileMode, DirMode        string
	UID, GID                 string
	PodNamespace, PodAccount string

	// The provisioner says for what it creates the volume.
	PVCName, PVCNamespace, PVName string

	tags, delimiter string
}

// The kinds of network endpoints.
const (
	EndpointPrivate = "privateEndpoint"
	EndpointService = "serviceEndpoint"
)

type key = parameter.Key[Parameters]

func text(field func(*Parameters) *string) func(*Parameters, string) error {
	return parameter.Text(field)
}

func oneOf(field func(*Parameters) *string, allowed ...string) func(*Parameters, string) error {
	return parameter.OneOf(field, allowed...)
}

func boolean(field func(*Parameters) **bool) func(*Parameters, string) error {
	return parameter.Boolean(field)
}

func lenient(field func(*Parameters) **bool) func(*Parameters, string) error {
	return parameter.Lenient(field)
}

// classKeys are the keys of StorageClasses.
func classKeys() []key {
	number := parameter.Number[Parameters]
	var keys []key
	for _, table := range [][]key{
		{
			{Name: "skuName", Alias: "storageAccountType",
				Read: parameter.OneOfFold(func(p *Parameters) *string { return &p.SKU }, skus()...)},
			{Name: "location", Read: text(func(p *Parameters) *string { return &p.Location })},
			{Name: "storageAccount", Read: readAccount},
			{Name: "resourceGroup", Read: text(func(p *Parameters) *string { return &p.ResourceGroup })},
			{Name: "subscriptionID", Read: text(func(p *Parameters) *string { return &p.Subscription })},
			{Name: "createAccount", Read: lenient(func(p *Parameters) **bool { return &p.CreateAccount })},
			{Name: "matchTags", Read: lenient(func(p *Parameters) **bool { return &p.MatchTags })},
			{Name: "tags", Read: text(func(p *Parameters) *string { return &p.tags })},
			{Name: "tagValueDelimiter", Read: text(func(p *Parameters) *string { return &p.delimiter })},
			{Name: "selectRandomMatchingAccount", Read: boolean(func(p *Parameters) **bool { return &p.RandomAccount })},
			{Name: "accountQuota", Read: number(func(p *Parameters) **int64 { return &p.AccountQuota }, leastAccountQuota)},
		},
		shareKeys(), mountKeys(), accountKeys(), networkKeys(),
	} {
		keys = append(keys, table...)
	}
	return keys
}

// leastAccountQuota is the smallest quota of an account in GiB.
const leastAccountQuota = 100

func shareKeys() []key {
	number := parameter.Number[Parameters]
	return []key{
		{Name: "shareName", Read: text(func(p *Parameters) *string { return &p.ShareName })},
		{Name: "shareNamePrefix", Read: readPrefix},
		{Name: "diskName", Read: text(func(p *Parameters) *string { return &p.DiskName })},
		{Name: "fsType", Read: readFSType},
		{Name: "protocol", Read: oneOf(func(p *Parameters) *string { return &p.Protocol }, "smb", "nfs")},
		{Name: "shareAccessTier", Alias: "accessTier", Read: oneOf(func(p *Parameters) *string { return &p.ShareTier },
			"Cool", "Hot", "Premium", "TransactionOptimized")},
		{Name: "rootSquashType", Read: oneOf(func(p *Parameters) *string { return &p.RootSquash },
			"AllSquash", "NoRootSquash", "RootSquash")},
		{Name: "provisionedIOPS", Read: number(func(p *Parameters) **int64 { return &p.IOPS }, 0), Mutable: true},
		{Name: "provisionedBandwidth", Read: number(func(p *Parameters) **int64 { return &p.Bandwidth }, 0), Mutable: true},
		{Name: "useDataPlaneAPI", Read: readDataPlane},
		{Name: "csi.storage.k8s.io/pvc/name", Read: text(func(p *Parameters) *string { return &p.PVCName })},
		{Name: "csi.storage.k8s.io/pvc/namespace", Read: text(func(p *Parameters) *string { return &p.PVCNamespace })},
		{Name: "csi.storage.k8s.io/pv/name", Read: text(func(p *Parameters) *string { return &p.PVName })},
	}
}

// mountKeys are the keys with an effect on nodes.
func mountKeys() []key {
	return []key{
		{Name: "folderName", Read: readFolder},
		{Name: "createFolderIfNotExist", Read: lenient(func(p *Parameters) **bool { return &p.CreateFolder })},
		{Name: "server", Read: text(func(p *Parameters) *string { return &p.Server })},
		{Name: "storageEndpointSuffix", Read: text(func(p *Parameters) *string { return &p.EndpointSuffix })},
		{Name: "storeAccountKey", Read: lenient(func(p *Parameters) **bool { return &p.StoreKey })},
		{Name: "secretName", Read: text(func(p *Parameters) *string { return &p.SecretName })},
		{Name: "secretNamespace", Read: text(func(p *Parameters) *string { return &p.SecretNamespace })},
		{Name: "useSecretCache", Read: lenient(func(p *Parameters) **bool { return &p.SecretCache })},
		{Name: "getLatestAccountKey", Read: boolean(func(p *Parameters) **bool { return &p.LatestKey })},
		{Name: "fsGroupChangePolicy", Read: oneOf(func(p *Parameters) *string { return &p.GroupChange },
			GroupNever, GroupAlways, GroupOnMismatch)},
		{Name: "mountPermissions", Read: octal(func(p *Parameters) *string { return &p.MountPermissions }, permissionBits)},
		{Name: "fileMode", Read: octal(func(p *Parameters) *string { return &p.FileMode }, permissionBits)},
		{Name: "dirMode", Read: octal(func(p *Parameters) *string { return &p.DirMode }, permissionBits)},
		{Name: "uid", Read: id(func(p *Parameters) *string { return &p.UID })},
		{Name: "gid", Read: id(func(p *Parameters) *string { return &p.GID })},
		{Name: "encryptInTransit", Read: boolean(func(p *Parameters) **bool { return &p.EncryptInTransit })},
		{Name: "clientID", Read: text(func(p *Parameters) *string { return &p.ClientID })},
		{Name: "tenantID", Read: text(func(p *Parameters) *string { return &p.TenantID })},
		{Name: "mountWithManagedIdentity", Read: boolean(func(p *Parameters) **bool { return &p.ManagedIdentity })},
		{Name: "mountWithWorkloadIdentityToken", Read: boolean(func(p *Parameters) **bool { return &p.WorkloadIdentity })},
		{Name: "mountWithOAuthToken", Read: boolean(func(p *Parameters) **bool { return &p.OAuthToken })},
		{Name: "confidentialContainerLabel", Read: parameter.Ignored[Parameters]},
		{Name: "runtimeClassHandler", Read: parameter.Ignored[Parameters]},
	}
}

// The policies by which a volume gets its file system group.
const (
	GroupNever      = "None"
	GroupAlways     = "Always"
	GroupOnMismatch = "OnRootMismatch"
)

// accountKeys are the properties of accounts.
func accountKeys() []key {
	return []key{
		{Name: "enableLargeFileShares", Read: boolean(func(p *Parameters) **bool { return &p.LargeShares })},
		{Name: "disableDeleteRetentionPolicy", Read: boolean(func(p *Parameters) **bool { return &p.DisableRetention })},
		{Name: "allowBlobPublicAccess", Read: boolean(func(p *Parameters) **bool { return &p.BlobPublicAccess })},
		{Name: "publicNetworkAccess", Read: oneOf(func(p *Parameters) *string { return &p.PublicNetworkAccess },
			"Enabled", "Disabled", "SecuredByPerimeter")},
		{Name: "allowSharedKeyAccess", Read: boolean(func(p *Parameters) **bool { return &p.SharedKeyAccess })},
		{Name: "allowCrossTenantReplication", Read: boolean(func(p *Parameters) **bool { return &p.CrossTenantReplication })},
		{Name: "requireInfraEncryption", Read: boolean(func(p *Parameters) **bool { return &p.InfrastructureEncryption })},
		{Name: "enableMultichannel", Read: boolean(func(p *Parameters) **bool { return &p.Multichannel })},
		{Name: "accountAccessTier", Read: oneOf(func(p *Parameters) *string { return &p.AccountTier }, "Cold", "Cool", "Hot", "Premium")},
	}
}

func networkKeys() []key {
	return []key{
		{Name: "networkEndpointType", Read: parameter.OneOfFold(func(p *Parameters) *string { return &p.Endpoint },
			EndpointPrivate, EndpointService)},
		{Name: "vnetResourceGroup", Read: text(func(p *Parameters) *string { return &p.VNetGroup })},
		{Name: "vnetName", Read: text(func(p *Parameters) *string { return &p.VNet })},
		{Name: "subnetName", Read: text(func(p *Parameters) *string { return &p.Subnet })},
		{Name: "vnetLinkName", Read: text(func(p *Parameters) *string { return &p.VNetLink })},
		{Name: "privateDNSZoneResourceGroup", Read: text(func(p *Parameters) *string { return &p.ZoneGroup })},
		{Name: "skipPrivateDNSZone", Read: boolean(func(p *Parameters) **bool { return &p.SkipZone })},
	}
}

// ReadClass reads the parameters of a StorageClass and the mutable parameters of a VolumeAttributesClass, which come first
// where both name a key. The error is a [parameter.Error].
func ReadClass(class, mutable map[string]string) (Parameters, error) {
	var p Parameters
	table := classKeys()
	if err := parameter.Read(&p, table, class); err != nil {
		return p, err
	}
	if err := parameter.Read(&p, parameter.Mutable(table), mutable); err != nil {
		return p, err
	}
	pairs, bad := parameter.Pairs(p.tags, p.delimiter)
	if bad != "" {
		return p, &parameter.Error{Key: "tags", Value: bad, Allowed: "want KEY=VALUE"}
	}
	p.Tags = pairs
	if p.NFS() && p.SKU == "" {
		p.SKU = premium
	}
	return p, p.check()
}

// ReadMutable reads the parameters of a VolumeAttributesClass.
func ReadMutable(mutable map[string]string) (Parameters, error) {
	var p Parameters
	return p, parameter.Read(&p, parameter.Mutable(classKeys()), mutable)
}

// rule is a condition between parameters that is not allowed.
type rule struct {
	wrong               bool
	key, value, allowed string
}

// check checks parameters that depend on each other.
func (p *Parameters) check() error {
	for _, r := range slices.Concat(p.identityRules(), p.classRules(), p.networkRules(), p.accountRules()) {
		if r.wrong {
			return &parameter.Error{Key: r.key, Value: r.value, Allowed: r.allowed}
		}
	}
	return nil
}

func (p *Parameters) classRules() []rule {
	return []rule{
		{p.Protocol == "nfs" && p.FSType != "" && p.FSType != "nfs", "fsType", p.FSType, "with protocol nfs: nfs"},
		{p.Protocol == "smb" && p.FSType == "nfs", "fsType", p.FSType, "with protocol smb: smb or cifs"},
		{p.NFS() && !strings.HasPrefix(p.SKU, "Premium"), "skuName", p.SKU, "protocol nfs needs a Premium SKU"},
		{p.NFS() && p.DataPlane != "", "useDataPlaneAPI", p.DataPlane, "the data plane cannot create NFS shares: want false"},
		{is(p.Multichannel) && (p.NFS() || p.SKU != "" && !strings.HasPrefix(p.SKU, "Premium")), "enableMultichannel", "true",
			"only with protocol smb and a Premium SKU"},
		{!p.NFS() && p.StoresKey() && p.SharedKeyAccess != nil && !*p.SharedKeyAccess, "allowSharedKeyAccess", "false",
			"only with storeAccountKey false: shares are mounted with a key otherwise"},
	}
}

// networkRules are the rules of private endpoints.
func (p *Parameters) networkRules() []rule {
	return []rule{
		{p.Endpoint == EndpointPrivate && strings.Contains(p.Subnet, ","), "subnetName", p.Subnet, "a private endpoint has one subnet"},
		{p.Endpoint != EndpointPrivate && p.ZoneGroup != "", "privateDNSZoneResourceGroup", p.ZoneGroup,
			"only with networkEndpointType " + EndpointPrivate},
		{p.Endpoint != EndpointPrivate && is(p.SkipZone), "skipPrivateDNSZone", "true", "only with networkEndpointType " + EndpointPrivate},
		{p.ZoneGroup != "" && is(p.SkipZone), "privateDNSZoneResourceGroup", p.ZoneGroup, "only without skipPrivateDNSZone"},
		{p.VNetLink != "" && is(p.SkipZone), "vnetLinkName", p.VNetLink, "only without skipPrivateDNSZone"},
	}
}

// accountRules are the rules of the account and the name of the share.
func (p *Parameters) accountRules() []rule {
	return []rule{
		{is(p.MatchTags) && p.Account != "", "matchTags", "true", "only without storageAccount"},
		{p.Subscription != "" && p.ResourceGroup == "", "subscriptionID", p.Subscription, "resourceGroup is missing"},
		{p.ShareName != "" && p.SharePrefix != "", "shareNamePrefix", p.SharePrefix, "only without shareName"},
	}
}

// identityRules are the rules of mounts with an identity, for classes and for nodes.
func (p *Parameters) identityRules() []rule {
	modes := 0
	for _, mode := range []*bool{p.ManagedIdentity, p.WorkloadIdentity, p.OAuthToken} {
		if is(mode) {
			modes++
		}
	}
	return []rule{
		{modes > 1, "mountWithManagedIdentity", strconv.FormatBool(is(p.ManagedIdentity)),
			"at most one of mountWithManagedIdentity, mountWithWorkloadIdentityToken and mountWithOAuthToken can be true"},
		{is(p.OAuthToken) && p.SecretName == "", "mountWithOAuthToken", "true", "secretName is missing"},
		{modes > 0 && p.NFS(), "protocol", "nfs", "identities mount by SMB only"},
		{is(p.EncryptInTransit), "encryptInTransit", "true",
			"it needs the aznfs helper, which is not supported: want false"},
	}
}

// NFS reports whether the share has the protocol NFS.
func (p *Parameters) NFS() bool { return p.Protocol == "nfs" || p.FSType == "nfs" }

// Identity reports whether a node mounts with an identity instead of a key.
func (p *Parameters) Identity() bool {
	return is(p.ManagedIdentity) || is(p.WorkloadIdentity) || is(p.OAuthToken)
}

// StoresKey reports whether the controller stores the account's key in a Secret.
func (p *Parameters) StoresKey() bool {
	return !p.NFS() && !p.Identity() && (p.StoreKey == nil || *p.StoreKey)
}

func is(b *bool) bool { return b != nil && *b }

func readDataPlane(p *Parameters, value string) error {
	if strings.EqualFold(value, "false") {
		value = ""
	}
	return parameter.OneOfFold(func(p *Parameters) *string { return &p.DataPlane }, "true", "oauth")(p, value)
}

func readFSType(p *Parameters, value string) error {
	switch value {
	case "ext2", "ext3", "ext4", "xfs":
		return fmt.Errorf("file systems in a VHD file are not supported; use a disk, or smb or nfs")
	}
	return oneOf(func(p *Parameters) *string { return &p.FSType }, "cifs", "smb", "nfs")(p, value)
}

var sharePrefix = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,19}$`)

func readPrefix(p *Parameters, value string) error {
	if value != "" && !sharePrefix.MatchString(value) {
		return fmt.Errorf("want at most 20 of a-z, 0-9 and -, and no - at the start")
	}
	p.SharePrefix = value
	return nil
}

var accountName = regexp.MustCompile(`^[a-z0-9]{3,24}$`)

func readAccount(p *Parameters, value string) error {
	if value != "" && !accountName.MatchString(value) {
		return fmt.Errorf("want 3 to 24 of a-z and 0-9")
	}
	p.Account = value
	return nil
}

// readFolder reads a path in a share. References in it are replaced later, and then it is checked again.
func readFolder(p *Parameters, value string) error {
	folder := strings.Trim(value, "/")
	if folder != "" {
		if err := checkFolder(folder); err != nil {
			return err
		}
	}
	p.Folder = folder
	return nil
}

const permissionBits = 0o7777

// octal reads a mode in octal digits.
func octal(field func(*Parameters) *string, most uint64) func(*Parameters, string) error {
	return func(p *Parameters, value string) error {
		n, err := strconv.ParseUint(value, 8, 32)
		if value != "" && (err != nil || n > most) {
			return fmt.Errorf("want a mode in octal digits, such as 0750")
		}
		*field(p) = value
		return nil
	}
}

// id reads the number of a user or group.
func id(field func(*Parameters) *string) func(*Parameters, string) error {
	return func(p *Parameters, value string) error {
		if _, err := strconv.ParseUint(value, 10, 31); value != "" && err != nil {
			return fmt.Errorf("want the number of a user or group")
		}
		*field(p) = value
		return nil
	}
}

// SnapshotParameters is what a VolumeSnapshotClass says.
type SnapshotParameters struct {
	DataPlane string // as of a StorageClass
	Metadata  map[string]string

	metadata string
}

// ReadSnapshotClass reads the parameters of a VolumeSnapshotClass. The error is a [parameter.Error].
func ReadSnapshotClass(class map[string]string) (SnapshotParameters, error) {
	var p SnapshotParameters
	err := parameter.Read(&p, []parameter.Key[SnapshotParameters]{
		{Name: "useDataPlaneAPI", Read: func(p *SnapshotParameters, value string) error {
			var volume Parameters
			err := readDataPlane(&volume, value)
			p.DataPlane = volume.DataPlane
			return err
		}},
		{Name: "metadata", Read: parameter.Text(func(p *SnapshotParameters) *string { return &p.metadata })},
		{Name: "csi.storage.k8s.io/volumesnapshot/name", Read: parameter.Ignored[SnapshotParameters]},
		{Name: "csi.storage.k8s.io/volumesnapshot/namespace", Read: parameter.Ignored[SnapshotParameters]},
		{Name: "csi.storage.k8s.io/volumesnapshotcontent/name", Read: parameter.Ignored[SnapshotParameters]},
	}, class)
	if err != nil {
		return p, err
	}
	pairs, bad := parameter.Pairs(p.metadata, "")
	if bad != "" {
		return p, &parameter.Error{Key: "metadata", Value: bad, Allowed: "want KEY=VALUE"}
	}
	for name, value := range pairs {
		if strings.EqualFold(name, Initiator) {
			return p, &parameter.Error{Key: "metadata", Value: name + "=" + value, Allowed: "the driver sets " + Initiator}
		}
	}
	p.Metadata = pairs
	return p, nil
}

// attributeKeys are the keys of persistent and inline volumes that nodes need. Attributes can have all keys of a StorageClass, and
// what a node does not need does not stop its mount.
func attributeKeys() []key {
	keys := slices.DeleteFunc(classKeys(), func(k key) bool {
		return !slices.Contains([]string{
			"storageAccount", "resourceGroup", "subscriptionID", "shareName", "diskName", "fsType", "protocol",
			"csi.storage.k8s.io/pvc/name", "csi.storage.k8s.io/pvc/namespace", "csi.storage.k8s.io/pv/name",
		}, k.Name)
	})
	return slices.Concat(keys, mountKeys(), []key{
		{Name: "getAccountKeyFromSecret", Read: lenient(func(p *Parameters) **bool { return &p.KeyFromSecret })},
		{Name: "mountOptions", Read: text(func(p *Parameters) *string { return &p.MountOptions })},
		{Name: "csi.storage.k8s.io/ephemeral", Read: lenient(func(p *Parameters) **bool { return &p.Ephemeral })},
		{Name: "csi.storage.k8s.io/pod.namespace", Read: text(func(p *Parameters) *string { return &p.PodNamespace })},
		{Name: "csi.storage.k8s.io/serviceAccount.name", Read: text(func(p *Parameters) *string { return &p.PodAccount })},
	})
}

// ReadAttributes reads the attributes of a persistent or inline volume. Keys that are not known are left out: other programs
// have theirs.
func ReadAttributes(attributes map[string]string) (Parameters, error) {
	var p Parameters
	if err := CheckSizes(attributes); err != nil {
		return p, err
	}
	table := attributeKeys()
	if err := parameter.Read(&p, table, parameter.Known(table, attributes)); err != nil {
		return p, err
	}
	for _, r := range p.identityRules() {
		if r.wrong {
			return p, &parameter.Error{Key: r.key, Value: r.value, Allowed: r.allowed}
		}
	}
	return p, nil
}

// CheckInline returns why an inline volume cannot have its attributes, nil if it can. The author of a pod chooses the
// attributes, and is not trusted with what other volumes need.
func (p *Parameters) CheckInline() error {
	bad := func(text string) bool {
		return strings.ContainsAny(text, `/\`) || text == "." || text == ".."
	}
	if err := checkInlineOptions(p.MountOptions); err != nil {
		return &parameter.Error{Key: "mountOptions", Value: p.MountOptions, Allowed: err.Error()}
	}
	for _, r := range []rule{
		{p.ShareName == "", "shareName", "", "it is missing"},
		{p.NFS(), "protocol", "nfs", "inline volumes have the protocol smb"},
		{p.DiskName != "", "diskName", p.DiskName, "inline volumes are shares"},
		{bad(p.Server), "server", p.Server, `want the name of a host, without / and \`},
		{bad(p.ShareName), "shareName", p.ShareName, `want the name of a share, without / and \`},
		{is(p.ManagedIdentity), "mountWithManagedIdentity", "true", "not for inline volumes: the node's identity is not the pod's"},
		{is(p.OAuthToken), "mountWithOAuthToken", "true", "not for inline volumes"},
		{is(p.CreateFolder) && p.Identity(), "createFolderIfNotExist", "true",
			"only with a key: the node's identity would create the folder at a server that the pod names"},
		{p.FileMode != "" && !mode.MatchString(p.FileMode), "fileMode", p.FileMode, "inline volumes have modes up to 0777"},
		{p.DirMode != "" && !mode.MatchString(p.DirMode), "dirMode", p.DirMode, "inline volumes have modes up to 0777"},
	} {
		if r.wrong {
			return &parameter.Error{Key: r.key, Value: r.value, Allowed: r.allowed}
		}
	}
	return nil
}
