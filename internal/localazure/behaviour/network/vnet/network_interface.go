package vnet

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/loadbalancer"
	"kaz/internal/localazure/behaviour/network/publicip"
	"kaz/internal/localazure/behaviour/network/schema"
)

// machineInterfaces is the path at which a machine refers to its network interfaces.
const machineInterfaces = "properties.networkProfile.networkInterfaces"

func networkInterfaces() behaviour.Type {
	style := schema.RetryAfter(0, 0)
	style.Wait = map[behaviour.Verb]behaviour.Wait{behaviour.Delete: {First: 5, Later: 5}}
	return schema.Tracked("networkInterfaces", behaviour.Type{
		Style: style,
		Own: []string{"kind", "properties.macAddress", "properties.primary", "properties.virtualMachine", "properties.privateEndpoint",
			"properties.privateLinkService", "properties.hostedWorkloads", "properties.tapConfigurations",
			"properties.dnsSettings.appliedDnsServers", "properties.dnsSettings.internalDomainNameSuffix",
			"properties.dnsSettings.internalFqdn"},
		Fill:   fillNetworkInterface,
		Check:  checkNetworkInterface,
		AtOnce: func(c *behaviour.Call) bool { return c.Verb != behaviour.Delete && !changesMembership(c) },
		InUse:  interfaceInUse,
		Refuse: refuseManagedInterface,
		Show:   showNetworkInterface,
		Actions: map[string]behaviour.Action{
			"effectiveRouteTable": effective(effectiveRoutes), "effectiveNetworkSecurityGroups": effective(effectiveGroups),
		},
		Views: map[string]func(c *behaviour.Call) (any, error){"loadBalancers": balancersOf},
	})
}

// changesMembership reports whether a write changes what other resources send to an interface: the pools and NAT rules of load
// balancers and the application security groups that it is in. Azure needs time for this alone.
func changesMembership(c *behaviour.Call) bool {
	for _, path := range []string{"properties.loadBalancerBackendAddressPools", "properties.loadBalancerInboundNatRules",
		"properties.applicationSecurityGroups"} {
		if !slices.Equal(memberships(c.Old, path), memberships(c.Doc, path)) {
			return true
		}
	}
	return false
}

// memberships returns what the IP configurations of an interface refer to at a path.
func memberships(doc behaviour.Object, path string) []string {
	var all []string
	for _, configuration := range behaviour.Objects(doc, "properties.ipConfigurations") {
		for _, ref := range behaviour.Objects(configuration, path) {
			all = append(all, behaviour.Text(configuration, "name")+" "+azure.ID(behaviour.Text(ref, "id")).Key())
		}
	}
	slices.Sort(all)
	return all
}

func fillNetworkInterface(c *behaviour.Call) error {
	if len(behaviour.Objects(c.Doc, "properties.ipConfigurations")) == 0 {
		return schema.Malformed("NetworkInterfaceMustHaveIpConfiguration",
			"Network interface %s must have at least one IP configuration.", c.ID)
	}
	c.Doc["kind"] = "Regular"
	if behaviour.Text(c.Doc, "properties.macAddress") == "" {
		behaviour.Set(c.Doc, "properties.macAddress", ipam.MACAddress(c.World))
	}
	return schema.FirstError(
		func() error {
			return schema.List(c, "properties.ipConfigurations", "properties.dnsSettings.dnsServers",
				"properties.dnsSettings.appliedDnsServers",
				"properties.hostedWorkloads", "properties.tapConfigurations")
		},
		func() error {
			return schema.Flags(c, "properties.enableAcceleratedNetworking", "properties.vnetEncryptionSupported",
				"properties.enableIPForwarding",
				"properties.disableTcpStateTracking", "properties.defaultOutboundConnectivityEnabled")
		},
		func() error { return schema.Flag(c, "properties.allowPort25Out", true) },
		func() error { return schema.Choose(c, "properties.nicType", "Standard", "Standard", "Elastic") },
		func() error {
			return schema.Choose(c, "properties.auxiliaryMode", "None", "None", "MaxConnections", "Floating", "AcceleratedConnections")
		},
		func() error {
			return schema.Choose(c, "properties.auxiliarySku", "None", "None", "A1", "A2", "A4", "A8")
		},
		func() error { return schema.ChoosePrimary(c) },
	)
}

func ipConfigurations() behaviour.Type {
	return schema.Inside("networkInterfaces/ipConfigurations", "properties.ipConfigurations", behaviour.Type{
		ReadOnly: true,
		Fill: func(c *behaviour.Call) error {
			if _, err := schema.Reference(c, "properties.subnet", schema.Namespace+"virtualNetworks/subnets"); err != nil {
				return err
			}
			return schema.FirstError(
				func() error {
					return schema.Choose(c, "properties.privateIPAddressVersion", ipam.IPv4, ipam.IPv4, ipam.IPv6)
				},
				func() error {
					return schema.Choose(c, "properties.privateIPAllocationMethod", "Dynamic", "Dynamic", "Static")
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
	var wanted []ipam.Configuration
	var attached []publicip.Attachment
	for _, configuration := range configurations {
		name := behaviour.Text(configuration, "name")
		id := c.ID.Child("ipConfigurations", name)
		wanted = append(wanted, ipam.Configuration{ID: id, Now: behaviour.Sub(configuration, "properties"),
			Was: behaviour.Sub(behaviour.Named(c.Old, "properties.ipConfigurations", name), "properties")})
		if address := behaviour.RefID(configuration, "properties.publicIPAddress"); address != "" {
			attached = append(attached, publicip.Attachment{Object: id, Address: address})
		}
		if err := loadbalancer.CheckPools(c.World, id, loadbalancer.PoolsOf(configuration)); err != nil {
			return err
		}
	}
	if err := publicip.Attach(c, attached); err != nil {
		return err
	}
	if err := ipam.AssignPrivate(c, wanted); err != nil {
		return err
	}
	setDomainSuffix(c)
	return nil
}

// checkConfigurations checks that all IP configurations are in one virtual network of the interface's region, and that
// the primary one has IPv4.
func checkConfigurations(c *behaviour.Call, configurations []behaviour.Object) error {
	var network azure.ID
	for _, configuration := range configurations {
		id := c.ID.Child("ipConfigurations", behaviour.Text(configuration, "name"))
		subnet := behaviour.RefID(configuration, "properties.subnet")
		if network == "" {
			network = subnet.Parent()
		}
		if !network.Equal(subnet.Parent()) {
			return behaviour.Invalid("IpConfigurationsInDifferentVirtualNetworks",
				"IP configurations of network interface %s must be in the same virtual network: %s is not in %s.", c.ID, subnet, network)
		}
		if behaviour.Bool(configuration, "properties.primary") &&
			behaviour.Text(configuration, "properties.privateIPAddressVersion") == ipam.IPv6 {
			return behaviour.Invalid("NetworkInterfacePrimaryIpConfigurationMustBeIPv4",
				"The primary IP configuration %s must have the version IPv4.", id)
		}
	}
	doc, ok := c.Get(network)
	if !ok || behaviour.Text(doc, "location") != c.Location() {
		return behaviour.InvalidReference(c.ID, network)
	}
	return nil
}

// setDomainSuffix writes the internal DNS zone, which is the same for all interfaces of a virtual network.
func setDomainSuffix(c *behaviour.Call) {
	configuration := behaviour.Objects(c.Doc, "properties.ipConfigurations")[0]
	network, _ := c.Get(behaviour.RefID(configuration, "properties.subnet").Parent())
	behaviour.Set(c.Doc, "properties.dnsSettings.internalDomainNameSuffix",
		domainSuffix(behaviour.Text(network, "properties.resourceGuid")))
}

// domainSuffix derives 26 letters and digits from a network's GUID.
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
			return behaviour.Invalid("NicInUse",
				"Network Interface %s is used by existing resource %s. In order to delete the network interface, it must be "+
					"dissociated from the resource. To learn more, see aka.ms/deletenic.", c.ID, r.Resource)
		}
	}
	return nil
}

// refuseManagedInterface refuses to delete the interfaces of private endpoints and private link services.
func refuseManagedInterface(c *behaviour.Call) error {
	for _, path := range []string{"properties.privateEndpoint", "properties.privateLinkService"} {
		if owner := behaviour.RefID(c.Old, path); owner != "" {
			return behaviour.Invalid("NicInUse",
				"Network Interface %s is used by existing resource %s. In order to delete the network interface, it must be "+
					"dissociated from the resource. To learn more, see aka.ms/deletenic.", c.ID, owner)
		}
	}
	return nil
}

// showNetworkInterface shows the machine of an interface, and the fields of attached interfaces.
func showNetworkInterface(c *behaviour.Call, view behaviour.Object) {
	machines := schema.ReferrersAt(c.World, c.ID, machineInterfaces)
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
