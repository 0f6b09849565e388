package loadbalancer

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/schema"
)

// The paths at which network interfaces refer to pools and NAT rules.
const (
	nicPools        = "properties.ipConfigurations.properties.loadBalancerBackendAddressPools"
	nicInboundRules = "properties.ipConfigurations.properties.loadBalancerInboundNatRules"
)

// The paths at which a pool refers to its virtual network.
const (
	PoolNetworkPath    = "properties.backendAddressPools.properties.virtualNetwork"
	AddressNetworkPath = "properties.backendAddressPools.properties.loadBalancerBackendAddresses.properties.virtualNetwork"
)

// mostRulesPerConfiguration is Azure's limit of rules for one IP configuration.
const mostRulesPerConfiguration = 300

func backendPools() behaviour.Type {
	return schema.Inside("loadBalancers/backendAddressPools", poolsPath, behaviour.Type{
		Style: schema.RetryAfter(1, 1),
		Own: []string{"properties.backendIPConfigurations", "properties.loadBalancingRules", "properties.outboundRules",
			"properties.outboundRule", "properties.inboundNatRules"},
		Fill:    fillBackendPool,
		InUse:   scaleSetsKeep,
		Refuse:  refusePoolInUse,
		Removed: leavePools,
		Show: func(c *behaviour.Call, view behaviour.Object) {
			by := schema.ReferrersAt(c.World, c.ID, nicPools)
			schema.ShowReferences(view, "properties.backendIPConfigurations", by)
			showInterfaces(c, view, by)
		},
	})
}

// showInterfaces shows the network interfaces in a pool a second time, as backend addresses. The name of an instance of a
// scale set is a GUID. The name of another interface is composed of its group, interface and IP configuration. Source:
// documents of load balancers that users published.
func showInterfaces(c *behaviour.Call, view behaviour.Object, by []behaviour.Referrer) {
	addresses := behaviour.Array(view, "properties.loadBalancerBackendAddresses")
	for _, r := range by {
		name := r.Resource.Group() + "_" + r.Resource.Name() + r.Object.Name()
		if schema.ScaleSetOf(r.Resource) != "" {
			sum := sha256.Sum256([]byte(c.ID.Key() + r.Object.Key()))
			name = fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
		}
		id := c.ID.Child("loadBalancerBackendAddresses", name)
		addresses = append(addresses, behaviour.Object{
			"name": name, "id": string(id), "etag": view["etag"], "type": id.Type(),
			"properties": behaviour.Object{"provisioningState": "Succeeded",
				"networkInterfaceIPConfiguration": behaviour.Ref(r.Object)},
		})
	}
	if len(by) > 0 {
		behaviour.Set(view, "properties.loadBalancerBackendAddresses", addresses)
	}
}

func fillBackendPool(c *behaviour.Call) error {
	if err := schema.List(c, "properties.loadBalancerBackendAddresses"); err != nil {
		return err
	}
	dropInterfaces(c.Doc)
	seen := map[string]bool{}
	for _, address := range behaviour.Objects(c.Doc, "properties.loadBalancerBackendAddresses") {
		name := behaviour.Text(address, "name")
		if name == "" {
			return schema.Missing(c, "properties.loadBalancerBackendAddresses.name")
		}
		if seen[name] {
			return schema.Malformed("DuplicateResourceName", "Backend address pool %s has two backend addresses with the same name (%s).",
				c.ID, name)
		}
		seen[name] = true
		if err := checkBackendAddress(c, address); err != nil {
			return err
		}
	}
	return nil
}

// dropInterfaces removes from what a client sends back the members that showInterfaces shows.
func dropInterfaces(pool behaviour.Object) {
	const path = "properties.loadBalancerBackendAddresses"
	addresses := behaviour.Array(pool, path)
	sent := slices.DeleteFunc(slices.Clone(addresses), func(x any) bool {
		address, _ := x.(behaviour.Object)
		return behaviour.At(address, "properties.networkInterfaceIPConfiguration") != nil
	})
	switch {
	case len(sent) == len(addresses):
	case len(sent) == 0:
		behaviour.Remove(pool, path)
	default:
		behaviour.Set(pool, path, sent)
	}
}

// takeAddress gives a backend address of a global load balancer the address of the regional frontend that it refers to.
func takeAddress(c *behaviour.Call, address behaviour.Object, frontend azure.ID) error {
	doc, there := c.Get(frontend)
	if !there {
		return behaviour.InvalidReference(c.ID, frontend)
	}
	public, _ := c.Get(behaviour.RefID(doc, "properties.publicIPAddress"))
	if ip := behaviour.Text(public, "properties.ipAddress"); ip != "" {
		behaviour.Set(address, "properties.ipAddress", ip)
	}
	return nil
}

// checkBackendAddress checks an IP address of a pool. It must be in the virtual network of the address or of the pool, unless it is that of
// a frontend.
func checkBackendAddress(c *behaviour.Call, address behaviour.Object) error {
	if frontend := behaviour.RefID(address, "properties.loadBalancerFrontendIPConfiguration"); frontend != "" {
		return takeAddress(c, address, frontend)
	}
	text := behaviour.Text(address, "properties.ipAddress")
	if text == "" {
		return nil
	}
	ip, ok := ipam.Parse(text)
	if !ok {
		return behaviour.Invalid("InvalidIPAddressFormat", "IP address %s of backend address %s in pool %s is not formatted correctly.",
			text, behaviour.Text(address, "name"), c.ID)
	}
	network := behaviour.RefID(address, "properties.virtualNetwork")
	if network == "" {
		network = behaviour.RefID(address, "properties.subnet").Parent()
	}
	if network == "" {
		network = behaviour.RefID(c.Doc, "properties.virtualNetwork")
	}
	if network == "" {
		return behaviour.Invalid("LoadBalancerBackendAddressMissingVirtualNetwork",
			"Backend address %s in pool %s has an IP address but neither it nor the pool has a virtual network.",
			behaviour.Text(address, "name"), c.ID)
	}
	doc, ok := c.Get(network)
	if !ok {
		return behaviour.InvalidReference(c.ID, network)
	}
	space, err := ipam.ParsePrefixes(network, ipam.AddressSpace(doc))
	if err != nil {
		return err
	}
	if !ipam.Holds(space, ip) {
		return behaviour.Invalid("LoadBalancerBackendAddressNotInVirtualNetwork",
			"IP address %s of backend address %s in pool %s is not in the address space of virtual network %s.", ip,
			behaviour.Text(address, "name"), c.ID, network)
	}
	return nil
}

// refusePoolInUse refuses to delete a pool that a rule of its load balancer uses.
func refusePoolInUse(c *behaviour.Call) error {
	for _, path := range []string{rulesPath, inboundRulesPath, outboundRulesPath} {
		for _, rule := range behaviour.Objects(c.Parent, path) {
			if slices.ContainsFunc(partsOf(rule), c.ID.Equal) {
				return behaviour.Invalid("InUseBackendAddressPoolCannotBeDeleted",
					"Backend address pool %s cannot be deleted because it is in use by the following resources: %s.", c.ID,
					c.ID.Parent().Child(PartType(path), behaviour.Text(rule, "name")))
			}
		}
	}
	return nil
}

// checkPools checks the limit of rules for each member of the pools. Rules of all load balancers count.
func checkPools(b *balancer) error {
	if HasAddresses(b.Doc) && HasPrivateLink(b.Call) {
		return RefusePrivateLink(b.ID)
	}
	rules, elsewhere := rulesByPool(b.Doc), mostRulesElsewhere(b)
	for id, pool := range b.all(poolsPath) {
		if listsAddresses(pool) {
			if by := schema.ReferrersAt(b.World, id, nicPools); len(by) > 0 {
				return mixedPool(id, by[0].Object)
			}
		}
		if rules[id.Key()] == 0 || rules[id.Key()]+elsewhere <= mostRulesPerConfiguration {
			continue // no member can be over the limit
		}
		for _, member := range schema.ReferrersAt(b.World, id, nicPools) {
			if n := rulesTo(b, member, rules); n > mostRulesPerConfiguration {
				return tooManyRules(member.Object, n)
			}
		}
	}
	return nil
}

// mostRulesElsewhere returns the highest number of rules of a pool of another load balancer.
func mostRulesElsewhere(b *balancer) int {
	most := 0
	for id, other := range behaviour.Everywhere(b.World, schema.Namespace+"loadBalancers") {
		if id.Equal(b.ID) {
			continue
		}
		for _, n := range rulesByPool(other) {
			most = max(most, n)
		}
	}
	return most
}

// rulesTo returns the number of rules for a member of pools. own has the rules of this load balancer by pool.
func rulesTo(b *balancer, member behaviour.Referrer, own map[string]int) int {
	n := 0
	doc, _ := b.Get(member.Resource)
	for _, pool := range PoolsOf(behaviour.Named(doc, "properties.ipConfigurations", member.Object.Name())) {
		if pool.Parent().Equal(b.ID) {
			n += own[pool.Key()]
			continue
		}
		other, _ := b.Get(pool.Parent())
		n += rulesByPool(other)[pool.Key()]
	}
	return n
}

// HasAddresses reports whether a pool of a load balancer lists IP addresses.
func HasAddresses(balancer behaviour.Object) bool {
	return slices.ContainsFunc(behaviour.Objects(balancer, poolsPath), listsAddresses)
}

func listsAddresses(pool behaviour.Object) bool {
	return slices.ContainsFunc(behaviour.Objects(pool, "properties.loadBalancerBackendAddresses"), func(address behaviour.Object) bool {
		return behaviour.Text(address, "properties.ipAddress") != ""
	})
}

// mixedPool returns the error for a pool with both IP addresses and network interfaces. Seen in
// github.com/hashicorp/terraform-provider-azurerm/issues/25962.
func mixedPool(pool, configuration azure.ID) error {
	return behaviour.Invalid("CannotMixIPBasedAddressesAndIPConfigurationsOnLoadBalancerBackendAddressPool",
		"Backend address pool %s cannot have IP configuration %s: it lists addresses by (virtualNetwork, ipAddress) or (subnet, "+
			"ipAddress).", pool, configuration)
}

// scaleSetsInPools returns the scale sets with their model or an instance in the pools of a load balancer.
func scaleSetsInPools(c *behaviour.Call) []azure.ID {
	var sets []azure.ID
	for _, pool := range behaviour.Objects(c.Doc, poolsPath) {
		for _, r := range c.Referrers(c.ID.Child(PartType(poolsPath), behaviour.Text(pool, "name"))) {
			if set := schema.ScaleSetOf(r.Resource); set != "" && !slices.ContainsFunc(sets, set.Equal) {
				sets = append(sets, set)
			}
		}
	}
	return sets
}

func tooManyRules(configuration azure.ID, have int) error {
	return behaviour.Invalid("LoadBalancerRuleCountLimitReachedForNic",
		"IP configuration %s is associated with %d load balancer rules. The limit is %d.", configuration, have, mostRulesPerConfiguration)
}

// rulesByPool returns the number of rules of each pool.
func rulesByPool(balancer behaviour.Object) map[string]int {
	count := map[string]int{}
	for _, rule := range behaviour.Objects(balancer, rulesPath) {
		for _, ref := range behaviour.Objects(rule, "properties.backendAddressPools") {
			count[azure.ID(behaviour.Text(ref, "id")).Key()]++
		}
	}
	return count
}

// CheckPools checks the load balancer pools of one IP configuration. The pools exist and list no addresses. At most 300
// rules apply to the configuration, with one rule for each backend port. It has at most one public and one internal
// load balancer.
func CheckPools(w behaviour.World, configuration azure.ID, pools []azure.ID) error {
	rules := 0
	kinds, of := map[bool]azure.ID{}, map[string][]azure.ID{}
	for _, pool := range pools {
		balancerID := pool.Parent()
		doc, ok := w.Get(balancerID)
		found := behaviour.Named(doc, poolsPath, pool.Name())
		if !ok || found == nil {
			return behaviour.InvalidReference(configuration, pool)
		}
		if listsAddresses(found) {
			return mixedPool(pool, configuration)
		}
		rules += rulesByPool(doc)[pool.Key()]
		kind := internal(doc)
		if other := kinds[kind]; other != "" && !other.Equal(balancerID) {
			code := "NetworkInterfaceUsesMultipleLoadBalancersOfSameType"
			if schema.ScaleSetOf(configuration) != "" {
				code = "VMScaleSetCannotUseMultipleLoadBalancersOfSameType"
			}
			return behaviour.Invalid(code,
				"IP configuration %s cannot be in pools of load balancers %s and %s: it can have at most one public and one "+
					"internal load balancer.", configuration, other, balancerID)
		}
		kinds[kind] = balancerID
		of[balancerID.Key()] = append(of[balancerID.Key()], pool)
		if err := checkBackendPorts(configuration, balancerID, doc, of[balancerID.Key()]); err != nil {
			return err
		}
	}
	if rules > mostRulesPerConfiguration {
		return tooManyRules(configuration, rules)
	}
	return nil
}

// migrateToIPBased turns pools of network interfaces into pools of IP addresses.
func migrateToIPBased(c *behaviour.Call) (any, error) {
	if HasPrivateLink(c) {
		return nil, RefusePrivateLink(c.ID)
	}
	asked := behaviour.Texts(c.Body, "pools")
	migrated := []any{}
	for _, pool := range behaviour.Objects(c.Doc, poolsPath) {
		name := behaviour.Text(pool, "name")
		if len(asked) > 0 && !slices.Contains(asked, name) {
			continue
		}
		migrated = append(migrated, name)
		migratePool(c, c.ID.Child(PartType(poolsPath), name), pool)
	}
	return behaviour.Object{"migratedPools": migrated}, nil
}

// members returns the network interfaces in the pools of a load balancer, as a view.
func members(c *behaviour.Call) (any, error) {
	all, seen := []any{}, map[string]bool{}
	for _, pool := range behaviour.Objects(c.Old, poolsPath) {
		for _, r := range schema.ReferrersAt(c.World, c.ID.Child(PartType(poolsPath), behaviour.Text(pool, "name")), nicPools) {
			if view, there := c.View(r.Resource); there && !seen[r.Resource.Key()] {
				seen[r.Resource.Key()] = true
				all = append(all, view)
			}
		}
	}
	return behaviour.Object{"value": all}, nil
}

func migratePool(c *behaviour.Call, id azure.ID, pool behaviour.Object) {
	addresses := behaviour.Array(pool, "properties.loadBalancerBackendAddresses")
	for _, r := range schema.ReferrersAt(c.World, id, nicPools) {
		nic, _ := c.Get(r.Resource)
		configuration := behaviour.Named(nic, "properties.ipConfigurations", r.Object.Name())
		address := behaviour.Text(configuration, "properties.privateIPAddress")
		if address == "" {
			continue
		}
		network := behaviour.RefID(configuration, "properties.subnet").Parent()
		behaviour.Default(pool, "properties.virtualNetwork", behaviour.Ref(network))
		addresses = append(addresses, behaviour.Object{
			"name":       r.Resource.Name() + "-" + r.Object.Name() + "-" + address,
			"properties": behaviour.Object{"ipAddress": address},
		})
	}
	behaviour.Set(pool, "properties.loadBalancerBackendAddresses", addresses)
	removeReferences(c.World, id)
}

// LinkServiceFrontends is the path at which a private link service refers to frontends.
const LinkServiceFrontends = "properties.loadBalancerFrontendIpConfigurations"

// RefusePrivateLink returns the error for a private link service with a load balancer of IP addresses: it needs network
// interfaces. Seen in github.com/MicrosoftDocs/azure-docs/issues/75134.
func RefusePrivateLink(balancer azure.ID) error {
	return behaviour.Invalid("PrivateLinkServiceIsNotSupportedForIPBasedLoadBalancer",
		"Private link service is not supported for load balancer %s with backend addresses set by (virtualNetwork, ipAddress) or "+
			"(subnet, ipAddress).", balancer)
}

// HasPrivateLink reports whether a private link service uses a frontend of the load balancer.
func HasPrivateLink(c *behaviour.Call) bool {
	return slices.ContainsFunc(behaviour.Objects(c.Doc, FrontendsPath), func(frontend behaviour.Object) bool {
		return len(schema.ReferrersAt(c.World, c.ID.Child(PartType(FrontendsPath), behaviour.Text(frontend, "name")),
			LinkServiceFrontends)) > 0
	})
}

// PoolsOf returns the load balancer pools of an IP configuration.
func PoolsOf(configuration behaviour.Object) []azure.ID {
	var pools []azure.ID
	for _, ref := range behaviour.Objects(configuration, "properties.loadBalancerBackendAddressPools") {
		pools = append(pools, azure.ID(behaviour.Text(ref, "id")))
	}
	return pools
}
