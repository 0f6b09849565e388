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

// addressGroup gives a container group that asks for an address one of its subnet, or one of a range that is used for nothing else. Nothing
// answers there. It is the same for the same group.
func addressGroup(c *behaviour.Call) error {
	if behaviour.Sub(c.Doc, "properties.ipAddress") == nil {
		return nil
	}
	within := netip.MustParsePrefix("198.19.0.0/16")
	for _, s := range behaviour.Objects(c.Doc, "properties.subnetIds") {
		subnet, _ := c.Get(azure.ID(behaviour.Text(s, "id")))
		if p, err := netip.ParsePrefix(behaviour.Text(subnet, "properties.addressPrefix")); err == nil {
			within = p
		}
	}
	behaviour.Set(c.Doc, "properties.ipAddress.ip", addressIn(within, c.ID.Key()).String())
	if label := behaviour.Text(c.Doc, "properties.ipAddress.dnsNameLabel"); label != "" {
		behaviour.Set(c.Doc, "properties.ipAddress.fqdn", label+"."+c.Location()+".azurecontainer.io")
	}
	return nil
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
