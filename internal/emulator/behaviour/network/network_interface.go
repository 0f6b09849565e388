package network

import (
	"fmt"
	"hash/fnv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// The places where a network interface and what belongs to it are in use.
const (
	machineInterfaces = "properties.networkProfile.networkInterfaces"
	nicPools          = "properties.ipConfigurations.properties.loadBalancerBackendAddressPools"
	nicInboundRules   = "properties.ipConfigurations.properties.loadBalancerInboundNatRules"
)

func networkInterfaceTypes() []behaviour.Type {
	return []behaviour.Type{networkInterfaces(), ipConfigurations()}
}

func networkInterfaces() behaviour.Type {
	style := waiting(0, 0)
	// Its writes have ended when they are answered, and say so.
	delete(style.Long, behaviour.Create)
	delete(style.Long, behaviour.Update)
	style.Wait = map[behaviour.Verb]behaviour.Wait{behaviour.Delete: {First: 5, Later: 5}}
	return tracked("networkInterfaces", behaviour.Type{
		Style: style,
		Own: []string{"kind", "properties.macAddress", "properties.primary", "properties.virtualMachine", "properties.privateEndpoint",
			"properties.privateLinkService", "properties.hostedWorkloads", "properties.tapConfigurations",
			"properties.dnsSettings.appliedDnsServers", "properties.dnsSettings.internalDomainNameSuffix",
			"properties.dnsSettings.internalFqdn"},
		Fill:   fillNetworkInterface,
		Check:  checkNetworkInterface,
		InUse:  interfaceInUse,
		Refuse: refuseManagedInterface,
		Show:   showNetworkInterface,
	})
}

func fillNetworkInterface(c *behaviour.Call) error {
	c.Doc["kind"] = "Regular"
	if behaviour.Text(c.Doc, "properties.macAddress") == "" {
		behaviour.Set(c.Doc, "properties.macAddress", MACAddress(c.World))
	}
	return first(
		func() error {
			return list(c, "properties.ipConfigurations", "properties.dnsSettings.dnsServers", "properties.dnsSettings.appliedDnsServers",
				"properties.hostedWorkloads", "properties.tapConfigurations")
		},
		func() error {
			return flags(c, "properties.enableAcceleratedNetworking", "properties.vnetEncryptionSupported", "properties.enableIPForwarding",
				"properties.disableTcpStateTracking", "properties.defaultOutboundConnectivityEnabled")
		},
		func() error { return flag(c, "properties.allowPort25Out", true) },
		func() error { return choose(c, "properties.nicType", "Standard", "Standard", "Elastic") },
		func() error {
			return choose(c, "properties.auxiliaryMode", "None", "None", "MaxConnections", "Floating", "AcceleratedConnections")
		},
		func() error { return choose(c, "properties.auxiliarySku", "None", "None", "A1", "A2", "A4", "A8") },
		func() error { return choosePrimary(c) },
	)
}

// MACAddress is a new hardware address of Azure's.
func MACAddress(w behaviour.World) string {
	return fmt.Sprintf("00-0D-3A-%02X-%02X-%02X", w.Intn(256), w.Intn(256), w.Intn(256))
}

// choosePrimary makes the first IP configuration the primary one when none is, and
// refuses two.
func choosePrimary(c *behaviour.Call) error {
	configurations := behaviour.Objects(c.Doc, "properties.ipConfigurations")
	if len(configurations) == 0 {
		return malformed("NetworkInterfaceMustHaveIpConfiguration", "Network interface %s must have at least one IP configuration.", c.ID)
	}
	chosen := ""
	for _, configuration := range configurations {
		if !behaviour.Bool(configuration, "properties.primary") {
			behaviour.Set(configuration, "properties.primary", false)
			continue
		}
		name := behaviour.Text(configuration, "name")
		if chosen != "" {
			return behaviour.Invalid("NetworkInterfaceHasMultiplePrimaryIpConfigurations", "Network interface %s has more than one primary IP configuration: %s and %s.", c.ID, chosen, name)
		}
		chosen = name
	}
	if chosen == "" {
		behaviour.Set(configurations[0], "properties.primary", true)
	}
	return nil
}

func ipConfigurations() behaviour.Type {
	return inside("networkInterfaces/ipConfigurations", "properties.ipConfigurations", behaviour.Type{
		ReadOnly: true,
		Fill: func(c *behaviour.Call) error {
			if _, err := reference(c, "properties.subnet", namespace+"virtualNetworks/subnets"); err != nil {
				return err
			}
			return first(
				func() error { return choose(c, "properties.privateIPAddressVersion", IPv4, IPv4, IPv6) },
				func() error {
					return choose(c, "properties.privateIPAllocationMethod", "Dynamic", "Dynamic", "Static")
				},
			)
		},
	})
}

func checkNetworkInterface(c *behaviour.Call) error {
	configurations := behaviour.Objects(c.Doc, "properties.ipConfigurations")
	if err := checkConfigurations(c, configurations); err != nil {
		return err
	}
	var holders []holder
	var attached []attachment
	for _, configuration := range configurations {
		name := behaviour.Text(configuration, "name")
		id := c.ID.Child("ipConfigurations", name)
		holders = append(holders, holder{id: id, now: behaviour.Sub(configuration, "properties"),
			was: behaviour.Sub(behaviour.Named(c.Old, "properties.ipConfigurations", name), "properties")})
		if address := behaviour.RefID(configuration, "properties.publicIPAddress"); address != "" {
			attached = append(attached, attachment{id, address})
		}
		if err := CheckPools(c.World, id, poolsOf(configuration)); err != nil {
			return err
		}
	}
	if err := attachPublicIPs(c, attached); err != nil {
		return err
	}
	addresses := privateAddresses{call: c}
	if err := addresses.give(holders); err != nil {
		return err
	}
	setDomainSuffix(c)
	return nil
}

// poolsOf are the load balancer pools that an IP configuration is in.
func poolsOf(configuration behaviour.Object) []azure.ID {
	var pools []azure.ID
	for _, ref := range behaviour.Objects(configuration, "properties.loadBalancerBackendAddressPools") {
		pools = append(pools, azure.ID(behaviour.Text(ref, "id")))
	}
	return pools
}

// checkConfigurations: all IP configurations of an interface are in one virtual network
// of its region, and the primary one has IPv4.
func checkConfigurations(c *behaviour.Call, configurations []behaviour.Object) error {
	var network azure.ID
	for _, configuration := range configurations {
		id := c.ID.Child("ipConfigurations", behaviour.Text(configuration, "name"))
		subnet := behaviour.RefID(configuration, "properties.subnet")
		if network == "" {
			network = subnet.Parent()
		}
		if !network.Equal(subnet.Parent()) {
			return behaviour.Invalid("IpConfigurationsInDifferentVirtualNetworks", "IP configurations of network interface %s must be in the same virtual network: %s is not in %s.", c.ID, subnet, network)
		}
		if behaviour.Bool(configuration, "properties.primary") && behaviour.Text(configuration, "properties.privateIPAddressVersion") == IPv6 {
			return behaviour.Invalid("NetworkInterfacePrimaryIpConfigurationMustBeIPv4", "The primary IP configuration %s must have the version IPv4.", id)
		}
	}
	doc, ok := c.Get(network)
	if !ok || behaviour.Text(doc, "location") != c.Location() {
		return behaviour.InvalidReference(c.ID, network)
	}
	return nil
}

// setDomainSuffix names the internal DNS zone, one for each virtual network.
func setDomainSuffix(c *behaviour.Call) {
	configuration := behaviour.Objects(c.Doc, "properties.ipConfigurations")[0]
	network, _ := c.Get(behaviour.RefID(configuration, "properties.subnet").Parent())
	behaviour.Set(c.Doc, "properties.dnsSettings.internalDomainNameSuffix", domainSuffix(behaviour.Text(network, "properties.resourceGuid")))
}

// domainSuffix makes 26 letters and digits out of a network's GUID.
func domainSuffix(guid string) string {
	const letters, length = "abcdefghijklmnopqrstuvwxyz012345", 26
	sum := fnv.New64a()
	var b strings.Builder
	for i := range length {
		fmt.Fprintf(sum, "%s/%d", guid, i)
		b.WriteByte(letters[sum.Sum64()%uint64(len(letters))])
	}
	return b.String() + ".bx.internal.cloudapp.net"
}

func interfaceInUse(c *behaviour.Call, by []behaviour.Referrer) error {
	for _, r := range by {
		if r.Path == machineInterfaces {
			return behaviour.Invalid("NicInUse", "Network Interface %s is used by existing resource %s. In order to delete the network interface, it must be dissociated from the resource. To learn more, see aka.ms/deletenic.", c.ID, r.Resource)
		}
	}
	return nil
}

// refuseManagedInterface protects the interfaces that Azure makes for private
// endpoints and private link services.
func refuseManagedInterface(c *behaviour.Call) error {
	for _, path := range []string{"properties.privateEndpoint", "properties.privateLinkService"} {
		if owner := behaviour.RefID(c.Old, path); owner != "" {
			return behaviour.Invalid("NicInUse", "Network Interface %s is used by existing resource %s. In order to delete the network interface, it must be dissociated from the resource. To learn more, see aka.ms/deletenic.", c.ID, owner)
		}
	}
	return nil
}

// showNetworkInterface shows the machine that an interface is attached to, and
// what only attached interfaces have.
func showNetworkInterface(c *behaviour.Call, view behaviour.Object) {
	machines := users(c.World, c.ID, machineInterfaces)
	if len(machines) == 0 {
		behaviour.Remove(view, "properties.macAddress")
		return
	}
	machine, _ := c.Get(machines[0].Resource)
	behaviour.Set(view, "properties.virtualMachine", behaviour.Ref(machines[0].Resource))
	behaviour.Set(view, "properties.primary", primaryOf(machine, c.ID))
}

// primaryOf reports whether an interface is the primary one of a machine.
func primaryOf(machine behaviour.Object, id azure.ID) bool {
	attached := behaviour.Objects(machine, machineInterfaces)
	for _, a := range attached {
		if id.Equal(azure.ID(behaviour.Text(a, "id"))) {
			return len(attached) == 1 || behaviour.Bool(a, "properties.primary")
		}
	}
	return false
}
