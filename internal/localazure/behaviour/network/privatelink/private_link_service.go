package privatelink

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/loadbalancer"
	"kaz/internal/localazure/behaviour/network/schema"
	"kaz/internal/localazure/behaviour/network/vnet"
)

func privateLinkServices() behaviour.Type {
	return schema.Tracked("privateLinkServices", behaviour.Type{
		Style: schema.RetryAfter(10, 10),
		Own:   []string{"properties.alias", "properties.networkInterfaces", "properties.privateEndpointConnections"},
		Fill:  fillLinkService,
		Check: checkLinkService,
		Refuse: func(c *behaviour.Call) error {
			if n := len(behaviour.Objects(c.Old, "properties.privateEndpointConnections")); n > 0 {
				return behaviour.Invalid("PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted",
					"Private link service %s cannot be deleted because it has %d private endpoint connections. Delete them first.", c.ID, n)
			}
			return nil
		},
		Removed: func(c *behaviour.Call) error {
			touchBalancers(c, c.Old)
			return removeInterfaces(c)
		},
	})
}

// touchBalancers changes the etags of a private link service's load balancers, as Azure does when a service is created
// or deleted.
func touchBalancers(c *behaviour.Call, service behaviour.Object) {
	for _, ref := range behaviour.Objects(service, loadbalancer.LinkServiceFrontends) {
		c.Touch(azure.ID(behaviour.Text(ref, "id")).Parent())
	}
}

func fillLinkService(c *behaviour.Call) error {
	if behaviour.Text(c.Doc, "properties.alias") == "" {
		behaviour.Set(c.Doc, "properties.alias", strings.ToLower(c.ID.Name())+"."+c.GUID()+"."+c.Location()+".azure.privatelinkservice")
	}
	return schema.FirstError(
		func() error {
			return schema.List(c, "properties.fqdns", "properties.privateEndpointConnections", "properties.ipConfigurations",
				loadbalancer.LinkServiceFrontends)
		},
		func() error { return schema.Flag(c, "properties.enableProxyProtocol", false) },
		func() error { return schema.ChoosePrimary(c) },
	)
}

func linkConfigurations() behaviour.Type {
	return schema.Inside("privateLinkServices/ipConfigurations", "properties.ipConfigurations", behaviour.Type{
		ReadOnly: true,
		Fill: func(c *behaviour.Call) error {
			if _, err := schema.Reference(c, "properties.subnet", schema.Namespace+"virtualNetworks/subnets"); err != nil {
				return err
			}
			if err := schema.Choose(c, "properties.privateIPAllocationMethod", "Dynamic", "Dynamic", "Static"); err != nil {
				return err
			}
			if behaviour.Text(c.Doc, "properties.privateIPAllocationMethod") == "Dynamic" {
				// Only the network interface shows a dynamic address.
				behaviour.Remove(c.Doc, "properties.privateIPAddress")
			}
			return schema.Choose(c, "properties.privateIPAddressVersion", ipam.IPv4, ipam.IPv4, ipam.IPv6)
		},
	})
}

// mostLinkServices is the limit of private link services for a load balancer.
const mostLinkServices = 8

func checkLinkService(c *behaviour.Call) error {
	configurations := behaviour.Objects(c.Doc, "properties.ipConfigurations")
	const most = 8
	if len(configurations) == 0 {
		return schema.Missing(c, "properties.ipConfigurations")
	}
	if err := schema.CheckLimit(c, "PrivateLinkServiceIpConfigurationCountLimitReached", "IP configurations", len(configurations),
		most); err != nil {
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
		if behaviour.Text(subnet, vnet.LinkPolicies) != "Disabled" {
			return behaviour.Invalid("PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled",
				"Private link service %s cannot be created in a subnet %s since it has private link service network policies enabled.",
				c.ID, id)
		}
	}
	if c.Old == nil {
		touchBalancers(c, c.Doc)
	}
	return linkInterface(c)
}

func checkLinkFrontends(c *behaviour.Call) error {
	refs := behaviour.Objects(c.Doc, loadbalancer.LinkServiceFrontends)
	if len(refs) == 0 && behaviour.Text(c.Doc, "properties.destinationIPAddress") == "" {
		return schema.Missing(c, loadbalancer.LinkServiceFrontends)
	}
	for _, ref := range refs {
		id := azure.ID(behaviour.Text(ref, "id"))
		balancer, ok := c.Get(id.Parent())
		if _, found := c.Get(id); !ok || !found {
			return behaviour.InvalidReference(c.ID, id)
		}
		if !schema.IsStandard(balancer) {
			return behaviour.Invalid("PrivateLinkServiceRequiresStandardLoadBalancer",
				"Private link service %s needs a load balancer of sku Standard: %s is not.", c.ID, id.Parent())
		}
		if loadbalancer.HasAddresses(balancer) {
			return loadbalancer.RefusePrivateLink(id.Parent())
		}
		used := 0
		for _, frontend := range behaviour.Objects(balancer, loadbalancer.FrontendsPath) {
			by := schema.ReferrersAt(c.World,
				id.Parent().Child(loadbalancer.PartType(loadbalancer.FrontendsPath), behaviour.Text(frontend, "name")),
				loadbalancer.LinkServiceFrontends)
			for _, r := range by {
				if !r.Resource.Equal(c.ID) {
					used++
				}
			}
		}
		if used >= mostLinkServices {
			return behaviour.Invalid("PrivateLinkServiceCountLimitReachedForLoadBalancer",
				"Load balancer %s has %d private link services. The limit is %d.", id.Parent(), used, mostLinkServices)
		}
	}
	return nil
}

// linkInterface writes the network interface with the private addresses of a private link service.
func linkInterface(c *behaviour.Call) error {
	id := ownInterface(c, interfaceName(c))
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

// longestInterfaceName is the longest name of a network interface.
const longestInterfaceName = 80

// interfaceName returns a new name for the interface that belongs to the call's resource. A name of up to 80
// characters is allowed for the resource, so the interface has the first ones of a long name.
func interfaceName(c *behaviour.Call) string {
	suffix := ".nic." + c.GUID()
	name := c.ID.Name()
	return name[:min(len(name), longestInterfaceName-len(suffix))] + suffix
}

// ownInterface returns the id of the network interface that Azure creates for a resource, and notes it in the document.
func ownInterface(c *behaviour.Call, name string) azure.ID {
	if refs := behaviour.Objects(c.Doc, "properties.networkInterfaces"); len(refs) > 0 {
		return azure.ID(behaviour.Text(refs[0], "id"))
	}
	id := azure.GroupID(c.ID.Subscription(), c.ID.Group()).Resource(schema.Namespace+"networkInterfaces", name)
	behaviour.Set(c.Doc, "properties.networkInterfaces", behaviour.Refs([]azure.ID{id}))
	return id
}

// putInterface writes a network interface that belongs to the call's resource.
func putInterface(c *behaviour.Call, id azure.ID, owner string, configurations []any) error {
	body := behaviour.Object{"location": c.Location(), "properties": behaviour.Object{"ipConfigurations": configurations}}
	if old, ok := c.Get(id); ok && behaviour.Equal(shape(old), shape(body)) {
		return nil
	}
	if err := c.Apply(behaviour.Itself(), id, body); err != nil {
		return err
	}
	c.Edit(id, func(doc behaviour.Object) { behaviour.Set(doc, owner, behaviour.Ref(c.ID)) })
	return nil
}

// shape returns the fields of an interface's IP configurations that need a write when they change.
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

// removeInterfaces deletes the network interfaces that Azure created for a resource.
func removeInterfaces(c *behaviour.Call) error {
	for _, ref := range behaviour.Objects(c.Old, "properties.networkInterfaces") {
		c.Delete(azure.ID(behaviour.Text(ref, "id")))
	}
	return nil
}

// endpointConnections is the type of the connections of private endpoints to a private link service. The endpoint
// creates them. The owner of the service can approve, reject and delete them.
func endpointConnections() behaviour.Type {
	return schema.Inside("privateLinkServices/privateEndpointConnections", "properties.privateEndpointConnections", behaviour.Type{
		Own: []string{"properties.privateEndpoint", "properties.privateEndpointLocation", "properties.linkIdentifier"},
		Fill: func(c *behaviour.Call) error {
			if behaviour.At(c.Doc, "properties.privateEndpoint") == nil {
				return schema.Malformed("PrivateEndpointConnectionNotFound",
					"Private endpoint connection %s does not exist and cannot be created by the owner of the private link service.", c.ID)
			}
			behaviour.Default(c.Doc, "properties.privateLinkServiceConnectionState", behaviour.Object{})
			state := "properties.privateLinkServiceConnectionState"
			behaviour.Default(c.Doc, state+".description", "")
			behaviour.Default(c.Doc, state+".actionsRequired", "")
			return schema.Choose(c, state+".status", "Pending", "Pending", "Approved", "Rejected", "Disconnected")
		},
	})
}
