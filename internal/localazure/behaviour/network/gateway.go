package network

import (
	"net/http"
	"net/netip"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
)

// fillGateway writes the generation and the SKU of a virtual network gateway. Only VPN gateways have a generation. The table has no
// default for the SKU: its capacity, which Azure writes, is there when the same body is sent again.
func fillGateway(c *behaviour.Call) error {
	if behaviour.Text(c.Doc, "properties.sku.name") == "" {
		behaviour.Set(c.Doc, "properties.sku.name", "Basic")
		behaviour.Set(c.Doc, "properties.sku.tier", "Basic")
	}
	generation := "None"
	if strings.EqualFold(behaviour.Text(c.Doc, "properties.gatewayType"), "Vpn") {
		generation = "Generation1"
	}
	behaviour.Default(c.Doc, "properties.vpnGatewayGeneration", generation)
	return nil
}

// peerGateway writes the addresses at which a VPN gateway speaks BGP: the last address of its subnet, or in the mode active-active
// the first addresses.
func peerGateway(c *behaviour.Call) error {
	const peerings = "properties.bgpSettings.bgpPeeringAddresses"
	if !strings.EqualFold(behaviour.Text(c.Doc, "properties.gatewayType"), "Vpn") {
		return nil
	}
	var all []string
	peers := []any{}
	for i, configuration := range behaviour.Objects(c.Doc, "properties.ipConfigurations") {
		own := subnetAddress(c, configuration, -2)
		if behaviour.Bool(c.Doc, "properties.activeActive") {
			own = subnetAddress(c, configuration, firstAddress+i)
		}
		if own == "" {
			continue
		}
		if behaviour.Bool(c.Doc, "properties.enablePrivateIpAddress") {
			behaviour.Set(configuration, "properties.privateIPAddress", subnetAddress(c, configuration, firstAddress+i))
		}
		all = append(all, own)
		id := c.ID.Child("ipConfigurations", behaviour.Text(configuration, "name"))
		tunnels := []any{}
		if public, there := c.Get(behaviour.RefID(configuration, "properties.publicIPAddress")); there {
			if address := behaviour.Text(public, "properties.ipAddress"); address != "" {
				tunnels = append(tunnels, address)
			}
		}
		custom := []any{}
		for _, was := range behaviour.Objects(c.Doc, peerings) {
			if strings.EqualFold(behaviour.Text(was, "ipconfigurationId"), string(id)) && was["customBgpIpAddresses"] != nil {
				custom = behaviour.Array(was, "customBgpIpAddresses")
			}
		}
		peers = append(peers, behaviour.Object{"ipconfigurationId": string(id), "defaultBgpIpAddresses": []any{own},
			"customBgpIpAddresses": custom, "tunnelIpAddresses": tunnels})
	}
	if len(peers) > 0 {
		behaviour.Set(c.Doc, "properties.bgpSettings.bgpPeeringAddress", strings.Join(all, ","))
		behaviour.Set(c.Doc, peerings, peers)
	}
	return nil
}

// firstAddress is the number of the first address of a subnet that Azure does not keep for itself.
const firstAddress = 4

// subnetAddress returns the nth address of the subnet of an IP configuration, from the end for a negative n, "" without a subnet.
func subnetAddress(c *behaviour.Call, configuration behaviour.Object, n int) string {
	subnet, _ := c.Get(behaviour.RefID(configuration, "properties.subnet"))
	for _, text := range ipam.SubnetPrefixes(subnet) {
		if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is4() {
			return ipam.Nth(p, n).String()
		}
	}
	return ""
}

// addressFirewall writes the private address of a firewall: the first of its subnet.
func addressFirewall(c *behaviour.Call) error {
	for _, configuration := range behaviour.Objects(c.Doc, "properties.ipConfigurations") {
		if address := subnetAddress(c, configuration, firstAddress); address != "" {
			behaviour.Default(configuration, "properties.privateIPAddress", address)
		}
	}
	addressHubFirewall(c)
	return nil
}

// ipsecField is the field of a gateway with the IPsec parameters of its clients.
const ipsecField = behaviour.Private + "vpnClientIPsec"

// ipsecParameters returns the action that writes, or reads, the IPsec parameters of the clients of a gateway. Before they are written they
// are chosen here.
func ipsecParameters(write bool) behaviour.Action {
	status := http.StatusOK
	if write {
		status = http.StatusAccepted
	}
	return behaviour.Action{
		Status: status, Long: true, Busy: "-", Headers: behaviour.AsyncOperation | behaviour.Location,
		Settle: func(c *behaviour.Call) (any, error) {
			if write {
				c.Doc[ipsecField] = behaviour.Clone(c.Body)
			}
			if set := behaviour.Sub(c.Doc, ipsecField); set != nil {
				return behaviour.Clone(set), nil
			}
			return behaviour.Object{"saLifeTimeSeconds": 28800, "saDataSizeKilobytes": 102400000, "ipsecEncryption": "AES256",
				"ipsecIntegrity": "SHA256", "ikeEncryption": "AES256", "ikeIntegrity": "SHA384", "dhGroup": "DHGroup24",
				"pfsGroup": "PFS24"}, nil
		},
	}
}

// listRadiusSecrets returns the action that shows the servers at a path with their secrets.
func listRadiusSecrets(path string) behaviour.Action {
	return behaviour.Action{Do: func(c *behaviour.Call) (any, error) {
		servers := []any{}
		for _, server := range behaviour.Objects(c.Doc, path) {
			servers = append(servers, behaviour.Object{"radiusServerAddress": behaviour.Text(server, "radiusServerAddress"),
				"radiusServerSecret": behaviour.Text(server, "radiusServerSecret")})
		}
		return behaviour.Object{"value": servers}, nil
	}}
}
