package network

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// linkServiceFrontends is where a private link service names the frontends it
// makes reachable.
const linkServiceFrontends = "properties.loadBalancerFrontendIpConfigurations"

func privateLinkTypes() []behaviour.Type {
	return []behaviour.Type{privateLinkServices(), linkConfigurations(), endpointConnections(),
		privateEndpoints(), linkConnections("privateLinkServiceConnections"), linkConnections("manualPrivateLinkServiceConnections"),
		zoneGroups(), zoneConfigurations()}
}

func privateLinkServices() behaviour.Type {
	return tracked("privateLinkServices", behaviour.Type{
		Style: waiting(10, 10),
		Own:   []string{"properties.alias", "properties.networkInterfaces", "properties.privateEndpointConnections"},
		Fill:  fillLinkService,
		Check: checkLinkService,
		Refuse: func(c *behaviour.Call) error {
			if n := len(behaviour.Objects(c.Old, "properties.privateEndpointConnections")); n > 0 {
				return behaviour.Invalid("PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted", "Private link service %s cannot be deleted because it has %d private endpoint connections. Delete them first.", c.ID, n)
			}
			return nil
		},
		Removed: func(c *behaviour.Call) error {
			touchBalancers(c, c.Old)
			return removeInterfaces(c)
		},
	})
}

// touchBalancers gives the load balancers of a private link service new etags:
// they change when a service comes and goes.
func touchBalancers(c *behaviour.Call, service behaviour.Object) {
	for _, ref := range behaviour.Objects(service, linkServiceFrontends) {
		c.Touch(azure.ID(behaviour.Text(ref, "id")).Parent())
	}
}

func fillLinkService(c *behaviour.Call) error {
	if behaviour.Text(c.Doc, "properties.alias") == "" {
		behaviour.Set(c.Doc, "properties.alias", strings.ToLower(c.ID.Name())+"."+c.GUID()+"."+c.Location()+".azure.privatelinkservice")
	}
	return first(
		func() error {
			return list(c, "properties.fqdns", "properties.privateEndpointConnections", "properties.ipConfigurations", linkServiceFrontends)
		},
		func() error { return flag(c, "properties.enableProxyProtocol", false) },
	)
}

func linkConfigurations() behaviour.Type {
	return inside("privateLinkServices/ipConfigurations", "properties.ipConfigurations", behaviour.Type{
		ReadOnly: true,
		Fill: func(c *behaviour.Call) error {
			if _, err := reference(c, "properties.subnet", namespace+"virtualNetworks/subnets"); err != nil {
				return err
			}
			if err := choose(c, "properties.privateIPAllocationMethod", "Dynamic", "Dynamic", "Static"); err != nil {
				return err
			}
			if behaviour.Text(c.Doc, "properties.privateIPAllocationMethod") == "Dynamic" {
				// Only the network interface shows an address that was not asked for.
				behaviour.Remove(c.Doc, "properties.privateIPAddress")
			}
			return choose(c, "properties.privateIPAddressVersion", IPv4, IPv4, IPv6)
		},
	})
}

// mostLinkServices is how many private link services a load balancer can have.
const mostLinkServices = 8

func checkLinkService(c *behaviour.Call) error {
	configurations := behaviour.Objects(c.Doc, "properties.ipConfigurations")
	const most = 8
	if len(configurations) == 0 {
		return missing(c, "properties.ipConfigurations")
	}
	if err := tooMany(c, "PrivateLinkServiceIpConfigurationCountLimitReached", "IP configurations", len(configurations), most); err != nil {
		return err
	}
	if err := checkLinkFrontends(c); err != nil {
		return err
	}
	for _, configuration := range configurations {
		id := behaviour.RefID(configuration, "properties.subnet")
		subnet, ok := c.Get(id)
		if !ok {
			return behaviour.InvalidReference(c.ID, id)
		}
		if behaviour.Text(subnet, linkPolicies) != "Disabled" {
			return behaviour.Invalid("PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled", "Private link service %s cannot be created in a subnet %s since it has private link service network policies enabled.", c.ID, id)
		}
	}
	if c.Old == nil {
		touchBalancers(c, c.Doc)
	}
	return linkInterface(c)
}

func checkLinkFrontends(c *behaviour.Call) error {
	refs := behaviour.Objects(c.Doc, linkServiceFrontends)
	if len(refs) == 0 && behaviour.Text(c.Doc, "properties.destinationIPAddress") == "" {
		return missing(c, linkServiceFrontends)
	}
	for _, ref := range refs {
		id := azure.ID(behaviour.Text(ref, "id"))
		balancer, ok := c.Get(id.Parent())
		if _, found := c.Get(id); !ok || !found {
			return behaviour.InvalidReference(c.ID, id)
		}
		if !standard(balancer) {
			return behaviour.Invalid("PrivateLinkServiceRequiresStandardLoadBalancer", "Private link service %s needs a load balancer of sku Standard: %s is not.", c.ID, id.Parent())
		}
		if hasAddresses(balancer) {
			return notBeforeAddresses(id.Parent())
		}
		used := 0
		for _, frontend := range behaviour.Objects(balancer, frontendsPath) {
			by := users(c.World, id.Parent().Child(segmentOf(frontendsPath), behaviour.Text(frontend, "name")), linkServiceFrontends)
			for _, r := range by {
				if !r.Resource.Equal(c.ID) {
					used++
				}
			}
		}
		if used >= mostLinkServices {
			return behaviour.Invalid("PrivateLinkServiceCountLimitReachedForLoadBalancer", "Load balancer %s has %d private link services. The limit is %d.", id.Parent(), used, mostLinkServices)
		}
	}
	return nil
}

// notBeforeAddresses: what leads to backends through a private link service are their network
// interfaces. Seen in github.com/MicrosoftDocs/azure-docs/issues/75134.
func notBeforeAddresses(balancer azure.ID) error {
	return behaviour.Invalid("PrivateLinkServiceIsNotSupportedForIPBasedLoadBalancer", "Private link service is not supported for load balancer %s with backend addresses set by (virtualNetwork, ipAddress) or (subnet, ipAddress).", balancer)
}

// linkedBy reports whether a private link service stands before a load balancer.
func linkedBy(c *behaviour.Call) bool {
	return slices.ContainsFunc(behaviour.Objects(c.Doc, frontendsPath), func(frontend behaviour.Object) bool {
		return len(users(c.World, c.ID.Child(segmentOf(frontendsPath), behaviour.Text(frontend, "name")), linkServiceFrontends)) > 0
	})
}

// linkInterface makes and updates the network interface that has the private
// addresses of a private link service.
func linkInterface(c *behaviour.Call) error {
	id := ownInterface(c, c.ID.Name()+".nic."+c.GUID())
	var configurations []any
	for _, configuration := range behaviour.Objects(c.Doc, "properties.ipConfigurations") {
		configurations = append(configurations, interfaceConfiguration(configuration))
	}
	return putInterface(c, id, "properties.privateLinkService", configurations)
}

func interfaceConfiguration(configuration behaviour.Object) behaviour.Object {
	properties := behaviour.Object{}
	for _, key := range []string{"subnet", "primary", "privateIPAddress", "privateIPAllocationMethod", "privateIPAddressVersion"} {
		if v := behaviour.At(configuration, "properties."+key); v != nil {
			properties[key] = behaviour.Clone(v)
		}
	}
	return behaviour.Object{"name": behaviour.Text(configuration, "name"), "properties": properties}
}

// ownInterface is the id of the network interface that Azure keeps for a resource;
// it is noted in its document when there is none yet.
func ownInterface(c *behaviour.Call, name string) azure.ID {
	if refs := behaviour.Objects(c.Doc, "properties.networkInterfaces"); len(refs) > 0 {
		return azure.ID(behaviour.Text(refs[0], "id"))
	}
	id := azure.GroupID(c.ID.Subscription(), c.ID.Group()).Resource(namespace+"networkInterfaces", name)
	behaviour.Set(c.Doc, "properties.networkInterfaces", behaviour.Refs([]azure.ID{id}))
	return id
}

// putInterface writes a network interface that belongs to the call's resource.
func putInterface(c *behaviour.Call, id azure.ID, owner string, configurations []any) error {
	body := behaviour.Object{"location": c.Location(), "properties": behaviour.Object{"ipConfigurations": configurations}}
	if old, ok := c.Get(id); ok && behaviour.Equal(shape(old), shape(body)) {
		return nil
	}
	if err := c.Apply(id, body); err != nil {
		return err
	}
	c.Edit(id, func(doc behaviour.Object) { behaviour.Set(doc, owner, behaviour.Ref(c.ID)) })
	return nil
}

// shape is what of an interface's IP configurations decides whether it has to be
// written again.
func shape(nic behaviour.Object) []any {
	var parts []any
	for _, configuration := range behaviour.Objects(nic, "properties.ipConfigurations") {
		wanted := ""
		if behaviour.Text(configuration, "properties.privateIPAllocationMethod") == "Static" {
			wanted = behaviour.Text(configuration, "properties.privateIPAddress")
		}
		parts = append(parts, behaviour.Text(configuration, "name"), behaviour.RefID(configuration, "properties.subnet").Key(),
			behaviour.Text(configuration, "properties.privateIPAddressVersion"), wanted)
	}
	return parts
}

// removeInterfaces removes the network interfaces that Azure kept for a resource.
func removeInterfaces(c *behaviour.Call) error {
	for _, ref := range behaviour.Objects(c.Old, "properties.networkInterfaces") {
		c.Delete(azure.ID(behaviour.Text(ref, "id")))
	}
	return nil
}

// endpointConnections are the private endpoints that lead to a private link
// service. They are made by the endpoint; the service's owner can approve, reject
// and delete them.
func endpointConnections() behaviour.Type {
	return inside("privateLinkServices/privateEndpointConnections", "properties.privateEndpointConnections", behaviour.Type{
		Own: []string{"properties.privateEndpoint", "properties.privateEndpointLocation", "properties.linkIdentifier"},
		Fill: func(c *behaviour.Call) error {
			if behaviour.At(c.Doc, "properties.privateEndpoint") == nil {
				return malformed("PrivateEndpointConnectionNotFound", "Private endpoint connection %s does not exist and cannot be created by the owner of the private link service.", c.ID)
			}
			behaviour.Default(c.Doc, "properties.privateLinkServiceConnectionState", behaviour.Object{})
			state := "properties.privateLinkServiceConnectionState"
			behaviour.Default(c.Doc, state+".description", "")
			behaviour.Default(c.Doc, state+".actionsRequired", "")
			return choose(c, state+".status", "Pending", "Pending", "Approved", "Rejected", "Disconnected")
		},
	})
}
