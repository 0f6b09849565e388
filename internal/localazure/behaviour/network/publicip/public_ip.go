package publicip

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/schema"
)

// The paths at which resources refer to a public IP address.
const (
	nicPublicIP         = "properties.ipConfigurations.properties.publicIPAddress"
	frontendPublicIP    = "properties.frontendIPConfigurations.properties.publicIPAddress"
	NATGatewayAddresses = "properties.publicIpAddresses"
)

func publicIPAddresses() behaviour.Type {
	return schema.Tracked("publicIPAddresses", behaviour.Type{
		Style: schema.RetryAfter(1, 2),
		Own:   []string{"properties.ipAddress", "properties.ipConfiguration", "properties.natGateway", "properties.leases"},
		Fill:  fillPublicIP,
		Settle: func(c *behaviour.Call) error {
			if behaviour.Text(c.Doc, "properties.publicIPAllocationMethod") == "Static" {
				return allocateAddress(c.World, c.Doc)
			}
			return nil
		},
		InUse: func(c *behaviour.Call, by []behaviour.Referrer) error {
			if by = slices.DeleteFunc(slices.Clone(by), isName); len(by) == 0 {
				return nil
			}
			return behaviour.Invalid("PublicIPAddressCannotBeDeleted",
				"Public IP address %s can not be deleted since it is still allocated to resource %s. In order to delete the public "+
					"IP, disassociate/detach the Public IP address from the resource.  To learn how to do this, see "+
					"aka.ms/deletepublicip.", c.ID, by[0].Object)
		},
		Show: showPublicIP,
	})
}

// isName reports whether a resource refers to an address by DNS alone: an alias or an endpoint of Traffic Manager. It does not use it.
func isName(by behaviour.Referrer) bool {
	of := strings.ToLower(by.Resource.Type())
	return strings.HasPrefix(of, "microsoft.network/dnszones") || strings.HasPrefix(of, "microsoft.network/trafficmanagerprofiles")
}

func fillPublicIP(c *behaviour.Call) error {
	err := schema.FirstError(
		func() error { return schema.Choose(c, "sku.name", "Basic", "Basic", "Standard", "StandardV2") },
		func() error { return schema.Choose(c, "sku.tier", "Regional", "Regional", "Global") },
		func() error {
			return schema.Choose(c, "properties.publicIPAddressVersion", ipam.IPv4, ipam.IPv4, ipam.IPv6)
		},
		func() error {
			return schema.Choose(c, "properties.publicIPAllocationMethod", "Dynamic", "Dynamic", "Static")
		},
		func() error { return schema.Number(c, "properties.idleTimeoutInMinutes", 4, 4, 30) },
		func() error { return schema.List(c, "properties.ipTags") },
		func() error { return schema.CheckZones(c) },
		func() error { return checkPublicSKU(c) },
		func() error { return unchangedPublicIP(c) },
		func() error { return fillDomainName(c) },
	)
	if err != nil {
		return err
	}
	setLeases(c, c.Doc)
	return nil
}

// checkPublicSKU checks a public IP address against the limits of its SKU.
func checkPublicSKU(c *behaviour.Call) error {
	static := behaviour.Text(c.Doc, "properties.publicIPAllocationMethod") == "Static"
	switch {
	case !schema.IsStandard(c.Doc):
		if len(behaviour.Texts(c.Doc, "zones")) > 1 {
			return behaviour.Invalid("BasicSkuPublicIPAddressCannotHaveMultipleZones",
				"Basic sku publicIp %s must not have more than one zone.", c.ID)
		}
		if behaviour.RefID(c.Doc, "properties.publicIPPrefix") != "" {
			return behaviour.Invalid("PublicIPAddressSkuMustMatchPublicIPPrefixSku",
				"Public IP address %s has sku Basic. The sku of public IP prefix %s is Standard.", c.ID,
				behaviour.RefID(c.Doc, "properties.publicIPPrefix"))
		}
		if behaviour.Text(c.Doc, "sku.tier") == "Global" {
			return behaviour.Invalid("GlobalPublicIPAddressNotSupportedForBasicPublicIpAddress",
				"Public IP address %s has sku Basic and tier Global. The tier Global needs sku Standard.", c.ID)
		}
		return nil
	case !static:
		return behaviour.Invalid("StandardSkuPublicIPAddressesMustBeStatic",
			"Standard sku publicIp %s must have AllocationMethod set to Static.", c.ID)
	}
	return checkAgainstPrefix(c)
}

func checkAgainstPrefix(c *behaviour.Call) error {
	if behaviour.At(c.Doc, "properties.publicIPPrefix") == nil {
		return nil
	}
	id, err := schema.Reference(c, "properties.publicIPPrefix", schema.Namespace+"publicIPPrefixes")
	if err != nil {
		return err
	}
	prefix, ok := c.Get(id)
	if !ok {
		return behaviour.InvalidReference(c.ID, id)
	}
	if v := behaviour.Text(prefix, "properties.publicIPAddressVersion"); v != behaviour.Text(c.Doc, "properties.publicIPAddressVersion") {
		return behaviour.Invalid("PublicIPAddressVersionMustMatchPublicIPPrefixVersion",
			"Public IP address %s and public IP prefix %s must have the same version; the prefix is %s.", c.ID, id, v)
	}
	return nil
}

// unchangedPublicIP refuses changes of fields that a public IP address keeps.
func unchangedPublicIP(c *behaviour.Call) error {
	if c.Old == nil {
		return nil
	}
	by := schema.ReferrersAt(c.World, c.ID, nicPublicIP, frontendPublicIP, NATGatewayAddresses)
	if len(by) > 0 && c.Changed("properties.publicIPAllocationMethod") &&
		behaviour.Text(c.Doc, "properties.publicIPAllocationMethod") == "Dynamic" {
		return behaviour.Invalid("PublicIPAddressInUseCannotUpdateToDynamic",
			"Public IP address %s is in use by ipconfig %s and cannot be updated to dynamic.", c.ID, by[0].Object)
	}
	for _, path := range []string{"properties.publicIPAddressVersion", "sku.tier"} {
		if c.Changed(path) {
			return behaviour.Invalid("PropertyChangeNotAllowed", "Changing property '%s' of public IP address %s is not allowed.",
				path, c.ID)
		}
	}
	if len(by) > 0 && c.Changed("sku.name") {
		return behaviour.Invalid("PublicIPAddressInUseCannotUpdate",
			"Public IP address %s is in use by ipconfig %s: its sku cannot be changed.", c.ID, by[0].Object)
	}
	if c.Changed("zones") && schema.IsStandard(c.Old) {
		return behaviour.Invalid("ResourceAvailabilityZonesCannotBeModified",
			"Resource %s has an existing availability zone constraint and the request has availability zone constraint that do not "+
				"match. Zones cannot be added/updated/removed once the resource is created.", c.ID)
	}
	if !slices.Equal(lastingIPTags(c.Old), lastingIPTags(c.Doc)) {
		return behaviour.Invalid("PropertyChangeNotAllowed",
			"Changing property 'ipTags' of public IP address %s is not allowed, but for tags of the type FirstPartyUsage.", c.ID)
	}
	if !schema.SameReference(c, "properties.publicIPPrefix") {
		return behaviour.Invalid("PropertyChangeNotAllowed",
			"Changing property 'publicIPPrefix' of public IP address %s is not allowed.", c.ID)
	}
	return nil
}

// lastingIPTags returns the IP tags that cannot change. They are for routing; tags for usage can change.
func lastingIPTags(doc behaviour.Object) []string {
	var all []string
	for _, tag := range behaviour.Objects(doc, "properties.ipTags") {
		if kind := behaviour.Text(tag, "ipTagType"); !strings.EqualFold(kind, "FirstPartyUsage") {
			all = append(all, kind+"="+behaviour.Text(tag, "tag"))
		}
	}
	slices.Sort(all)
	return all
}

var labelForm = regexp.MustCompile(`^[a-z][a-z0-9-]{1,61}[a-z0-9]$`)

func fillDomainName(c *behaviour.Call) error {
	label := behaviour.Text(c.Doc, "properties.dnsSettings.domainNameLabel")
	if label == "" {
		behaviour.Remove(c.Doc, "properties.dnsSettings.fqdn")
		if len(behaviour.Sub(c.Doc, "properties.dnsSettings")) == 0 {
			behaviour.Remove(c.Doc, "properties.dnsSettings")
		}
		return nil
	}
	if !labelForm.MatchString(label) {
		return behaviour.Invalid("InvalidDomainNameLabel",
			"The domain name label %s is invalid. It must conform to the following regular expression: %s.", label, labelForm)
	}
	if scope := behaviour.Text(c.Doc, "properties.dnsSettings.domainNameLabelScope"); scope != "" {
		label += "." + scopeHash(c, scope)
	}
	fqdn := DomainName(label, c.Location())
	for _, r := range c.Referrers(ipam.DomainLease(c.Subscription(), fqdn, versionOf(c.Doc))) {
		if !r.Resource.Equal(c.ID) {
			return behaviour.Invalid("DnsRecordInUse", "DNS record %s is already used by another public IP.", fqdn)
		}
	}
	behaviour.Set(c.Doc, "properties.dnsSettings.fqdn", fqdn)
	return nil
}

// scopeHash is the part of a name that makes the label unique in its scope: the same for resources of the scope, and another for others.
func scopeHash(c *behaviour.Call, scope string) string {
	const digits = 16
	owner := c.GUID() // no other resource has the name
	switch strings.ToLower(scope) {
	case "tenantreuse":
		owner = c.Tenant()
	case "subscriptionreuse":
		owner = c.ID.Subscription()
	case "resourcegroupreuse":
		owner = string(azure.GroupID(c.ID.Subscription(), c.ID.Group()))
	}
	if fqdn := behaviour.Text(c.Old, "properties.dnsSettings.fqdn"); strings.EqualFold(scope, "NoReuse") && strings.Count(fqdn, ".") > 0 {
		return strings.Split(fqdn, ".")[1]
	}
	sum := sha256.Sum256([]byte(strings.ToLower(owner)))
	return hex.EncodeToString(sum[:])[:digits]
}

// versionOf returns the family of a public IP address.
func versionOf(doc behaviour.Object) string {
	return behaviour.Text(doc, "properties.publicIPAddressVersion")
}

// DomainName returns the name of an address with a label in a region.
func DomainName(label, location string) string { return label + "." + location + ".cloudapp.azure.com" }

// setLeases writes the leases of the address and the domain name into the document.
func setLeases(w behaviour.World, doc behaviour.Object) {
	leases := []any{}
	if address := behaviour.Text(doc, "properties.ipAddress"); address != "" {
		leases = append(leases, string(ipam.Lease(w.Subscription(), address)))
	}
	if fqdn := behaviour.Text(doc, "properties.dnsSettings.fqdn"); fqdn != "" {
		leases = append(leases, string(ipam.DomainLease(w.Subscription(), fqdn, versionOf(doc))))
	}
	behaviour.Set(doc, "properties.leases", leases)
}

// allocateAddress allocates an address for a public IP address without one.
func allocateAddress(w behaviour.World, doc behaviour.Object) error {
	if behaviour.Text(doc, "properties.ipAddress") != "" {
		return nil
	}
	var address string
	var err error
	if prefix := behaviour.RefID(doc, "properties.publicIPPrefix"); prefix != "" {
		address, err = ipam.AllocateFromPrefix(w, prefix)
	} else {
		address, err = ipam.AllocatePublic(w, behaviour.Text(doc, "properties.publicIPAddressVersion"))
	}
	if err != nil {
		return err
	}
	behaviour.Set(doc, "properties.ipAddress", address)
	setLeases(w, doc)
	return nil
}

func showPublicIP(c *behaviour.Call, view behaviour.Object) {
	behaviour.Remove(view, "properties.leases")
	by := schema.ReferrersAt(c.World, c.ID, nicPublicIP, frontendPublicIP)
	if len(by) > 0 {
		behaviour.Set(view, "properties.ipConfiguration", behaviour.Ref(by[0].Object))
	} else if behaviour.Text(view, "properties.publicIPAllocationMethod") == "Dynamic" {
		behaviour.Remove(view, "properties.ipAddress")
	}
	if gateway := schema.ReferrersAt(c.World, c.ID, NATGatewayAddresses); len(gateway) > 0 {
		behaviour.Set(view, "properties.natGateway", behaviour.Ref(gateway[0].Resource))
	}
}

// Attach checks the public addresses that a resource refers to. Each exists in the same region and is not used
// elsewhere. It allocates dynamic ones.
func Attach(c *behaviour.Call, by []Attachment) error {
	seen := map[string]bool{}
	for _, a := range by {
		key := a.Address.Key()
		if seen[key] {
			return behaviour.Invalid("PublicIPReferencedByMultipleIPConfigs",
				"Public Ip Address %s is referenced by multiple Ip Configurations in resource %s.", a.Address, c.ID)
		}
		seen[key] = true
		if err := attachPublicIP(c, a); err != nil {
			return err
		}
	}
	return nil
}

// Attachment is a reference from an object to a public address.
type Attachment struct{ Object, Address azure.ID }

func attachPublicIP(c *behaviour.Call, a Attachment) error {
	doc, ok := c.Get(a.Address)
	if !ok {
		return behaviour.InvalidReference(a.Object, a.Address)
	}
	for _, other := range schema.ReferrersAt(c.World, a.Address, nicPublicIP, frontendPublicIP, NATGatewayAddresses) {
		if !other.Resource.Equal(c.ID) {
			return behaviour.Invalid("PublicIPAddressInUse",
				"Resource %s is referencing public IP address %s that is already allocated to resource %s.", a.Object, a.Address,
				other.Object)
		}
	}
	if l := behaviour.Text(doc, "location"); l != c.Location() {
		return behaviour.InvalidReference(a.Object, a.Address)
	}
	if behaviour.Text(doc, "properties.ipAddress") != "" || schema.IsStandard(doc) ||
		behaviour.Text(doc, "properties.publicIPAllocationMethod") != "Dynamic" {
		return nil
	}
	var err error
	c.Edit(a.Address, func(doc behaviour.Object) { err = allocateAddress(c.World, doc) })
	return err
}

// domainNameAvailability is the request whether a label is free in a region.
func domainNameAvailability() behaviour.Route {
	return behaviour.Route{
		Method:     "GET",
		Pattern:    "/subscriptions/{subscription}/providers/Microsoft.Network/locations/{location}/CheckDnsNameAvailability",
		Permission: schema.Namespace + "locations/CheckDnsNameAvailability/read",
		Do: func(c *behaviour.Call) (behaviour.Reply, error) {
			label := strings.ToLower(c.Query.Get("domainnamelabel"))
			fqdn := DomainName(label, strings.ToLower(c.Param["location"]))
			free := labelForm.MatchString(label)
			for _, version := range []string{ipam.IPv4, ipam.IPv6} {
				free = free && len(c.Referrers(ipam.DomainLease(c.Subscription(), fqdn, version))) == 0
			}
			return behaviour.Reply{Status: 200, Body: behaviour.Object{"available": free}}, nil
		},
	}
}
