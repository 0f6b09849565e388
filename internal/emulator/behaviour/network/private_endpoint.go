package network

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

func privateEndpoints() behaviour.Type {
	return tracked("privateEndpoints", behaviour.Type{
		Style: waiting(10, 20),
		Own:   []string{"properties.networkInterfaces", "properties.customDnsConfigs"},
		Fill:  fillEndpoint,
		Check: checkEndpoint,
		Removed: func(c *behaviour.Call) error {
			for _, connection := range connectionsOf(c.Old) {
				if id := connectionID(c.Old, connection); id != "" {
					c.Delete(id)
				}
			}
			return removeInterfaces(c)
		},
		Show: showEndpoint,
	})
}

func fillEndpoint(c *behaviour.Call) error {
	if _, err := reference(c, "properties.subnet", namespace+"virtualNetworks/subnets"); err != nil {
		return err
	}
	behaviour.Default(c.Doc, "properties.customNetworkInterfaceName", "")
	behaviour.Default(c.Doc, "properties.isIPv6EnabledPrivateEndpoint", false)
	return list(c, "properties.privateLinkServiceConnections", "properties.manualPrivateLinkServiceConnections",
		"properties.ipConfigurations", "properties.customDnsConfigs")
}

// connectionsOf are an endpoint's connections, those that need approval last.
func connectionsOf(endpoint behaviour.Object) []behaviour.Object {
	return append(behaviour.Objects(endpoint, "properties.privateLinkServiceConnections"),
		behaviour.Objects(endpoint, "properties.manualPrivateLinkServiceConnections")...)
}

// linkConnections are what an endpoint leads to. Those in a subscription with
// rights to it are approved at once, manual ones wait.
func linkConnections(name string) behaviour.Type {
	state := "properties.privateLinkServiceConnectionState"
	return inside("privateEndpoints/"+name, "properties."+name, behaviour.Type{
		ReadOnly: true,
		Own:      []string{state},
		Fill: func(c *behaviour.Call) error {
			if _, err := azure.ParseID(behaviour.Text(c.Doc, "properties.privateLinkServiceId")); err != nil {
				return malformed("InvalidPrivateLinkServiceId", "Private link service id '%s' of resource %s is invalid.", behaviour.Text(c.Doc, "properties.privateLinkServiceId"), c.ID)
			}
			if behaviour.At(c.Doc, state) != nil {
				return nil
			}
			if strings.HasPrefix(name, "manual") {
				behaviour.Set(c.Doc, state, behaviour.Object{"status": "Pending", "description": "Awaiting approval", "actionsRequired": "None"})
			} else {
				behaviour.Set(c.Doc, state, approved())
			}
			return nil
		},
	})
}

func checkEndpoint(c *behaviour.Call) error {
	connections := connectionsOf(c.Doc)
	if len(connections) != 1 {
		return malformed("PrivateEndpointMustHaveOneConnection", "Private endpoint %s must have exactly one private link service connection, not %d.", c.ID, len(connections))
	}
	if err := endpointInterface(c); err != nil {
		return err
	}
	disconnect(c, connections[0])
	if err := connect(c, connections[0]); err != nil {
		return err
	}
	fillCustomDNS(c)
	return nil
}

// endpointInterface makes the network interface that has the endpoint's address.
func endpointInterface(c *behaviour.Call) error {
	name := behaviour.Text(c.Doc, "properties.customNetworkInterfaceName")
	if name == "" {
		name = c.ID.Name() + ".nic." + c.GUID()
	}
	id := ownInterface(c, name)
	subnet := behaviour.Ref(behaviour.RefID(c.Doc, "properties.subnet"))
	var configurations []any
	for _, wanted := range behaviour.Objects(c.Doc, "properties.ipConfigurations") {
		configurations = append(configurations, behaviour.Object{"name": behaviour.Text(wanted, "name"), "properties": behaviour.Object{
			"subnet": subnet, "primary": len(configurations) == 0, "privateIPAddressVersion": IPv4,
			"privateIPAllocationMethod": "Static", "privateIPAddress": behaviour.Text(wanted, "properties.privateIPAddress"),
		}})
	}
	if len(configurations) == 0 {
		configurations = []any{behaviour.Object{"name": "privateEndpointIpConfig." + guidOf(c, id), "properties": behaviour.Object{
			"subnet": subnet, "primary": true, "privateIPAddressVersion": IPv4, "privateIPAllocationMethod": "Dynamic",
		}}}
	}
	return putInterface(c, id, "properties.privateEndpoint", configurations)
}

// guidOf is the GUID in the name of the IP configuration that an interface has, or
// a new one.
func guidOf(c *behaviour.Call, nic azure.ID) string {
	doc, _ := c.Get(nic)
	for _, configuration := range behaviour.Objects(doc, "properties.ipConfigurations") {
		if _, guid, ok := strings.Cut(behaviour.Text(configuration, "name"), "."); ok {
			return guid
		}
	}
	return c.GUID()
}

// connectionID is the id of the connection as the private link service has it.
func connectionID(endpoint, connection behaviour.Object) azure.ID {
	service := azure.ID(behaviour.Text(connection, "properties.privateLinkServiceId"))
	if !service.Is(namespace + "privateLinkServices") {
		return ""
	}
	const longest = 40 // so that the whole name stays within what names may be
	name := azure.ID(behaviour.Text(endpoint, "id")).Name()
	return service.Child("privateEndpointConnections", name[:min(len(name), longest)]+"."+behaviour.Text(endpoint, "properties.resourceGuid"))
}

// connect makes the endpoint known to its private link service.
func connect(c *behaviour.Call, connection behaviour.Object) error {
	service := azure.ID(behaviour.Text(connection, "properties.privateLinkServiceId"))
	if !service.Is(namespace + "privateLinkServices") {
		return nil
	}
	theirs, ok := c.Get(service)
	if !ok {
		return behaviour.InvalidReference(c.ID, service)
	}
	state := behaviour.Clone(behaviour.Sub(connection, "properties.privateLinkServiceConnectionState"))
	if approves(theirs, c.ID.Subscription()) {
		state = approved()
	}
	behaviour.Set(c.Doc, "id", string(c.ID))
	id := connectionID(c.Doc, connection)
	if _, ok := c.Get(id); ok {
		return nil
	}
	c.Put(id, behaviour.Object{"name": id.Name(), "properties": behaviour.Object{
		"privateEndpoint":                   behaviour.Ref(c.ID),
		"privateEndpointLocation":           c.Location(),
		"linkIdentifier":                    linkIdentifier(c),
		"privateLinkServiceConnectionState": state,
	}})
	return nil
}

func approved() behaviour.Object {
	return behaviour.Object{"status": "Approved", "description": "Auto Approved", "actionsRequired": "None"}
}

// approves reports whether a private link service lets everybody of a subscription connect.
func approves(service behaviour.Object, subscription string) bool {
	return slices.ContainsFunc(behaviour.Texts(service, "properties.autoApproval.subscriptions"), func(s string) bool {
		return s == "*" || strings.EqualFold(s, subscription)
	})
}

// disconnect takes away connections to services that the endpoint left.
func disconnect(c *behaviour.Call, now behaviour.Object) {
	to := azure.ID(behaviour.Text(now, "properties.privateLinkServiceId"))
	for _, old := range connectionsOf(c.Old) {
		if id := connectionID(c.Old, old); id != "" && !id.Parent().Equal(to) {
			c.Delete(id)
		}
	}
}

// linkIdentifier is the number that private link puts into PROXY headers.
func linkIdentifier(c *behaviour.Call) string {
	const digits = "0123456789"
	var b strings.Builder
	b.WriteByte(digits[1+c.Intn(9)])
	for range 8 {
		b.WriteByte(digits[c.Intn(10)])
	}
	return b.String()
}

// showEndpoint shows what became of the connection at the private link service.
func showEndpoint(c *behaviour.Call, view behaviour.Object) {
	for _, connection := range connectionsOf(view) {
		id := connectionID(view, connection)
		if id == "" {
			continue
		}
		theirs, ok := c.Get(id)
		state := behaviour.Sub(theirs, "properties.privateLinkServiceConnectionState")
		if !ok || state == nil {
			state = behaviour.Object{"status": "Disconnected", "description": "Connection was removed by the owner of the private link service", "actionsRequired": ""}
		}
		behaviour.Set(connection, "properties.privateLinkServiceConnectionState", behaviour.Clone(state))
	}
}

// fillCustomDNS lists the names that clients of a platform service use, with the
// endpoint's address.
func fillCustomDNS(c *behaviour.Call) {
	configs := []any{}
	for _, name := range endpointNames(c.Doc) {
		configs = append(configs, behaviour.Object{"fqdn": name.fqdn(), "ipAddresses": toAny(endpointAddresses(c.World, c.Doc))})
	}
	behaviour.Set(c.Doc, "properties.customDnsConfigs", configs)
}

// endpointAddresses are the private addresses of an endpoint.
func endpointAddresses(w behaviour.World, endpoint behaviour.Object) []string {
	var addresses []string
	for _, ref := range behaviour.Objects(endpoint, "properties.networkInterfaces") {
		nic, _ := w.Get(azure.ID(behaviour.Text(ref, "id")))
		for _, configuration := range behaviour.Objects(nic, "properties.ipConfigurations") {
			addresses = append(addresses, behaviour.Text(configuration, "properties.privateIPAddress"))
		}
	}
	return addresses
}

// endpointName is a DNS name that leads to a private endpoint: host in a zone that
// is publicly called public, and privately with "privatelink." before it.
type endpointName struct{ host, public string }

func (n endpointName) fqdn() string { return n.host + "." + n.public }

// endpointNames are the names of the platform services that an endpoint leads to.
func endpointNames(endpoint behaviour.Object) []endpointName {
	var names []endpointName
	for _, connection := range connectionsOf(endpoint) {
		to := azure.ID(behaviour.Text(connection, "properties.privateLinkServiceId"))
		for _, group := range behaviour.Texts(connection, "properties.groupIds") {
			if zone := serviceZone(to, group); zone != "" {
				names = append(names, endpointName{strings.ToLower(to.Name()), zone})
			}
		}
	}
	return names
}

// serviceZone is the DNS zone of a platform service's sub-resource.
func serviceZone(service azure.ID, group string) string {
	group = strings.ToLower(group)
	switch strings.ToLower(service.Type()) {
	case "microsoft.storage/storageaccounts":
		return strings.TrimSuffix(group, "_secondary") + ".core.windows.net"
	case "microsoft.keyvault/vaults":
		return "vault.azure.net"
	case "microsoft.containerregistry/registries":
		return "azurecr.io"
	}
	return ""
}
