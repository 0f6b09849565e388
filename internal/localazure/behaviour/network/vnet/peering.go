package vnet

import (
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/schema"
)

// The states of a peering.
const (
	initiated    = "Initiated"
	connected    = "Connected"
	disconnected = "Disconnected"
)

const peeringsPath = "properties.virtualNetworkPeerings"

func peerings() behaviour.Type {
	return schema.Inside("virtualNetworks/virtualNetworkPeerings", peeringsPath, behaviour.Type{
		Style: schema.RetryAfter(10, 10),
		Own: []string{"properties.resourceGuid", "properties.peeringState", "properties.peeringSyncLevel",
			"properties.remoteAddressSpace", "properties.remoteVirtualNetworkAddressSpace", "properties.remoteBgpCommunities",
			"properties.remoteVirtualNetworkEncryption"},
		Fill: func(c *behaviour.Call) error {
			if _, err := schema.Reference(c, "properties.remoteVirtualNetwork", schema.Namespace+"virtualNetworks"); err != nil {
				return err
			}
			if behaviour.At(c.Doc, "properties.resourceGuid") == nil {
				behaviour.Set(c.Doc, "properties.resourceGuid", c.GUID())
			}
			behaviour.Default(c.Doc, "properties.peeringState", initiated)
			if _, back := counterpart(c.World, c.ID.Parent(), behaviour.RefID(c.Doc, "properties.remoteVirtualNetwork")); back {
				behaviour.Set(c.Doc, "properties.peeringState", connected)
			}
			return schema.FirstError(
				func() error { return schema.Flag(c, "properties.allowVirtualNetworkAccess", true) },
				func() error { return schema.Flag(c, "properties.peerCompleteVnets", true) },
				func() error {
					return schema.Flags(c, "properties.allowForwardedTraffic", "properties.allowGatewayTransit",
						"properties.useRemoteGateways",
						"properties.doNotVerifyRemoteGateways")
				},
			)
		},
		Settle: connectPeering,
		Show:   showPeering,
	})
}

// checkPeerings refuses peerings of a network with itself, twice with one network, and between overlapping address
// spaces.
func checkPeerings(c *behaviour.Call, space []netip.Prefix) error {
	seen := map[string]string{}
	for _, peering := range behaviour.Objects(c.Doc, peeringsPath) {
		name := behaviour.Text(peering, "name")
		id, remote := c.ID.Child("virtualNetworkPeerings", name), behaviour.RefID(peering, "properties.remoteVirtualNetwork")
		if remote.Equal(c.ID) {
			return behaviour.Invalid("VnetCannotPeerWithItself", "Virtual network %s cannot be peered with itself by %s.", c.ID, id)
		}
		if other := seen[remote.Key()]; other != "" {
			return behaviour.Invalid("RemoteVnetAlreadyPeered",
				"Peering %s of virtual network %s already references remote virtual network %s. Cannot add peering %s to it.", other,
				c.ID, remote, name)
		}
		seen[remote.Key()] = name
		doc, ok := c.Get(remote)
		if !ok {
			return behaviour.InvalidReference(id, remote)
		}
		theirs, err := ipam.ParsePrefixes(remote, ipam.AddressSpace(doc))
		if err != nil {
			return err
		}
		if p, clash := ipam.Overlapping(space, theirs); clash {
			return behaviour.Invalid("VnetAddressSpacesOverlap",
				"Cannot create or update peering %s. Virtual networks %s and %s cannot be peered because their address spaces "+
					"overlap. Overlapping address prefixes: %s.", id, c.ID, remote, p)
		}
	}
	return nil
}

// counterpart returns the peering in the opposite direction, and whether there is one.
func counterpart(w behaviour.World, local, remote azure.ID) (azure.ID, bool) {
	doc, _ := w.Get(remote)
	for _, peering := range behaviour.Objects(doc, peeringsPath) {
		if behaviour.RefID(peering, "properties.remoteVirtualNetwork").Equal(local) {
			return remote.Child("virtualNetworkPeerings", behaviour.Text(peering, "name")), true
		}
	}
	return "", false
}

// connectPeering connects both directions once the second peering exists.
func connectPeering(c *behaviour.Call) error {
	other, ok := counterpart(c.World, c.ID.Parent(), behaviour.RefID(c.Doc, "properties.remoteVirtualNetwork"))
	if !ok {
		return nil
	}
	behaviour.Set(c.Doc, "properties.peeringState", connected)
	if doc, _ := c.Get(other); behaviour.Text(doc, "properties.peeringState") != connected {
		c.Edit(other, func(doc behaviour.Object) { behaviour.Set(doc, "properties.peeringState", connected) })
	}
	return nil
}

func showPeering(c *behaviour.Call, view behaviour.Object) {
	remote := behaviour.RefID(view, "properties.remoteVirtualNetwork")
	doc, there := c.Get(remote)
	_, back := counterpart(c.World, c.ID.Parent(), remote)
	if behaviour.Text(view, "properties.peeringState") == connected && !back {
		behaviour.Set(view, "properties.peeringState", disconnected)
	}
	level := "FullyInSync"
	if !back {
		level = "RemoteNotInSync"
	}
	behaviour.Set(view, "properties.peeringSyncLevel", level)
	if local, _ := c.Get(c.ID.Parent()); len(behaviour.Texts(view, localSubnets)) > 0 {
		space := behaviour.Object{"addressPrefixes": schema.Array(peeredPrefixes(view, local, localSubnets))}
		behaviour.Set(view, "properties.localAddressSpace", space)
		behaviour.Set(view, "properties.localVirtualNetworkAddressSpace", behaviour.Clone(space))
	}
	if there {
		space := behaviour.Object{"addressPrefixes": schema.Array(peeredPrefixes(view, doc, "properties.remoteSubnetNames"))}
		behaviour.Set(view, "properties.remoteAddressSpace", space)
		behaviour.Set(view, "properties.remoteVirtualNetworkAddressSpace", behaviour.Clone(space))
		if theirs := communitiesOf(doc); theirs != nil {
			behaviour.Set(view, "properties.remoteBgpCommunities", theirs)
		}
		if encryption := behaviour.Sub(doc, "properties.encryption"); behaviour.Bool(encryption, "enabled") {
			behaviour.Set(view, "properties.remoteVirtualNetworkEncryption", behaviour.Clone(encryption))
		}
	}
}

const localSubnets = "properties.localSubnetNames"

// peeredPrefixes returns the prefixes of a network that a peering leads to: those of the subnets that it names at a path, or all.
func peeredPrefixes(peering, network behaviour.Object, path string) []string {
	prefixes := ipam.AddressSpace(network)
	if names := behaviour.Texts(peering, path); len(names) > 0 {
		prefixes = nil
		for _, name := range names {
			prefixes = append(prefixes, ipam.SubnetPrefixes(behaviour.Named(network, subnetsPath, name))...)
		}
	}
	if behaviour.Bool(peering, "properties.enableOnlyIPv6Peering") {
		prefixes = slices.DeleteFunc(prefixes, func(p string) bool { return !strings.Contains(p, ":") })
	}
	return prefixes
}
