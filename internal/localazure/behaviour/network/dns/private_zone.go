package dns

import (
	"encoding/base64"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

const (
	zoneLinks        = schema.Namespace + "privateDnsZones/virtualNetworkLinks"
	registrationFlag = "properties.registrationEnabled"
)

func privateZones() behaviour.Type {
	style := behaviour.PrivateDNS()
	style.Etag = behaviour.BareGUID
	return behaviour.Type{
		Name: privateZone.fullType, Style: style, Where: behaviour.Global,
		Own: []string{"properties.internalId", "properties.maxNumberOfRecordSets", "properties.maxNumberOfVirtualNetworkLinks",
			"properties.maxNumberOfVirtualNetworkLinksWithRegistration", "properties.numberOfRecordSets",
			"properties.numberOfVirtualNetworkLinks", "properties.numberOfVirtualNetworkLinksWithRegistration"},
		Fill: func(c *behaviour.Call) error {
			if err := checkZone(c); err != nil {
				return err
			}
			if behaviour.At(c.Doc, "properties.internalId") == nil {
				id := base64.StdEncoding.EncodeToString([]byte("ImmutableZoneIdentity;" + c.GUID() + ";0"))
				behaviour.Set(c.Doc, "properties.internalId", id)
			}
			behaviour.Set(c.Doc, "properties.maxNumberOfRecordSets", privateZone.most)
			behaviour.Set(c.Doc, "properties.maxNumberOfVirtualNetworkLinks", 1000)
			behaviour.Set(c.Doc, "properties.maxNumberOfVirtualNetworkLinksWithRegistration", 100)
			return nil
		},
		Settle: func(c *behaviour.Call) error {
			if _, ok := c.Get(c.ID.Child("SOA", "@")); !ok {
				privateZone.putApex(c, "SOA", 3600, privateZone.soa("azureprivatedns.net", "azureprivatedns-host.microsoft.com"))
			}
			return nil
		},
		Refuse: func(c *behaviour.Call) error {
			for id := range c.List(c.ID, zoneLinks) {
				return behaviour.Conflict("CannotDeleteResource", "Can not delete resource before nested resources are deleted: %s.", id)
			}
			return nil
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			lowerName(view)
			behaviour.Set(view, "properties.numberOfRecordSets", privateZone.count(c, c.ID))
			behaviour.Set(view, "properties.numberOfVirtualNetworkLinks", c.Count(c.ID, zoneLinks))
			registering := 0
			for _, link := range c.List(c.ID, zoneLinks) {
				if behaviour.Bool(link, registrationFlag) {
					registering++
				}
			}
			behaviour.Set(view, "properties.numberOfVirtualNetworkLinksWithRegistration", registering)
		},
	}
}

// lowerName shows a name in lower case, as private DNS does.
func lowerName(view behaviour.Object) {
	id, name := behaviour.Text(view, "id"), behaviour.Text(view, "name")
	view["id"] = strings.TrimSuffix(id, name) + strings.ToLower(name)
	view["name"] = strings.ToLower(name)
}

// networkLinks is the type of the links that make a zone's names known in a virtual network.
func networkLinks() behaviour.Type {
	return behaviour.Type{
		Name: zoneLinks, Style: behaviour.PrivateDNS(), Where: behaviour.Global,
		Own:     []string{"properties.virtualNetworkLinkState"},
		Fill:    fillLink,
		Settle:  settleLink,
		Missing: func(c *behaviour.Call) error { return behaviour.ChildNotFound(c.ID) },
		Show:    func(_ *behaviour.Call, view behaviour.Object) { lowerName(view) },
	}
}

func fillLink(c *behaviour.Call) error {
	if err := schema.CheckName(c.ID); err != nil {
		return err
	}
	network, err := schema.Reference(c, "properties.virtualNetwork", schema.Namespace+"virtualNetworks")
	if err != nil {
		return err
	}
	if _, ok := c.Get(network); !ok {
		return behaviour.InvalidReference(c.ID, network)
	}
	if err := schema.Flag(c, registrationFlag, false); err != nil {
		return err
	}
	behaviour.Default(c.Doc, "properties.virtualNetworkLinkState", "InProgress")
	if strings.Contains("."+strings.ToLower(c.ID.Parent().Name())+".", ".privatelink.") {
		if err := schema.Choose(c, "properties.resolutionPolicy", "Default", "Default", "NxDomainRedirect"); err != nil {
			return err
		}
	}
	if c.Old != nil && !schema.SameReference(c, "properties.virtualNetwork") {
		return behaviour.Conflict("VirtualNetworkLinkCannotChangeVirtualNetwork", "The virtual network of link %s cannot be changed.", c.ID)
	}
	return checkOtherLinks(c, network)
}

// checkOtherLinks refuses a second zone of the same name for a network, and a second zone with registration.
func checkOtherLinks(c *behaviour.Call, network azure.ID) error {
	for _, r := range schema.ReferrersAt(c.World, network, "properties.virtualNetwork") {
		if r.Resource.Equal(c.ID) || !r.Resource.Is(zoneLinks) {
			continue
		}
		other, _ := c.Get(r.Resource)
		if strings.EqualFold(r.Resource.Parent().Name(), c.ID.Parent().Name()) {
			return behaviour.Conflict("Conflict",
				"A virtual network cannot be linked to multiple zones with overlapping namespaces. You tried to link virtual "+
					"network %s with '%s' and '%s' zones.", network, r.Resource.Parent().Name(), c.ID.Parent().Name())
		}
		if behaviour.Bool(c.Doc, registrationFlag) && behaviour.Bool(other, registrationFlag) {
			return behaviour.Conflict("Conflict",
				"A virtual network can only be linked to 1 Private DNS zone(s) with auto-registration enabled; virtual network %s "+
					"is linked to '%s'.", network, r.Resource.Parent().Name())
		}
	}
	return nil
}

func settleLink(c *behaviour.Call) error {
	behaviour.Set(c.Doc, "properties.virtualNetworkLinkState", "Completed")
	return nil
}
