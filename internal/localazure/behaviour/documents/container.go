package documents

import (
	"hash/fnv"
	"net/netip"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// nameApp gives a container app with an ingress its name in the domain of its environment.
func nameApp(c *behaviour.Call) error {
	environment, _ := c.Get(azure.ID(behaviour.Text(c.Doc, "properties.managedEnvironmentId")))
	domain := behaviour.Text(environment, "properties.defaultDomain")
	if behaviour.Sub(c.Doc, "properties.configuration.ingress") != nil && domain != "" {
		behaviour.Set(c.Doc, "properties.configuration.ingress.fqdn", c.ID.Name()+"."+domain)
	}
	return nil
}

// addressGroup gives a container group that asks for an address, or that is in a network, one of its subnet, or one of a range that is used
// for nothing else. Nothing answers there. It is the same for the same group.
func addressGroup(c *behaviour.Call) error {
	within := netip.MustParsePrefix("198.19.0.0/16")
	for _, id := range subnetsOf(c) {
		subnet, _ := c.Get(id)
		if p, err := netip.ParsePrefix(behaviour.Text(subnet, "properties.addressPrefix")); err == nil {
			within = p
			behaviour.Default(c.Doc, "properties.ipAddress.type", "Private")
		}
	}
	if behaviour.Sub(c.Doc, "properties.ipAddress") == nil {
		return nil
	}
	behaviour.Set(c.Doc, "properties.ipAddress.ip", addressIn(within, c.ID.Key()).String())
	if label := behaviour.Text(c.Doc, "properties.ipAddress.dnsNameLabel"); label != "" {
		behaviour.Set(c.Doc, "properties.ipAddress.fqdn", label+"."+c.Location()+".azurecontainer.io")
	}
	return nil
}

// subnetsOf are the subnets of a container group: its own, or those of its network profile.
func subnetsOf(c *behaviour.Call) (ids []azure.ID) {
	for _, s := range behaviour.Objects(c.Doc, "properties.subnetIds") {
		ids = append(ids, azure.ID(behaviour.Text(s, "id")))
	}
	profile, _ := c.Get(behaviour.RefID(c.Doc, "properties.networkProfile"))
	for _, i := range behaviour.Objects(profile, "properties.containerNetworkInterfaceConfigurations") {
		for _, configuration := range behaviour.Objects(i, "properties.ipConfigurations") {
			ids = append(ids, behaviour.RefID(configuration, "properties.subnet"))
		}
	}
	return ids
}

// addressIn is an address of an IPv4 prefix for a name, none of the first four, which Azure keeps, and not the last.
func addressIn(p netip.Prefix, name string) netip.Addr {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	const kept = 5
	address := p.Masked().Addr()
	for range kept - 1 + int(h.Sum32())%max(1, 1<<min(8, 32-p.Bits())-kept) {
		address = address.Next()
	}
	return address
}
