package storage

import (
	"regexp"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/catalog"
)

func accounts() behaviour.Type {
	return behaviour.Type{
		Name:  AccountType,
		Style: behaviour.Storage(),
		Where: behaviour.Located,
		Own: []string{
			keysField, "properties.creationTime", "properties.keyCreationTime", "properties.primaryEndpoints", "properties.primaryLocation",
			"properties.statusOfPrimary", "properties.secondaryEndpoints", "properties.secondaryLocation", "properties.statusOfSecondary",
			"properties.privateEndpointConnections", "sku.tier",
		},
		Fill:   fillAccount,
		Settle: createServices,
		Removed: func(c *behaviour.Call) error {
			id := azure.SubscriptionID(c.ID.Subscription()).Resource("Microsoft.Storage/locations", behaviour.Text(c.Old, "location")).
				Child("deletedAccounts", c.ID.Name())
			c.Put(id, behaviour.Object{"properties": behaviour.Object{"storageAccountResourceId": string(c.ID),
				"location": behaviour.Text(c.Old, "location"), "restoreReference": c.ID.Name() + "|" + behaviour.Timestamp(c.Now()),
				"creationTime": behaviour.Text(c.Old, "properties.creationTime"), "deletionTime": behaviour.Timestamp(c.Now())}})
			return nil
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			behaviour.Hide(view)
			behaviour.Set(view, "properties.privateEndpointConnections", behaviour.PrivateEndpointConnections(c, c.ID))
			if c.Query.Get("api-version") >= "2025-06-01" {
				behaviour.Default(view, "properties.allowCrossTenantDelegationSas", false)
			}
			if c.Expands("geoReplicationStats") && behaviour.Text(view, "properties.secondaryLocation") != "" {
				behaviour.Set(view, "properties.geoReplicationStats", behaviour.Object{"status": "Live",
					"lastSyncTime": behaviour.Timestamp(c.Now()), "canFailover": true, "canPlannedFailover": true,
					"postFailoverRedundancy": "Standard_LRS", "postPlannedFailoverRedundancy": behaviour.Text(view, "sku.name")})
			}
		},
		Actions: map[string]behaviour.Action{
			"listKeys":                 {Do: listKeys},
			"regenerateKey":            {Do: regenerateKey},
			"ListAccountSas":           {Do: accountSAS},
			"ListServiceSas":           {Do: serviceSAS},
			"revokeUserDelegationKeys": {},
		},
	}
}

// linkGroups are the services of an account to which private endpoints can connect.
func linkGroups(c *behaviour.Call) []behaviour.LinkGroup {
	var groups []behaviour.LinkGroup
	secondary := behaviour.Sub(c.Old, "properties.secondaryEndpoints")
	for _, service := range endpoints[behaviour.Text(c.Old, "kind")] {
		for _, suffix := range []string{"", "_secondary"} {
			if suffix != "" && secondary[service] == nil {
				continue
			}
			groups = append(groups, behaviour.LinkGroup{ID: service + suffix, Members: []string{service + suffix},
				Zones: []string{"privatelink." + service + "." + behaviour.CloudOf(c.Location()).Storage}})
		}
	}
	return groups
}

var accountName = regexp.MustCompile(`^[a-z0-9]{3,24}$`)

const (
	invalidName = " is not a valid storage account name. Storage account name must be between 3 and 24 characters in length and use " +
		"numbers and lower-case letters only."
	nameTaken = "The storage account named %s is already taken."
)

func fillAccount(c *behaviour.Call) error {
	if c.Old == nil {
		if err := checkNewAccount(c); err != nil {
			return err
		}
	}
	if err := checkSKU(c); err != nil {
		return err
	}
	if err := checkKind(c); err != nil {
		return err
	}
	if err := checkSubnets(c); err != nil {
		return err
	}
	behaviour.PlaceInZone(c)
	now := behaviour.Timestamp(c.Now())
	behaviour.Default(c.Doc, "properties.creationTime", now)
	if c.Doc[keysField] == nil {
		c.Doc[keysField] = behaviour.Object{"key1": newKey(c), "key2": newKey(c)}
		behaviour.Set(c.Doc, "properties.keyCreationTime", behaviour.Object{"key1": now, "key2": now})
	}
	fillSettings(c)
	fillEncryption(c, now)
	fillLocations(c)
	return nil
}

func checkNewAccount(c *behaviour.Call) error {
	name := c.ID.Name()
	if !accountName.MatchString(name) {
		return behaviour.Invalid("AccountNameInvalid", "%s", name+invalidName)
	}
	other, taken := c.Holder(AccountType, name)
	switch {
	case taken && other.Subscription() == c.ID.Subscription():
		return behaviour.Conflict("StorageAccountInAnotherResourceGroup",
			"The account %s is already in another resource group in this subscription.", name)
	case taken:
		return behaviour.Conflict("StorageAccountAlreadyTaken", nameTaken, name)
	}
	return checkNewImmutability(behaviour.Sub(c.Doc, "properties.immutableStorageWithVersioning.immutabilityPolicy"))
}

// checkNewImmutability refuses a policy that is not complete, or that nothing could ever change.
func checkNewImmutability(policy behaviour.Object) error {
	const failure = "InvalidStorageAccountImmutabilityPolicy"
	state := behaviour.Text(policy, "state")
	switch {
	case policy == nil:
	case state == "" || policy["immutabilityPeriodSinceCreationInDays"] == nil:
		return behaviour.Invalid(failure, "The required property immutabilityPolicy.state, "+
			"immutabilityPolicy.immutabilityPeriodSinceCreationInDays is missing.")
	case !strings.EqualFold(state, "Unlocked") && !strings.EqualFold(state, "Disabled"):
		return behaviour.Invalid(failure, "Storage account immutability policy state can be set to \"Unlocked, Disabled\". Note that "+
			"the immutability state can either be Disabled or Unlocked during account creation.")
	}
	return nil
}

// replications has the SKUs and the kinds of accounts that may have them.
var replications = map[string][]string{
	"Standard_LRS": {"Storage", "StorageV2", "BlobStorage"}, "Standard_GRS": {"Storage", "StorageV2", "BlobStorage"},
	"Standard_RAGRS": {"Storage", "StorageV2", "BlobStorage"}, "Standard_ZRS": {"Storage", "StorageV2"},
	"Standard_GZRS": {"StorageV2"}, "Standard_RAGZRS": {"StorageV2"},
	"Premium_LRS": {"Storage", "StorageV2", "FileStorage", "BlockBlobStorage"}, "Premium_ZRS": {"FileStorage", "BlockBlobStorage"},
	"PremiumV2_LRS": {"FileStorage"}, "PremiumV2_ZRS": {"FileStorage"},
	"StandardV2_LRS": {"FileStorage"}, "StandardV2_ZRS": {"FileStorage"}, "StandardV2_GRS": {"FileStorage"},
	"StandardV2_GZRS": {"FileStorage"},
}

func checkSKU(c *behaviour.Call) error {
	if old := behaviour.Text(c.Doc, "properties.accountType"); old != "" { // the SKU, in the api-versions of 2015
		behaviour.Remove(c.Doc, "properties.accountType")
		behaviour.Default(c.Doc, "sku.name", old)
	}
	if behaviour.Text(c.Doc, "sku.name") == "" && c.Old != nil {
		behaviour.Set(c.Doc, "sku", behaviour.Clone(behaviour.Sub(c.Old, "sku")))
	}
	name := behaviour.Text(c.Doc, "sku.name")
	for known := range replications {
		if strings.EqualFold(known, name) {
			behaviour.Set(c.Doc, "sku.name", known)
			tier, _, _ := strings.Cut(known, "_")
			behaviour.Set(c.Doc, "sku.tier", strings.TrimSuffix(tier, "V2"))
			return nil
		}
	}
	return behaviour.Invalid("InvalidRequestPropertyValue",
		"The value '%s' is not allowed for property sku.name. For more information, see - https://aka.ms/storageaccountskus", name)
}

// checkKind refuses a kind that does not fit the SKU, or to which Azure does not upgrade the present one.
func checkKind(c *behaviour.Call) error {
	kind, had, sku := behaviour.Text(c.Doc, "kind"), behaviour.Text(c.Old, "kind"), behaviour.Text(c.Doc, "sku.name")
	if kind == "" {
		kind = had
	}
	if kind == "" {
		kind = "Storage"
	}
	if !slices.Contains(replications[sku], kind) {
		return behaviour.Invalid("AccountPropertyIsInvalid",
			"Account property kind is invalid for the request: '%s' cannot have the sku '%s'.", kind, sku)
	}
	if had != "" && had != kind && kind != "StorageV2" {
		return behaviour.Invalid("AccountPropertyCannotBeUpdated",
			"Property 'kind' was specified in the input, but it cannot be updated from '%s' to '%s'.", had, kind)
	}
	c.Doc["kind"] = kind
	return checkFixed(c)
}

// checkFixed refuses changes of properties that cannot change.
func checkFixed(c *behaviour.Call) error {
	const large = "properties.largeFileSharesState"
	if behaviour.Text(c.Old, large) == "Enabled" {
		behaviour.Default(c.Doc, large, "Enabled")
		if c.Changed(large) {
			return behaviour.Invalid("AccountPropertyCannotBeUpdated",
				"The property 'largeFileSharesState' was specified in the input, but it cannot be updated: large file shares cannot be "+
					"disabled.")
		}
	}
	for _, fixed := range []string{"isHnsEnabled", "isNfsV3Enabled", "dnsEndpointType", "encryption.requireInfrastructureEncryption"} {
		path := "properties." + fixed
		was := behaviour.At(c.Old, path)
		if c.Old == nil || was == nil {
			continue
		}
		behaviour.Default(c.Doc, path, was)
		if c.Changed(path) {
			return behaviour.Invalid("AccountPropertyCannotBeUpdated",
				"The property '%s' was specified in the input, but it cannot be updated.", fixed)
		}
	}
	return nil
}

// mostNetworkRules is the limit of each kind of network rules.
const mostNetworkRules = 200

// checkSubnets refuses network rules for subnets that do not exist or have no service endpoint of storage.
func checkSubnets(c *behaviour.Call) error {
	const failure = "NetworkAclsValidationFailure"
	for _, kind := range []string{"virtualNetworkRules", "ipRules"} {
		if n := len(behaviour.Array(c.Doc, "properties.networkAcls."+kind)); n > mostNetworkRules {
			return behaviour.Invalid(failure, "Validation of network acls failure: %d %s, at most %d are allowed.", n, kind,
				mostNetworkRules)
		}
	}
	for _, rule := range behaviour.Objects(c.Doc, "properties.networkAcls.virtualNetworkRules") {
		id := azure.ID(behaviour.Text(rule, "id"))
		subnet, there := c.Get(id)
		if !there || !id.Is("Microsoft.Network/virtualNetworks/subnets") {
			return behaviour.Invalid(failure, "Validation of network acls failure: SubnetNotFound:The subnet %s does not exist.", id)
		}
		if !slices.ContainsFunc(behaviour.Objects(subnet, "properties.serviceEndpoints"), func(e behaviour.Object) bool {
			return strings.HasPrefix(strings.ToLower(behaviour.Text(e, "service")), "microsoft.storage")
		}) {
			return behaviour.Invalid(failure, "Validation of network acls failure: SubnetsHaveNoServiceEndpointsConfigured:Subnets %s of "+
				"virtual network %s do not have ServiceEndpoints for Microsoft.Storage resources configured. Add Microsoft.Storage to "+
				"subnet's ServiceEndpoints collection before trying to ACL Microsoft.Storage resources to these subnets.", id.Name(),
				id.Parent())
		}
	}
	return nil
}

// settings are the settings that an account's request can leave out.
var settings = map[string]any{
	"allowCrossTenantReplication": false,
	"minimumTlsVersion":           "TLS1_0",
	"allowBlobPublicAccess":       false,
	"supportsHttpsTrafficOnly":    true,
}

func fillSettings(c *behaviour.Call) {
	for name, value := range settings {
		path := "properties." + name
		if was := behaviour.At(c.Old, path); was != nil {
			value = was
		}
		behaviour.Default(c.Doc, path, behaviour.Clone(value))
	}
	acls := behaviour.Object{"ipv6Rules": []any{}, "bypass": "AzureServices", "virtualNetworkRules": []any{}, "ipRules": []any{},
		"defaultAction": "Allow"}
	if was := behaviour.Sub(c.Old, "properties.networkAcls"); was != nil && behaviour.Sub(c.Doc, "properties.networkAcls") == nil {
		acls = behaviour.Clone(was)
	}
	for name, value := range acls {
		behaviour.Default(c.Doc, "properties.networkAcls."+name, value)
	}
	for _, rule := range slices.Concat(behaviour.Objects(c.Doc, "properties.networkAcls.virtualNetworkRules"),
		behaviour.Objects(c.Doc, "properties.networkAcls.ipRules")) {
		behaviour.Default(rule, "action", "Allow")
		if rule["id"] != nil {
			behaviour.Default(rule, "state", "Succeeded")
		}
	}
	kind := behaviour.Text(c.Doc, "kind")
	if kind == "BlockBlobStorage" {
		behaviour.Set(c.Doc, "properties.accessTier", "Premium")
	}
	if kind == "StorageV2" || kind == "BlobStorage" {
		tier := "Hot"
		if was := behaviour.Text(c.Old, "properties.accessTier"); was != "" {
			tier = was
		}
		behaviour.Default(c.Doc, "properties.accessTier", tier)
	}
}

func fillEncryption(c *behaviour.Call, now string) {
	const services = "properties.encryption.services"
	doc := c.Doc
	for _, service := range []string{"blob", "file"} {
		behaviour.Default(doc, services+"."+service, behaviour.Object{})
	}
	for name, x := range behaviour.Sub(doc, services) {
		service, ok := x.(behaviour.Object)
		if !ok {
			behaviour.Remove(doc, services+"."+name)
			continue
		}
		behaviour.Default(service, "keyType", "Account")
		behaviour.Default(service, "enabled", true)
		if was := behaviour.Sub(c.Old, services+"."+name); was["enabled"] == service["enabled"] {
			behaviour.Default(service, "lastEnabledTime", was["lastEnabledTime"])
		}
		behaviour.Default(service, "lastEnabledTime", now)
	}
	behaviour.Default(doc, "properties.encryption.keySource", "Microsoft.Storage")
	const key = "properties.encryption.keyvaultproperties"
	fillKey(doc, behaviour.Sub(c.Old, key), key, now)
}

// fillKey shows which version of a key of a vault is in use, and since when.
func fillKey(doc, was behaviour.Object, path, now string) {
	key := behaviour.Sub(doc, path)
	if key == nil {
		return
	}
	const version = "863425f1358359c863425f1358359c00"
	current := behaviour.Text(key, "keyversion")
	if current == "" {
		current = version
	}
	uri := strings.TrimSuffix(behaviour.Text(key, "keyvaulturi"), "/") + "/keys/" + behaviour.Text(key, "keyname") + "/" + current
	key["currentVersionedKeyIdentifier"], key["lastKeyRotationTimestamp"] = uri, now
	if was["currentVersionedKeyIdentifier"] == uri {
		key["lastKeyRotationTimestamp"] = was["lastKeyRotationTimestamp"]
	}
}

// endpoints returns the services of an account by its kind.
var endpoints = map[string][]string{
	"Storage":          {"blob", "queue", "table", "file"},
	"StorageV2":        {"dfs", "web", "blob", "queue", "table", "file"},
	"BlobStorage":      {"dfs", "blob", "table"},
	"BlockBlobStorage": {"dfs", "web", "blob"},
	"FileStorage":      {"file"},
}

// fillLocations writes the locations and the URLs of an account.
func fillLocations(c *behaviour.Call) {
	location, sku := c.Location(), behaviour.Text(c.Doc, "sku.name")
	behaviour.Set(c.Doc, "properties.primaryLocation", location)
	behaviour.Set(c.Doc, "properties.statusOfPrimary", "available")
	behaviour.Set(c.Doc, "properties.primaryEndpoints", routed(c, ""))
	for _, field := range []string{"secondaryLocation", "statusOfSecondary", "secondaryEndpoints"} {
		behaviour.Remove(c.Doc, "properties."+field)
	}
	region, ok := catalog.FindRegion(location)
	if !ok || region.Pair == "" || !strings.Contains(sku, "GRS") && !strings.Contains(sku, "GZRS") {
		return
	}
	behaviour.Set(c.Doc, "properties.secondaryLocation", region.Pair)
	behaviour.Set(c.Doc, "properties.statusOfSecondary", "available")
	if strings.Contains(sku, "_RA") {
		secondary := routed(c, "-secondary")
		behaviour.Set(c.Doc, "properties.secondaryEndpoints", secondary)
	}
}

// routed returns the URLs of an account's services, with the URLs of the routes that its routing preference publishes.
func routed(c *behaviour.Call, suffix string) behaviour.Object {
	all := urls(c, suffix, endpoints[behaviour.Text(c.Doc, "kind")])
	for setting, route := range map[string]string{"publishMicrosoftEndpoints": "microsoft", "publishInternetEndpoints": "internet"} {
		if !behaviour.Bool(c.Doc, "properties.routingPreference."+setting) {
			continue
		}
		services := slices.Clone(endpoints[behaviour.Text(c.Doc, "kind")])
		if route == "internet" { // queues and tables have no URL for it
			services = slices.DeleteFunc(services, func(s string) bool { return s == "queue" || s == "table" })
		}
		all[route+"Endpoints"] = urls(c, suffix+"-"+route+"routing", services)
	}
	return all
}

// urls returns the URLs of services of an account. The names of secondary endpoints have no file service.
func urls(c *behaviour.Call, suffix string, services []string) behaviour.Object {
	cloud, zone := behaviour.CloudOf(c.Location()).Storage, ""
	if behaviour.Text(c.Doc, "properties.dnsEndpointType") == "AzureDnsZone" {
		cloud, zone = "storage.azure.net", webZone(c.Location())+"."
	}
	found := behaviour.Object{}
	for _, service := range services {
		host := zone + service
		if service == "web" {
			host = webZone(c.Location()) + ".web"
		}
		if service != "file" || !strings.HasPrefix(suffix, "-secondary") {
			found[service] = "https://" + strings.ToLower(c.ID.Name()) + suffix + "." + host + "." + cloud + "/"
		}
	}
	return found
}

// webZones are the parts of static web site hosts that name a region.
var webZones = map[string]string{
	"eastus": "z13", "eastus2": "z20", "westus": "z22", "westus2": "z5", "centralus": "z19",
	"westeurope": "z6", "northeurope": "z16", "southeastasia": "z23", "uksouth": "z33",
}

func webZone(location string) string {
	if zone, ok := webZones[location]; ok {
		return zone
	}
	return "z1"
}

// createServices stores the services of a new account. Clients can change them, but not create or delete them.
func createServices(c *behaviour.Call) error {
	for _, service := range []string{"blobServices", "fileServices", "queueServices", "tableServices"} {
		id := c.ID.Child(service, "default")
		if _, there := c.Get(id); !there {
			c.Put(id, behaviour.Object{"properties": behaviour.Object{}})
		}
	}
	return nil
}

func checkName(c *behaviour.Call) (behaviour.Reply, error) {
	name := behaviour.Text(c.Body, "name")
	no := func(reason, message string) (behaviour.Reply, error) {
		return behaviour.Reply{Status: 200, Body: behaviour.Object{"nameAvailable": false, "reason": reason, "message": message}}, nil
	}
	if !accountName.MatchString(name) {
		return no("AccountNameInvalid", name+invalidName)
	}
	if _, taken := c.Holder(AccountType, name); taken {
		return no("AlreadyExists", strings.ReplaceAll(nameTaken, "%s", name))
	}
	return behaviour.Reply{Status: 200, Body: behaviour.Object{"nameAvailable": true}}, nil
}

// deletedType is the type of the accounts that were deleted. Azure keeps them for some days. Here they are notes and nothing else.
const deletedType = "Microsoft.Storage/locations/deletedAccounts"

func deletedAccounts() behaviour.Type {
	return behaviour.Type{
		Name: deletedType, Style: child(behaviour.NoEtag), ReadOnly: true, NoState: true,
		Show: func(_ *behaviour.Call, view behaviour.Object) { view["type"] = "Microsoft.Storage/deletedAccounts" },
		Missing: func(c *behaviour.Call) error {
			return behaviour.Refusal(404, "DeletedAccountNotFound", "Deleted account %s not found in location %s.", c.ID.Name(),
				c.ID.Parent().Name())
		},
	}
}

func listDeletedAccounts(c *behaviour.Call) (behaviour.Reply, error) {
	items := []any{}
	for id := range c.List(azure.SubscriptionID(c.Param["subscription"]), deletedType) {
		if view, there := c.View(id); there {
			items = append(items, view)
		}
	}
	return behaviour.Reply{Status: 200, Body: behaviour.Object{"value": items}}, nil
}

// maxAccounts is the limit of accounts of a subscription in a region.
const maxAccounts = 250

func usages(c *behaviour.Call) (behaviour.Reply, error) {
	used := 0
	for _, doc := range c.List(azure.SubscriptionID(c.Param["subscription"]), AccountType) {
		if strings.EqualFold(behaviour.Text(doc, "location"), c.Param["location"]) {
			used++
		}
	}
	return behaviour.Reply{Status: 200, Body: behaviour.Object{"value": []any{behaviour.Object{
		"unit": "Count", "currentValue": used, "limit": maxAccounts,
		"name": behaviour.Object{"value": "StorageAccounts", "localizedValue": "Storage Accounts"},
	}}}}, nil
}
