package privatelink

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/schema"
)

func privateEndpoints() behaviour.Type {
	return schema.Tracked("privateEndpoints", behaviour.Type{
		Style: schema.RetryAfter(10, 20),
		Own:   []string{"properties.networkInterfaces", "properties.customDnsConfigs"},
		Fill:  fillEndpoint,
		Check: checkEndpoint,
		Removed: func(c *behaviour.Call) error {
			for _, connection := range connectionsOf(c.Old) {
				if id := connectionID(c.World, c.Old, connection); id != "" {
					c.Delete(id)
				}
			}
			return removeInterfaces(c)
		},
		Show: showEndpoint,
	})
}

func fillEndpoint(c *behaviour.Call) error {
	if _, err := schema.Reference(c, "properties.subnet", schema.Namespace+"virtualNetworks/subnets"); err != nil {
		return err
	}
	behaviour.Default(c.Doc, "properties.customNetworkInterfaceName", "")
	behaviour.Default(c.Doc, "properties.isIPv6EnabledPrivateEndpoint", false)
	return schema.List(c, "properties.privateLinkServiceConnections", "properties.manualPrivateLinkServiceConnections",
		"properties.ipConfigurations", "properties.customDnsConfigs")
}

// connectionsOf returns an endpoint's connections, manual connections last.
func connectionsOf(endpoint behaviour.Object) []behaviour.Object {
	return append(behaviour.Objects(endpoint, "properties.privateLinkServiceConnections"),
		behaviour.Objects(endpoint, "properties.manualPrivateLinkServiceConnections")...)
}

// linkConnections is the type of an endpoint's connections. They are approved at once. Manual connections wait for approval.
func linkConnections(name string) behaviour.Type {
	state := "properties.privateLinkServiceConnectionState"
	return schema.Inside("privateEndpoints/"+name, "properties."+name, behaviour.Type{
		ReadOnly: true,
		Own:      []string{state},
		Fill: func(c *behaviour.Call) error {
			if _, err := azure.ParseID(behaviour.Text(c.Doc, "properties.privateLinkServiceId")); err != nil {
				return schema.Malformed("InvalidPrivateLinkServiceId", "Private link service id '%s' of resource %s is invalid.",
					behaviour.Text(c.Doc, "properties.privateLinkServiceId"), c.ID)
			}
			if behaviour.At(c.Doc, state) != nil {
				return nil
			}
			if strings.HasPrefix(name, "manual") {
				behaviour.Set(c.Doc, state,
					behaviour.Object{"status": "Pending", "description": "Awaiting approval", "actionsRequired": "None"})
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
		return schema.Malformed("PrivateEndpointMustHaveOneConnection",
			"Private endpoint %s must have exactly one private link service connection, not %d.", c.ID, len(connections))
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

// endpointInterface creates the network interface with the endpoint's address.
func endpointInterface(c *behaviour.Call) error {
	name := behaviour.Text(c.Doc, "properties.customNetworkInterfaceName")
	if name == "" {
		name = interfaceName(c)
	}
	id := ownInterface(c, name)
	subnet := behaviour.Ref(behaviour.RefID(c.Doc, "properties.subnet"))
	var configurations []any
	for _, wanted := range behaviour.Objects(c.Doc, "properties.ipConfigurations") {
		configurations = append(configurations, behaviour.Object{"name": behaviour.Text(wanted, "name"), "properties": behaviour.Object{
			"subnet": subnet, "primary": len(configurations) == 0, "privateIPAddressVersion": ipam.IPv4,
			"privateIPAllocationMethod": "Static", "privateIPAddress": behaviour.Text(wanted, "properties.privateIPAddress"),
		}})
	}
	if len(configurations) == 0 {
		for i := range max(len(endpointNames(c.World, c.Doc)), 1) {
			configurations = append(configurations, behaviour.Object{"name": "privateEndpointIpConfig." + guidOf(c, id, i),
				"properties": behaviour.Object{"subnet": subnet, "primary": i == 0, "privateIPAddressVersion": ipam.IPv4,
					"privateIPAllocationMethod": "Dynamic"}})
		}
	}
	return putInterface(c, id, "properties.privateEndpoint", configurations)
}

// guidOf returns the GUID in the name of the interface's i-th IP configuration, or a new one.
func guidOf(c *behaviour.Call, nic azure.ID, i int) string {
	doc, _ := c.Get(nic)
	if all := behaviour.Objects(doc, "properties.ipConfigurations"); i < len(all) {
		if _, guid, ok := strings.Cut(behaviour.Text(all[i], "name"), "."); ok {
			return guid
		}
	}
	return c.GUID()
}

// connectionID returns the id of the connection at the private link service, or at the resource of another provider. It is "" for
// a resource that has no such connections.
func connectionID(w behaviour.World, endpoint, connection behaviour.Object) azure.ID {
	service := azure.ID(behaviour.Text(connection, "properties.privateLinkServiceId"))
	if !w.Known(service.Type() + "/privateEndpointConnections") {
		return ""
	}
	const longest = 40 // so that the name stays within the limit of 80 characters
	name := azure.ID(behaviour.Text(endpoint, "id")).Name()
	return service.Child("privateEndpointConnections", name[:min(len(name), longest)]+"."+
		behaviour.Text(endpoint, "properties.resourceGuid"))
}

// connect adds the connection to the private link service.
func connect(c *behaviour.Call, connection behaviour.Object) error {
	service := azure.ID(behaviour.Text(connection, "properties.privateLinkServiceId"))
	behaviour.Set(c.Doc, "id", string(c.ID))
	id := connectionID(c.World, c.Doc, connection)
	if id == "" {
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
	if _, ok := c.Get(id); ok {
		return nil
	}
	properties := behaviour.Object{"privateEndpoint": behaviour.Ref(c.ID), "privateLinkServiceConnectionState": state}
	if service.Is(schema.Namespace + "privateLinkServices") {
		properties["privateEndpointLocation"], properties["linkIdentifier"] = c.Location(), linkIdentifier(c)
	} else {
		properties["groupIds"] = behaviour.Clone(behaviour.At(connection, "properties.groupIds"))
		if behaviour.Text(state, "status") == "Approved" {
			state["description"] = "Auto-Approved"
		}
	}
	c.Put(id, behaviour.Object{"name": id.Name(), "properties": properties})
	return nil
}

func approved() behaviour.Object {
	return behaviour.Object{"status": "Approved", "description": "Auto Approved", "actionsRequired": "None"}
}

// approves reports whether a private link service approves all endpoints of a subscription.
func approves(service behaviour.Object, subscription string) bool {
	return slices.ContainsFunc(behaviour.Texts(service, "properties.autoApproval.subscriptions"), func(s string) bool {
		return s == "*" || strings.EqualFold(s, subscription)
	})
}

// disconnect deletes the connections to other services than the current one.
func disconnect(c *behaviour.Call, now behaviour.Object) {
	to := azure.ID(behaviour.Text(now, "properties.privateLinkServiceId"))
	for _, old := range connectionsOf(c.Old) {
		if id := connectionID(c.World, c.Old, old); id != "" && !id.Parent().Equal(to) {
			c.Delete(id)
		}
	}
}

// linkIdentifier returns the number that private link writes into PROXY headers.
func linkIdentifier(c *behaviour.Call) string {
	const digits = "0123456789"
	var b strings.Builder
	b.WriteByte(digits[1+c.Intn(9)])
	for range 8 {
		b.WriteByte(digits[c.Intn(10)])
	}
	return b.String()
}

// showEndpoint shows the state of the connection at the private link service.
func showEndpoint(c *behaviour.Call, view behaviour.Object) {
	for _, connection := range connectionsOf(view) {
		id := connectionID(c.World, view, connection)
		if id == "" {
			continue
		}
		theirs, ok := c.Get(id)
		state := behaviour.Sub(theirs, "properties.privateLinkServiceConnectionState")
		if !ok || state == nil {
			state = behaviour.Object{"status": "Disconnected",
				"description": "Connection was removed by the owner of the private link service", "actionsRequired": ""}
		}
		behaviour.Set(connection, "properties.privateLinkServiceConnectionState", behaviour.Clone(state))
	}
}

// fillCustomDNS lists the names of the platform service with the endpoint's address.
func fillCustomDNS(c *behaviour.Call) {
	configs := []any{}
	for _, name := range endpointNames(c.World, c.Doc) {
		configs = append(configs, behaviour.Object{"fqdn": name.fqdn(), "ipAddresses": schema.Array(name.addresses)})
	}
	behaviour.Set(c.Doc, "properties.customDnsConfigs", configs)
}

// endpointAddresses returns the private addresses of an endpoint.
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

// endpointName is a DNS name of a private endpoint: host in the public zone, or in the private zone "privatelink."
// before the public one.
type endpointName struct {
	host, public string
	addresses    []string
}

func (n endpointName) fqdn() string { return n.host + "." + n.public }

// endpointNames returns the names of the platform services behind an endpoint. Each has an address of its own if the endpoint has as many
// addresses as names, and all of them otherwise.
func endpointNames(w behaviour.World, endpoint behaviour.Object) []endpointName {
	var names []endpointName
	for _, connection := range connectionsOf(endpoint) {
		to := azure.ID(behaviour.Text(connection, "properties.privateLinkServiceId"))
		for _, group := range behaviour.Texts(connection, "properties.groupIds") {
			zone, host := serviceZone(to, group), strings.ToLower(to.Name())
			if zone == "" {
				continue
			}
			names = append(names, endpointName{host: host, public: zone})
			if registry, ok := w.Get(to); ok && to.Is("Microsoft.ContainerRegistry/registries") { // layers have a name for each region
				region := behaviour.Text(registry, "location")
				names = append(names, endpointName{host: host + "." + region + ".data", public: zone})
			}
		}
	}
	addresses := endpointAddresses(w, endpoint)
	for i := range names {
		names[i].addresses = addresses
		if len(addresses) == len(names) {
			names[i].addresses = addresses[i : i+1]
		}
	}
	return names
}

// serviceZone returns the public DNS zone of a platform service's sub-resource.
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
