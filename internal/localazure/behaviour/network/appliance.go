package network

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
)

// leasesField has the leases of the public addresses that a resource has without resources for them.
const leasesField = behaviour.Private + "publicAddresses"

// leasePublic returns a public IPv4 address that the document of the call leases, "" if all are taken.
func leasePublic(c *behaviour.Call) string {
	address, err := ipam.AllocatePublic(c.World, ipam.IPv4)
	if err != nil {
		return ""
	}
	leases := behaviour.Array(c.Doc, leasesField)
	c.Doc[leasesField] = append(leases, behaviour.Ref(ipam.Lease(c.Subscription(), address)))
	return address
}

// hubAddress returns the nth address of the hub that the document is in, "" without one.
func hubAddress(c *behaviour.Call, n int) string {
	hub, _ := c.Get(behaviour.RefID(c.Doc, "properties.virtualHub"))
	p, err := netip.ParsePrefix(behaviour.Text(hub, "properties.addressPrefix"))
	if err != nil {
		return ""
	}
	return ipam.Nth(p, n).String()
}

// Virtual hubs have two of each machine.
const instances = 2

// routeHub writes the addresses of the routers of a virtual hub.
func routeHub(c *behaviour.Call) error {
	const firstRouter = 68
	const path = "properties.virtualRouterIps"
	p, err := netip.ParsePrefix(behaviour.Text(c.Doc, "properties.addressPrefix"))
	if err == nil && len(behaviour.Array(c.Doc, path)) == 0 {
		routers := []any{}
		for i := range instances {
			routers = append(routers, ipam.Nth(p, firstRouter+i).String())
		}
		behaviour.Set(c.Doc, path, routers)
	}
	return nil
}

// peerHubGateway writes the addresses at which the instances of a VPN gateway in a hub speak BGP and end tunnels.
func peerHubGateway(c *behaviour.Call) error {
	const path = "properties.bgpSettings.bgpPeeringAddresses"
	peers := []any{}
	for i := range instances {
		name := fmt.Sprintf("Instance%d", i)
		peer := behaviour.Object{"ipconfigurationId": name}
		for _, doc := range []behaviour.Object{c.Doc, c.Old} {
			for _, one := range behaviour.Objects(doc, path) {
				for key, value := range one {
					if strings.EqualFold(behaviour.Text(one, "ipconfigurationId"), name) && peer[key] == nil {
						peer[key] = behaviour.Clone(value)
					}
				}
			}
		}
		behaviour.Default(peer, "customBgpIpAddresses", []any{})
		if own := hubAddress(c, firstAddress+i); own != "" {
			behaviour.Default(peer, "defaultBgpIpAddresses", []any{own})
		}
		if address := leasedOnce(c, peer, "tunnelIpAddresses"); address != "" {
			behaviour.Default(peer, "tunnelIpAddresses", []any{address})
		}
		peers = append(peers, peer)
	}
	behaviour.Set(c.Doc, path, peers)
	return nil
}

// leasedOnce leases an address for an object that has none at a path.
func leasedOnce(c *behaviour.Call, object behaviour.Object, path string) string {
	if behaviour.At(object, path) != nil {
		return ""
	}
	return leasePublic(c)
}

// applianceInterface is an IP configuration that each instance of a virtual appliance has.
type applianceInterface struct {
	name, kind string
	public     bool
	within     netip.Prefix // invalid for that of the hub
}

// interfacesOf returns the IP configurations of a virtual appliance: those of its network profile, or one for each of its interfaces in a
// virtual network, and those of the additional interfaces.
func interfacesOf(c *behaviour.Call) (all []applianceInterface) {
	within := map[string]netip.Prefix{}
	for _, configuration := range behaviour.Objects(c.Doc, "properties.nvaInterfaceConfigurations") {
		subnet, _ := c.Get(azure.ID(behaviour.Text(configuration, "subnet.id")))
		one := applianceInterface{name: behaviour.Text(configuration, "name") + "-ipconfig"}
		for _, text := range ipam.SubnetPrefixes(subnet) {
			if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is4() {
				one.within = p
			}
		}
		for _, kind := range behaviour.Texts(configuration, "type") {
			one.kind, one.public = kind, strings.HasSuffix(kind, "PublicNic")
			within[kind] = one.within
		}
		all = append(all, one)
	}
	if profile := behaviour.Objects(c.Doc, "properties.networkProfile.networkInterfaceConfigurations"); len(profile) > 0 {
		all = nil
		for _, configuration := range profile {
			kind := behaviour.Text(configuration, "type")
			for _, ip := range behaviour.Objects(configuration, "properties.ipConfigurations") {
				all = append(all, applianceInterface{behaviour.Text(ip, "name"), kind, kind == "PublicNic", within[kind]})
			}
		}
	}
	for _, more := range behaviour.Objects(c.Doc, "properties.additionalNics") {
		all = append(all, applianceInterface{name: behaviour.Text(more, "name"), kind: "AdditionalNic",
			public: behaviour.Bool(more, "hasPublicIp")})
	}
	return all
}

// interfaceAppliance writes the addresses of the instances of a virtual appliance: the last ones of the subnet or the hub that it is in.
func interfaceAppliance(c *behaviour.Call) error {
	const nicsPath, beforeBroadcast = "properties.virtualApplianceNics", -2
	hub, _ := c.Get(behaviour.RefID(c.Doc, "properties.virtualHub"))
	inHub, _ := netip.ParsePrefix(behaviour.Text(hub, "properties.addressPrefix")) // invalid without a hub
	nics, used := []any{}, map[netip.Prefix]int{}
	for _, one := range interfacesOf(c) {
		if !one.within.IsValid() {
			one.within = inHub
		}
		if !one.within.IsValid() {
			continue
		}
		behaviour.Default(c.Doc, "properties.addressPrefix", one.within.String())
		for i := range instances {
			nic := behaviour.Object{"name": one.name, "nicType": one.kind, "instanceName": fmt.Sprintf("%s_%d", c.ID.Name(), i),
				"privateIpAddress": ipam.Nth(one.within, beforeBroadcast-used[one.within]).String(), "publicIpAddress": ""}
			if one.public {
				nic["publicIpAddress"] = leasePublic(c)
			}
			used[one.within]++
			nics = append(nics, nic)
		}
	}
	if len(behaviour.Array(c.Doc, nicsPath)) == 0 {
		behaviour.Set(c.Doc, nicsPath, nics)
	}
	if all := behaviour.Objects(c.Doc, nicsPath); len(all) > 0 && hub == nil {
		behaviour.Default(c.Doc, "properties.privateIpAddress", behaviour.Text(all[0], "privateIpAddress"))
	}
	return nil
}

// addressHubFirewall writes the addresses of a firewall in a virtual hub.
func addressHubFirewall(c *behaviour.Call) {
	const path, firstOfFirewall = "properties.hubIPAddresses", 132
	if address := hubAddress(c, firstOfFirewall); address != "" {
		behaviour.Default(c.Doc, path+".privateIPAddress", address)
	}
	wanted, _ := behaviour.Int(c.Doc, path+".publicIPs.count")
	addresses := behaviour.Array(c.Doc, path+".publicIPs.addresses")
	if len(addresses) == 0 {
		addresses = behaviour.Array(c.Old, path+".publicIPs.addresses")
	}
	for len(addresses) < wanted {
		address := leasePublic(c)
		if address == "" {
			break
		}
		addresses = append(addresses, behaviour.Object{"address": address})
	}
	if wanted > 0 {
		behaviour.Set(c.Doc, path+".publicIPs.addresses", addresses)
	}
}

// showSize shows how large the rules of a firewall policy, or of a group in it, are.
func showSize(_ *behaviour.Call, view behaviour.Object) {
	const megabyte = 1 << 20
	text, err := json.Marshal(behaviour.Sub(view, "properties"))
	if err != nil {
		return
	}
	behaviour.Set(view, "properties.size", fmt.Sprintf("%.3fMB", float64(len(text))/megabyte))
}

func hide(_ *behaviour.Call, view behaviour.Object) { behaviour.Hide(view) }
