package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	"kaz/internal/azure"
	"kaz/internal/plan/rights"
)

// existingResource is a resource that the definition says to exist.
type existingResource struct {
	field string
	id    azure.ID
	// action is what the caller must be allowed to do at the resource, "" if the caller only reads it.
	action string
	// check checks the document of the resource, nil for no further check.
	check func(ctx context.Context, field string, doc azure.Document)
}

const (
	assignIdentity = "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action"
	joinSubnet     = "Microsoft.Network/virtualNetworks/subnets/join/action"
	joinRoutes     = "Microsoft.Network/routeTables/join/action"
	assignRole     = "Microsoft.Authorization/roleAssignments/write"
)

// existingResources are the resources that the definition says to exist, but for images.
func (c *checker) existingResources() []existingResource {
	s := c.p.Definition.Cluster.Spec
	all := []existingResource{
		{field: "spec.network.routeTableID", id: azure.ID(s.Network.RouteTableID)},
		{field: "spec.keyVault.id", id: azure.ID(s.KeyVault.ID), action: "Microsoft.KeyVault/vaults/secrets/write"},
		{field: "spec.storage.id", id: azure.ID(s.Storage.ID),
			action: "Microsoft.Storage/storageAccounts/blobServices/containers/write"},
		{field: "spec.identity.controlPlane.id", id: azure.ID(s.Identity.ControlPlane.ID), action: assignIdentity},
		{field: "spec.identity.nodes.id", id: azure.ID(s.Identity.Nodes.ID), action: assignIdentity},
		{field: "spec.network.subnets.controlPlane.id", id: azure.ID(s.Network.Subnets.ControlPlane.ID), action: joinSubnet,
			check: c.controlPlaneSubnet},
		{field: "spec.network.subnets.nodes.id", id: azure.ID(s.Network.Subnets.Nodes.ID), action: joinSubnet, check: c.subnet},
	}
	if s.Network.Subnets.Nodes.ID == "" { // the subnets that kaz makes refer to the table
		all[0].action = joinRoutes
	}
	for i, registry := range s.Identity.RegistryIDs {
		r := existingResource{field: fmt.Sprintf("spec.identity.registryIDs[%d]", i), id: azure.ID(registry)}
		if s.Identity.Roles != "None" {
			r.action = assignRole
		}
		all = append(all, r)
	}
	for _, pool := range c.p.Definition.Pools {
		all = append(all, existingResource{field: "NodePool " + pool.Metadata.Name + ": spec.subnet.id", id: azure.ID(pool.Spec.Subnet.ID),
			action: joinSubnet, check: c.subnet})
	}
	return slices.DeleteFunc(all, func(r existingResource) bool { return r.id == "" })
}

// existing checks what the definition says to exist: that it does, that the caller may use it, and that it fits.
func (c *checker) existing(ctx context.Context) {
	for _, r := range c.existingResources() {
		doc, err := c.Azure.Get(ctx, r.id)
		switch {
		case azure.IsNotFound(err):
			c.missing(r.field, r.id)
		case err != nil:
			c.unread("existing resources", err)
		default:
			c.mayUse(ctx, r)
			if r.check != nil {
				r.check(ctx, r.field, doc)
			}
		}
	}
}

func (c *checker) missing(field string, id azure.ID) {
	c.Add("existing resources", "make it, correct the id, or leave the field out so that kaz makes one", "%s: %s does not exist", field, id)
}

// mayUse checks that the caller may use a resource. Azure asks for that right at the resource itself, which can be in another group.
func (c *checker) mayUse(ctx context.Context, r existingResource) {
	if r.action == "" || r.id.Under(c.p.Names.Group()) {
		return
	}
	granted, err := permissionsAt(ctx, c.Azure, r.id)
	if err != nil {
		c.unread("rights", err)
		return
	}
	if !rights.Allowed(granted, r.action) {
		c.Add("rights", fmt.Sprintf("ask an owner for a role with %s at %s", r.action, r.id),
			"%s: the caller may not: %s", r.field, r.action)
	}
}

// subnetFacts are what is looked at of a subnet.
type subnetFacts struct {
	ID         azure.ID `json:"id"`
	Properties struct {
		AddressPrefix    string            `json:"addressPrefix"`
		AddressPrefixes  []string          `json:"addressPrefixes"`
		IPConfigurations []json.RawMessage `json:"ipConfigurations"`
		NATGateway       *azure.Reference  `json:"natGateway"`
		RouteTable       *azure.Reference  `json:"routeTable"`
	} `json:"properties"`
}

// prefix is the first range of IPv4 of a subnet.
func (s subnetFacts) prefix() (netip.Prefix, bool) {
	for _, text := range append([]string{s.Properties.AddressPrefix}, s.Properties.AddressPrefixes...) {
		if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is4() {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// subnet checks that a subnet has room for the machines of the cluster, and what the definition says of its routes.
func (c *checker) subnet(_ context.Context, field string, doc azure.Document) {
	var s subnetFacts
	if json.Unmarshal(doc, &s) != nil {
		return
	}
	network := c.p.Definition.Cluster.Spec.Network
	table := s.Properties.RouteTable
	if want := network.RouteTableID; want != "" && (table == nil || !table.ID.Equal(azure.ID(want))) {
		c.Add("subnets", "give the subnet this route table, which gets the routes to pods",
			"%s: subnet %s does not have the route table of spec.network.routeTableID, %s", field, s.ID.Name(), want)
	}
	if network.Outbound.Type == "UserDefinedRouting" && table == nil && s.Properties.NATGateway == nil {
		c.Add("subnets", "give the subnet a route table with a route to the firewall, or a NAT gateway, or choose another outbound type",
			"%s: spec.network.outbound.type is UserDefinedRouting, and subnet %s has neither a route table nor a NAT gateway", field,
			s.ID.Name())
	}
	prefix, known := s.prefix()
	if !known {
		return
	}
	const reserved = 5
	free := 1<<(32-prefix.Bits()) - reserved - len(s.Properties.IPConfigurations)
	if need := c.machinesIn(s.ID); need > free {
		c.Add("subnets", "choose a larger subnet, or fewer machines", "%s: subnet %s has %d free addresses, and the cluster needs %d",
			field, s.ID.Name(), free, need)
	}
}

// controlPlaneSubnet checks the subnet of the control plane, and the address of the internal load balancer in it.
func (c *checker) controlPlaneSubnet(ctx context.Context, field string, doc azure.Document) {
	c.subnet(ctx, field, doc)
	var s subnetFacts
	r, u := c.resource("api", "internal")
	if json.Unmarshal(doc, &s) != nil || r == nil || c.exists(u.Name, "internal") {
		return
	}
	const at = "spec.network.apiServer.internalIP"
	text := c.p.Definition.Cluster.Spec.Network.APIServer.InternalIP
	prefix, known := s.prefix()
	ip, err := netip.ParseAddr(text)
	if !known || err != nil {
		return
	}
	if !prefix.Contains(ip) {
		c.Add("subnets", "set "+at+" to a free address of "+prefix.String(), "%s: %s is not in subnet %s", at, text, s.ID.Name())
		return
	}
	answer, err := azure.Do(ctx, c.Azure, azure.Request{
		Verb: azure.Get, ID: s.ID.Parent() + "/CheckIPAddressAvailability", Parameters: map[string]string{"ipAddress": text},
	})
	if err != nil {
		c.unread("subnets", err)
		return
	}
	var is struct {
		Available *bool    `json:"available"`
		Others    []string `json:"availableIPAddresses"`
	}
	if json.Unmarshal(answer, &is) == nil && is.Available != nil && !*is.Available {
		c.Add("subnets", fmt.Sprintf("set %s to a free address such as %v", at, is.Others), "%s: %s is in use", at, text)
	}
}

// machinesIn is the number of machines of the definition in a subnet that exists.
func (c *checker) machinesIn(subnet azure.ID) int {
	s := c.p.Definition.Cluster.Spec
	n := 0
	if subnet.Equal(azure.ID(s.Network.Subnets.ControlPlane.ID)) {
		n += s.ControlPlane.Replicas + 1 // and the load balancer
	}
	for _, pool := range c.p.Definition.Pools {
		id := pool.Spec.Subnet.ID
		if id == "" {
			id = s.Network.Subnets.Nodes.ID
		}
		if subnet.Equal(azure.ID(id)) {
			n += most(pool)
		}
	}
	return n
}
