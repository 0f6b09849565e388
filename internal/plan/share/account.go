package share

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/azure/storage"
)

// Tags of accounts.
const (
	tagCreatedBy = "k8s-azure-created-by"
	creator      = "azure"
	// TagSkip keeps an account from being chosen for new shares. Its value is the time until which it does, in RFC 3339. With any other
	// value, such as that of the other driver, it does until the tag is removed.
	TagSkip = "skip-matching"
	// tagCluster is on what an engine cluster consists of, such as the account with the backups of etcd.
	tagCluster = "kaz_cluster"
)

// FullFor is how long a full account is passed over. Deleted shares count until their retention ends, which nothing announces: after
// this time one request tries the account again.
const FullFor = time.Hour

// SkipUntil returns the value of [TagSkip] of an account that is full now.
func SkipUntil(now time.Time) string { return now.Add(FullFor).UTC().Format(time.RFC3339) }

// Account is a storage account as its document shows it.
type Account = azure.Resource[storage.Account]

// Request is what a volume asks of its account.
type Request struct {
	Parameters
	Cluster Cluster
	// Source is the account of the share that is copied, "" for none. It is preferred: shares of one account are copied
	// without a shared access signature.
	Source string
	// Now is the time at which accounts are chosen.
	Now time.Time
	// NetworkSubnets are the subnets of the virtual network that nodes can be in, for a class that names no subnet.
	NetworkSubnets []azure.ID
}

// Group returns the resource group of the account.
func (r Request) Group() azure.ID {
	return azure.GroupID(cmp.Or(r.Subscription, r.Cluster.Subscription),
		cmp.Or(r.ResourceGroup, r.Cluster.ResourceGroup))
}

// region returns the region of the account.
func (r Request) region() string { return cmp.Or(r.Location, r.Cluster.Location) }

// Key returns a text that is equal for requests that the same accounts serve.
func (r Request) Key() string {
	p := r.Parameters
	p.tags, p.delimiter = "", ""
	for _, field := range []*string{ // of the volume alone
		&p.ShareName, &p.SharePrefix, &p.DiskName, &p.Folder, &p.Server, &p.SecretName, &p.SecretNamespace, &p.PVCName, &p.PVCNamespace,
		&p.PVName, &p.RootSquash, &p.ShareTier, &p.MountPermissions, &p.FileMode, &p.DirMode, &p.UID, &p.GID, &p.GroupChange, &p.DataPlane,
	} {
		*field = ""
	}
	p.IOPS, p.Bandwidth = nil, nil
	p.CreateFolder, p.StoreKey, p.SecretCache, p.LatestKey, p.RandomAccount, p.CreateAccount = nil, nil, nil, nil, nil, nil
	p.Tags = nil
	named := r
	named.NetworkSubnets = nil // they change with the network
	text := []string{string(r.Group()), r.region(), r.kind(), fmt.Sprint(named.Subnets())}
	for _, name := range slices.Sorted(maps.Keys(r.Tags)) {
		text = append(text, name+"="+r.Tags[name])
	}
	return strings.ToLower(strings.Join(append(text, flat(p)), "\n"))
}

// flat writes parameters with the values of pointers.
func flat(p Parameters) string {
	show := func(b *bool) string {
		if b == nil {
			return "-"
		}
		return fmt.Sprint(*b)
	}
	return strings.Join([]string{
		p.SKU, p.Protocol, p.FSType, p.PublicNetworkAccess, p.AccountTier, p.Endpoint, p.VNetGroup, p.VNet, p.Subnet, p.VNetLink,
		p.ZoneGroup, p.EndpointSuffix, show(p.LargeShares), show(p.DisableRetention), show(p.BlobPublicAccess), show(p.SharedKeyAccess),
		show(p.CrossTenantReplication), show(p.InfrastructureEncryption), show(p.Multichannel), show(p.MatchTags),
		fmt.Sprint(p.Identity()),
	}, "\n")
}

func (r Request) kind() string { return skuOf(r.SKU).kind }

// Matches reports whether an account can serve a request. The file service of the account is looked at separately.
func (r Request) Matches(a Account) bool {
	for _, fits := range []bool{
		r.SKU == "" || a.SKU != nil && strings.EqualFold(a.SKU.Name, r.SKU),
		strings.EqualFold(a.Kind, r.kind()),
		sameRegion(a.Location, r.region()),
		r.matchesTags(a),
		r.matchesSettings(a.Properties),
		r.matchesKeys(a),
		r.matchesNetwork(a),
		r.Made(a.ID.Name()) || !ofOthers(a) && r.reachable(a),
	} {
		if !fits {
			return false
		}
	}
	return true
}

func sameRegion(a, b string) bool {
	return strings.EqualFold(strings.ReplaceAll(a, " ", ""), strings.ReplaceAll(b, " ", ""))
}

func (r Request) matchesTags(a Account) bool {
	for name, value := range a.Tags {
		if strings.EqualFold(name, TagSkip) && !r.ended(value) {
			return false
		}
	}
	if !is(r.MatchTags) {
		return true
	}
	for name, value := range r.accountTags() {
		if have, ok := a.Tags[name]; !ok || have != value {
			return false
		}
	}
	return true
}

// ended reports whether the time in the value of [TagSkip] is over.
func (r Request) ended(until string) bool {
	end, err := time.Parse(time.RFC3339, until)
	return err == nil && !r.Now.Before(end)
}

// asks reports whether a setting is as asked for. A request that does not ask takes any; an account that does not show the
// setting has the usual value.
func asks(want, have *bool, usual bool) bool {
	if want == nil {
		return true
	}
	if have == nil {
		return *want == usual
	}
	return *want == *have
}

func (r Request) matchesSettings(a storage.Account) bool {
	no := false
	httpsOnly := !r.NFS()
	blobs := cmp.Or(r.BlobPublicAccess, &no)
	return (r.LargeShares == nil || strings.EqualFold(a.LargeFileShares, "Enabled") == *r.LargeShares) &&
		asks(&no, a.HierarchicalNamespace, false) && asks(&no, a.NFSv3, false) &&
		asks(&httpsOnly, a.HTTPSOnly, true) && asks(blobs, a.AllowBlobPublicAccess, true) &&
		asks(r.InfrastructureEncryption, twice(a), false) &&
		asks(r.CrossTenantReplication, a.AllowCrossTenantCopies, false) &&
		(r.AccountTier == "" || strings.EqualFold(a.AccessTier, r.AccountTier)) &&
		(r.PublicNetworkAccess == "" || strings.EqualFold(cmp.Or(a.PublicNetworkAccess, "Enabled"), r.PublicNetworkAccess)) &&
		(!r.Identity() || takesIdentities(a))
}

// matchesKeys reports whether an account takes keys if nodes mount with a key. An account that takes none only fits if the class says
// so, or if it was made for the class and nodes need no key.
func (r Request) matchesKeys(a Account) bool {
	yes := true
	if r.SharedKeyAccess == nil && !r.mountsWithKey() && r.Made(a.ID.Name()) {
		return true
	}
	return asks(cmp.Or(r.SharedKeyAccess, &yes), a.Properties.AllowSharedKeyAccess, true)
}

func (r Request) mountsWithKey() bool { return !r.NFS() && !r.Identity() }

// Closed reports whether an account was made for a request and cannot serve it, because a policy or a user has since switched off its
// keys. More accounts would have the same fate.
func (r Request) Closed(a Account) bool { return r.Made(a.ID.Name()) && !r.matchesKeys(a) }

func twice(a storage.Account) *bool {
	if a.Encryption == nil {
		return nil
	}
	return a.Encryption.Twice
}

func takesIdentities(a storage.Account) bool {
	return a.FileIdentities != nil && a.FileIdentities.SMBOAuth != nil && is(a.FileIdentities.SMBOAuth.Enabled)
}

// matchesNetwork reports whether the nodes can reach an account as the request says. They reach it through service endpoints
// of all subnets, or through a private endpoint for files. A subnet without a rule counts if the account can get a rule for
// it.
func (r Request) matchesNetwork(a Account) bool {
	if missing := r.MissingSubnets(a); len(missing) > 0 && !takesSubnets(a, len(missing)) {
		return false
	}
	return r.Endpoint != EndpointPrivate || len(a.Properties.Connections) > 0 || r.Made(a.ID.Name())
}

// MissingSubnets returns the subnets of a request that an account has no rule for.
func (r Request) MissingSubnets(a Account) []azure.ID {
	rules := a.Properties.NetworkRules
	return slices.DeleteFunc(r.Subnets(), func(subnet azure.ID) bool {
		return rules != nil && slices.ContainsFunc(rules.Subnets, func(rule storage.SubnetRule) bool {
			return rule.ID.Equal(subnet) && strings.EqualFold(cmp.Or(rule.Action, "Allow"), "Allow")
		})
	})
}

// takesSubnets reports whether an account can get rules for more subnets: a driver made it for service endpoints.
func takesSubnets(a Account, more int) bool {
	const most = 200
	rules := a.Properties.NetworkRules
	return MadeByDriver(a) && len(a.Properties.Connections) == 0 &&
		rules != nil && len(rules.Subnets) > 0 && len(rules.Subnets)+more <= most
}

// WithSubnets returns the rules of an account with those that a request misses. The other rules stay.
func (r Request) WithSubnets(a Account) storage.NetworkRules {
	rules := *cmp.Or(a.Properties.NetworkRules, &storage.NetworkRules{})
	rules.Subnets = slices.Clone(rules.Subnets)
	for _, subnet := range r.MissingSubnets(a) {
		rules.Subnets = append(rules.Subnets, storage.SubnetRule{ID: subnet, Action: "Allow"})
	}
	return rules
}

// reachable reports whether the nodes reach an account without a private endpoint that the request does not ask for. A class
// that closes public network access leaves private endpoints to its administrator.
func (r Request) reachable(a Account) bool {
	if r.Endpoint == EndpointPrivate || r.PublicNetworkAccess != "" && !strings.EqualFold(r.PublicNetworkAccess, "Enabled") {
		return true
	}
	if !strings.EqualFold(cmp.Or(a.Properties.PublicNetworkAccess, "Enabled"), "Enabled") {
		return false
	}
	rules := a.Properties.NetworkRules
	closed := rules != nil && strings.EqualFold(rules.DefaultAction, "Deny") && len(r.Subnets()) == 0
	return len(a.Properties.Connections) == 0 || MadeByDriver(a) && !closed
}

// ofOthers reports whether tags of an account say that another program has it for itself. Such programs are Azure Cloud Shell, the
// installer of OpenShift, which makes an account for the image registry in the cluster's group, and kaz's engine, which makes one for
// the backups of etcd.
func ofOthers(a Account) bool {
	if MadeByDriver(a) {
		return false
	}
	for name, value := range a.Tags {
		name = strings.ToLower(name)
		if strings.HasPrefix(name, "kubernetes.io_cluster.") && strings.EqualFold(value, "owned") || name == "ms-resource-usage" ||
			name == tagCluster {
			return true
		}
	}
	return false
}

// Made reports whether an account was made for requests like this one. It may not be complete yet.
func (r Request) Made(name string) bool {
	for attempt := range MostAccounts {
		if strings.EqualFold(name, r.NewName("", attempt)) {
			return true
		}
	}
	return false
}

// MostAccounts bounds the accounts that are made for requests that the same accounts serve.
const MostAccounts = 100

// NeedsFileService reports whether the file service of an account has to be looked at as well.
func (r Request) NeedsFileService() bool { return r.Multichannel != nil || r.DisableRetention != nil }

// MatchesFileService reports whether the file service of an account is as asked for.
func (r Request) MatchesFileService(s storage.FileService) bool {
	var multichannel, kept *bool
	if s.Protocols != nil && s.Protocols.SMB != nil && s.Protocols.SMB.Multichannel != nil {
		multichannel = s.Protocols.SMB.Multichannel.Enabled
	}
	if s.DeletedShares != nil {
		kept = s.DeletedShares.Enabled
	}
	return asks(r.Multichannel, multichannel, false) && asks(negated(r.DisableRetention), kept, true)
}

func negated(b *bool) *bool {
	if b == nil {
		return nil
	}
	not := !*b
	return &not
}

// FileService returns the wanted settings of the file service of a new account.
func (r Request) FileService() storage.FileService {
	var s storage.FileService
	if r.Multichannel != nil {
		s.Protocols = &storage.ProtocolSettings{SMB: &storage.SMBSettings{Multichannel: &storage.Multichannel{Enabled: r.Multichannel}}}
	}
	if r.DisableRetention != nil {
		s.DeletedShares = &storage.Retention{Enabled: negated(r.DisableRetention)}
		if !*r.DisableRetention {
			const usualDays = 7
			s.DeletedShares.Days = usualDays
		}
	}
	return s
}

// Order returns the matching accounts in the order in which they are used. The account of the source is first. The others
// follow by name, and those that need rules for more subnets are last. With selectRandomMatchingAccount the order depends on
// the volume, and is the same each time.
func (r Request) Order(accounts []Account, volume string) []Account {
	matching := slices.DeleteFunc(slices.Clone(accounts), func(a Account) bool { return !r.Matches(a) })
	rank := func(a Account) string {
		switch {
		case r.Source != "" && strings.EqualFold(a.ID.Name(), r.Source):
			return ""
		case is(r.RandomAccount):
			return digest(volume, a.ID.Name())
		case len(r.MissingSubnets(a)) > 0:
			return "~" + strings.ToLower(a.ID.Name()) // after all letters and digits
		}
		return strings.ToLower(a.ID.Name())
	}
	slices.SortFunc(matching, func(a, b Account) int { return strings.Compare(rank(a), rank(b)) })
	return matching
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:])
}

// NewName returns the name of a new account. Requests that the same accounts serve get the same name. Processes that need an
// account at the same time therefore make one. attempt counts the names that are taken or belong to full accounts. With
// createAccount each volume has an account of its own.
func (r Request) NewName(volume string, attempt int) string {
	const length = 22
	of := r.Key()
	if is(r.CreateAccount) {
		of += "\n" + volume
	}
	return "f" + digest(of, fmt.Sprint(attempt))[:length]
}

func (r Request) accountTags() map[string]string {
	tags := map[string]string{tagCreatedBy: creator}
	maps.Copy(tags, r.Tags)
	return tags
}

// NewAccount returns the document of a new account.
func (r Request) NewAccount(name string) Account {
	yes, no, httpsOnly := true, false, !r.NFS()
	a := Account{
		ID: r.Group().Resource(storage.Accounts, name), Location: r.region(), Kind: r.kind(),
		SKU: &azure.SKU{Name: cmp.Or(r.SKU, "Standard_LRS")}, Tags: r.accountTags(),
		Properties: storage.Account{
			MinimumTLSVersion: "TLS1_2", HTTPSOnly: &httpsOnly, AllowBlobPublicAccess: cmp.Or(r.BlobPublicAccess, &no),
			AllowSharedKeyAccess: r.SharedKeyAccess, AllowCrossTenantCopies: r.CrossTenantReplication,
			PublicNetworkAccess: r.PublicNetworkAccess, AccessTier: r.AccountTier,
		},
	}
	if is(r.LargeShares) {
		a.Properties.LargeFileShares = "Enabled"
	}
	if is(r.InfrastructureEncryption) {
		a.Properties.Encryption = &storage.AccountEncryption{KeySource: "Microsoft.Storage", Twice: &yes}
	}
	if r.Identity() {
		a.Properties.FileIdentities = &storage.FileIdentities{DirectoryService: "None", SMBOAuth: &storage.SMBOAuth{Enabled: &yes}}
	}
	if r.Endpoint == EndpointPrivate || len(r.Subnets()) > 0 {
		a.Properties.NetworkRules = &storage.NetworkRules{DefaultAction: "Deny"}
		for _, subnet := range r.Subnets() {
			a.Properties.NetworkRules.Subnets = append(a.Properties.NetworkRules.Subnets, storage.SubnetRule{ID: subnet, Action: "Allow"})
		}
	}
	return a
}

// Full reports whether an account has no room for one more share of a size. have are its shares.
func (r Request) Full(a Account, have []int64, size int64) bool {
	name := r.SKU
	if a.SKU != nil {
		name = a.SKU.Name
	}
	if most := skuOf(name).shares; most > 0 && len(have) >= most {
		return true
	}
	if r.AccountQuota == nil {
		return false
	}
	total := size
	for _, quota := range have {
		total += quota
	}
	return total > *r.AccountQuota
}

// Subnets returns the subnets with service endpoints that reach the account: those that the class names, or those of the virtual
// network. NFS without a private endpoint needs them as well: its traffic is not encrypted.
func (r Request) Subnets() []azure.ID {
	if !r.NeedsSubnets() {
		return nil
	}
	if r.Subnet == "" && len(r.NetworkSubnets) > 0 {
		return slices.Clone(r.NetworkSubnets)
	}
	var all []azure.ID
	for name := range strings.SplitSeq(cmp.Or(r.Subnet, r.Cluster.Subnet), ",") {
		if name = strings.TrimSpace(name); name != "" {
			all = append(all, r.Network().Child("subnets", name))
		}
	}
	return all
}

// NeedsNetworkSubnets reports whether the account is reached from all subnets of the virtual network.
func (r Request) NeedsNetworkSubnets() bool { return r.NeedsSubnets() && r.Subnet == "" }

// Configured reports whether the cloud configuration names a subnet.
func (r Request) Configured(subnet azure.ID) bool {
	return r.Cluster.Subnet != "" && subnet.Equal(r.Network().Child("subnets", r.Cluster.Subnet))
}

// TakesNodes reports whether nodes can be in a subnet. Azure reserves some names for its own services.
func TakesNodes(subnet string) bool {
	return !slices.ContainsFunc([]string{
		"GatewaySubnet", "AzureBastionSubnet", "AzureFirewallSubnet", "AzureFirewallManagementSubnet", "RouteServerSubnet",
	}, func(reserved string) bool { return strings.EqualFold(reserved, subnet) })
}

// NeedsSubnets reports whether the account is reached through service endpoints.
func (r Request) NeedsSubnets() bool {
	return r.Endpoint == EndpointService || r.NFS() && r.Endpoint != EndpointPrivate
}

// Network returns the virtual network of the endpoints.
func (r Request) Network() azure.ID {
	return r.networkGroup("").Resource("Microsoft.Network/virtualNetworks", cmp.Or(r.VNet, r.Cluster.VNet))
}

// networkGroup returns the resource group of the network, or another one in its subscription.
func (r Request) networkGroup(other string) azure.ID {
	return azure.GroupID(cmp.Or(r.Cluster.NetworkSubscription, r.Cluster.Subscription),
		cmp.Or(other, r.VNetGroup, r.Cluster.VNetGroup, r.Cluster.ResourceGroup))
}

// CheckNetwork returns why the network of the endpoints is not known, nil if it is or is not needed.
func (r Request) CheckNetwork() error {
	if r.Endpoint != EndpointPrivate && !r.NeedsSubnets() {
		return nil
	}
	if cmp.Or(r.VNet, r.Cluster.VNet) == "" {
		return fmt.Errorf("vnetName is missing: neither the parameters nor the cloud configuration name the virtual network")
	}
	if r.Endpoint == EndpointPrivate && cmp.Or(r.Subnet, r.Cluster.Subnet) == "" {
		return fmt.Errorf("subnetName is missing: neither the parameters nor the cloud configuration name a subnet")
	}
	return nil
}

// WithEndpoint returns a subnet with the service endpoint of storage, and whether it had none.
func (r Request) WithEndpoint(subnet azure.Resource[network.Subnet]) (azure.Resource[network.Subnet], bool) {
	const service = "Microsoft.Storage"
	for _, e := range subnet.Properties.ServiceEndpoints {
		if len(e.Service) >= len(service) && strings.EqualFold(e.Service[:len(service)], service) {
			return subnet, false
		}
	}
	all := append(slices.Clone(subnet.Properties.ServiceEndpoints),
		network.ServiceEndpoint{Service: service, Locations: []string{r.Cluster.Location}})
	return azure.Resource[network.Subnet]{ID: subnet.ID, Properties: network.Subnet{ServiceEndpoints: all}}, true
}

// MadeByDriver reports whether a driver made an account.
func MadeByDriver(a Account) bool { return a.Tags[tagCreatedBy] == creator }
