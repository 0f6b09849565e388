package network

import (
	"slices"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// The places where a pool names its virtual network.
const (
	poolNetwork    = "properties.backendAddressPools.properties.virtualNetwork"
	addressNetwork = "properties.backendAddressPools.properties.loadBalancerBackendAddresses.properties.virtualNetwork"
)

// mostRulesPerConfiguration is Azure's limit of rules that lead to one IP
// configuration.
const mostRulesPerConfiguration = 300

func backendPools() behaviour.Type {
	return inside("loadBalancers/backendAddressPools", poolsPath, behaviour.Type{
		Style: waiting(1, 1),
		Own: []string{"properties.backendIPConfigurations", "properties.loadBalancingRules", "properties.outboundRules",
			"properties.outboundRule", "properties.inboundNatRules"},
		Fill:    fillBackendPool,
		InUse:   scaleSetsKeep,
		Refuse:  refusePoolInUse,
		Removed: leave,
		Show: func(c *behaviour.Call, view behaviour.Object) {
			show(view, "properties.backendIPConfigurations", users(c.World, c.ID, nicPools))
		},
	})
}

func fillBackendPool(c *behaviour.Call) error {
	if err := list(c, "properties.loadBalancerBackendAddresses"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, address := range behaviour.Objects(c.Doc, "properties.loadBalancerBackendAddresses") {
		name := behaviour.Text(address, "name")
		if name == "" {
			return missing(c, "properties.loadBalancerBackendAddresses.name")
		}
		if seen[name] {
			return malformed("DuplicateResourceName", "Backend address pool %s has two backend addresses with the same name (%s).", c.ID, name)
		}
		seen[name] = true
		if err := checkBackendAddress(c, address); err != nil {
			return err
		}
	}
	return nil
}

// checkBackendAddress checks one address of a pool by IP: it has a virtual network,
// its own or the pool's, and is in it.
func checkBackendAddress(c *behaviour.Call, address behaviour.Object) error {
	text := behaviour.Text(address, "properties.ipAddress")
	if text == "" {
		return nil
	}
	ip, ok := parseAddress(text)
	if !ok {
		return behaviour.Invalid("InvalidIPAddressFormat", "IP address %s of backend address %s in pool %s is not formatted correctly.", text, behaviour.Text(address, "name"), c.ID)
	}
	network := behaviour.RefID(address, "properties.virtualNetwork")
	if network == "" {
		network = behaviour.RefID(address, "properties.subnet").Parent()
	}
	if network == "" {
		network = behaviour.RefID(c.Doc, "properties.virtualNetwork")
	}
	if network == "" {
		return behaviour.Invalid("LoadBalancerBackendAddressMissingVirtualNetwork", "Backend address %s in pool %s has an IP address but neither it nor the pool has a virtual network.", behaviour.Text(address, "name"), c.ID)
	}
	doc, ok := c.Get(network)
	if !ok {
		return behaviour.InvalidReference(c.ID, network)
	}
	space, err := parsePrefixes(network, addressSpace(doc))
	if err != nil {
		return err
	}
	if !holds(space, ip) {
		return behaviour.Invalid("LoadBalancerBackendAddressNotInVirtualNetwork", "IP address %s of backend address %s in pool %s is not in the address space of virtual network %s.", ip, behaviour.Text(address, "name"), c.ID, network)
	}
	return nil
}

// refusePoolInUse refuses to delete a pool that a rule of its load balancer needs.
func refusePoolInUse(c *behaviour.Call) error {
	for _, path := range []string{rulesPath, inboundRulesPath, outboundRulesPath} {
		for _, rule := range behaviour.Objects(c.Parent, path) {
			if slices.ContainsFunc(partsOf(rule), c.ID.Equal) {
				return behaviour.Invalid("InUseBackendAddressPoolCannotBeDeleted", "Backend address pool %s cannot be deleted because it is in use by the following resources: %s.", c.ID, c.ID.Parent().Child(segmentOf(path), behaviour.Text(rule, "name")))
			}
		}
	}
	return nil
}

// checkPools checks the pools that have members: at most 300 rules lead to each of those, from
// all load balancers.
func (b *balancer) checkPools() error {
	if hasAddresses(b.Doc) && linkedBy(b.Call) {
		return notBeforeAddresses(b.ID)
	}
	rules, elsewhere := rulesByPool(b.Doc), b.mostRulesElsewhere()
	return b.each(poolsPath, func(id azure.ID, pool behaviour.Object) error {
		if listsAddresses(pool) {
			if by := users(b.World, id, nicPools); len(by) > 0 {
				return mixedPool(id, by[0].Object)
			}
		}
		if rules[id.Key()] == 0 || rules[id.Key()]+elsewhere <= mostRulesPerConfiguration {
			return nil // whatever other pool a member is in
		}
		for _, member := range users(b.World, id, nicPools) {
			if n := b.rulesTo(member, rules); n > mostRulesPerConfiguration {
				return tooManyRules(member.Object, n)
			}
		}
		return nil
	})
}

// mostRulesElsewhere is how many rules lead to one pool of another load balancer at most.
func (b *balancer) mostRulesElsewhere() int {
	most := 0
	for id, other := range behaviour.Everywhere(b.World, namespace+"loadBalancers") {
		if id.Equal(b.ID) {
			continue
		}
		for _, n := range rulesByPool(other) {
			most = max(most, n)
		}
	}
	return most
}

// rulesTo counts the rules that lead to a member of pools; own are those of this load balancer.
func (b *balancer) rulesTo(member behaviour.Referrer, own map[string]int) int {
	n := 0
	doc, _ := b.Get(member.Resource)
	for _, pool := range poolsOf(behaviour.Named(doc, "properties.ipConfigurations", member.Object.Name())) {
		if pool.Parent().Equal(b.ID) {
			n += own[pool.Key()]
			continue
		}
		other, _ := b.Get(pool.Parent())
		n += rulesByPool(other)[pool.Key()]
	}
	return n
}

// hasAddresses reports whether pools of a load balancer list addresses.
func hasAddresses(balancer behaviour.Object) bool {
	return slices.ContainsFunc(behaviour.Objects(balancer, poolsPath), listsAddresses)
}

func listsAddresses(pool behaviour.Object) bool {
	return slices.ContainsFunc(behaviour.Objects(pool, "properties.loadBalancerBackendAddresses"), func(address behaviour.Object) bool {
		return behaviour.Text(address, "properties.ipAddress") != ""
	})
}

// mixedPool: a pool has addresses or network interfaces. Seen in
// github.com/hashicorp/terraform-provider-azurerm/issues/25962.
func mixedPool(pool, configuration azure.ID) error {
	return behaviour.Invalid("CannotMixIPBasedAddressesAndIPConfigurationsOnLoadBalancerBackendAddressPool", "Backend address pool %s cannot have IP configuration %s: it lists addresses by (virtualNetwork, ipAddress) or (subnet, ipAddress).", pool, configuration)
}

// scaleSetsInPools are the scale sets that a load balancer's pools have machines of, or
// will have by the set's model.
func scaleSetsInPools(c *behaviour.Call) []azure.ID {
	var sets []azure.ID
	for _, pool := range behaviour.Objects(c.Doc, poolsPath) {
		for _, r := range c.Referrers(c.ID.Child(segmentOf(poolsPath), behaviour.Text(pool, "name"))) {
			if set := scaleSetOf(r.Resource); set != "" && !slices.ContainsFunc(sets, set.Equal) {
				sets = append(sets, set)
			}
		}
	}
	return sets
}

func tooManyRules(configuration azure.ID, have int) error {
	return behaviour.Invalid("LoadBalancerRuleCountLimitReachedForNic", "IP configuration %s is associated with %d load balancer rules. The limit is %d.", configuration, have, mostRulesPerConfiguration)
}

// rulesByPool counts the rules that lead to each pool.
func rulesByPool(balancer behaviour.Object) map[string]int {
	count := map[string]int{}
	for _, rule := range behaviour.Objects(balancer, rulesPath) {
		for _, ref := range behaviour.Objects(rule, "properties.backendAddressPools") {
			count[azure.ID(behaviour.Text(ref, "id")).Key()]++
		}
	}
	return count
}

// CheckPools checks the load balancer pools of one IP configuration: they exist and
// list no addresses, at most 300 rules lead to it, each of its ports is of one rule, and no
// two load balancers are both public or both internal.
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
			code := "NetworkInterfaceCannotUseMultipleLoadBalancersOfSameType"
			if scaleSetOf(configuration) != "" {
				code = "VMScaleSetCannotUseMultipleLoadBalancersOfSameType"
			}
			return behaviour.Invalid(code, "IP configuration %s cannot be in pools of load balancers %s and %s: it can have at most one public and one internal load balancer.", configuration, other, balancerID)
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

// migrateToIPBased turns pools of network interfaces into pools of addresses.
func migrateToIPBased(c *behaviour.Call) (any, error) {
	if linkedBy(c) {
		return nil, notBeforeAddresses(c.ID)
	}
	asked := behaviour.Texts(c.Body, "pools")
	migrated := []any{}
	for _, pool := range behaviour.Objects(c.Doc, poolsPath) {
		name := behaviour.Text(pool, "name")
		if len(asked) > 0 && !slices.Contains(asked, name) {
			continue
		}
		migrated = append(migrated, name)
		migratePool(c, c.ID.Child(segmentOf(poolsPath), name), pool)
	}
	return behaviour.Object{"migratedPools": behaviour.Object{"migratedPools": migrated}}, nil
}

func migratePool(c *behaviour.Call, id azure.ID, pool behaviour.Object) {
	addresses := behaviour.Array(pool, "properties.loadBalancerBackendAddresses")
	for _, r := range users(c.World, id, nicPools) {
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
	forget(c.World, id)
}
