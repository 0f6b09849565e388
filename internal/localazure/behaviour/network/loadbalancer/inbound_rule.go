package loadbalancer

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

func inboundRules() behaviour.Type {
	return schema.Inside("loadBalancers/inboundNatRules", inboundRulesPath, behaviour.Type{
		Own:     []string{"properties.backendIPConfiguration"},
		Fill:    fillInboundRule,
		Removed: leavePools,
		Show: func(c *behaviour.Call, view behaviour.Object) {
			if by := schema.ReferrersAt(c.World, c.ID, nicInboundRules); len(by) > 0 {
				behaviour.Set(view, "properties.backendIPConfiguration", behaviour.Ref(by[0].Object))
			}
		},
	})
}

func fillInboundRule(c *behaviour.Call) error {
	return schema.FirstError(
		func() error { return schema.Choose(c, "properties.protocol", "Tcp", "Tcp", "Udp", "All") },
		func() error { return schema.Number(c, "properties.frontendPort", -1, 0, highestPort-1) },
		func() error { return schema.Number(c, "properties.frontendPortRangeStart", -1, 1, highestPort-1) },
		func() error { return schema.Number(c, "properties.frontendPortRangeEnd", -1, 1, highestPort-1) },
		func() error { return schema.Number(c, "properties.backendPort", 0, 0, highestPort) },
		func() error { return idleTimeout(c) },
		func() error {
			return schema.Flags(c, "properties.enableFloatingIP", "properties.enableDestinationServiceEndpoint",
				"properties.enableTcpReset",
				"properties.allowBackendPortConflict")
		},
	)
}

// checkInboundRules checks the references of NAT rules, and their ports against the ports of the other rules.
func checkInboundRules(b *balancer) error {
	seen := traffic{}
	for id, rule := range b.all(rulesPath) {
		frontend := behaviour.RefID(rule, "properties.frontendIPConfiguration")
		port, _ := behaviour.Int(rule, "properties.frontendPort")
		for _, p := range protocolsOf(behaviour.Text(rule, "properties.protocol")) {
			if err := seen.claim(id, frontend, p, port); err != nil {
				return err
			}
		}
	}
	for id, rule := range b.all(inboundRulesPath) {
		frontend, err := inboundReferences(b, id, rule)
		if err != nil {
			return err
		}
		from, isRange := behaviour.Int(rule, "properties.frontendPortRangeStart")
		to, _ := behaviour.Int(rule, "properties.frontendPortRangeEnd")
		if !isRange {
			from, _ = behaviour.Int(rule, "properties.frontendPort")
			to = from
		}
		for _, p := range protocolsOf(behaviour.Text(rule, "properties.protocol")) {
			for port := from; port <= to; port++ {
				if err := seen.claim(id, frontend, p, port); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func inboundReferences(b *balancer, id azure.ID, rule behaviour.Object) (azure.ID, error) {
	frontend, err := b.frontendOf(id, rule)
	if err != nil {
		return "", err
	}
	if behaviour.At(rule, "properties.backendAddressPool") != nil {
		if err := b.require(poolsPath, id, behaviour.RefID(rule, "properties.backendAddressPool")); err != nil {
			return "", err
		}
	}
	return frontend, nil
}

// inboundPools is the type of the NAT pools, which give every instance of a scale set a port. Clients can only write
// them with their load balancer.
func inboundPools() behaviour.Type {
	return schema.Inside("loadBalancers/inboundNatPools", inboundPoolsPath, behaviour.Type{
		ReadOnly: true,
		InUse:    scaleSetsKeep,
		Fill: func(c *behaviour.Call) error {
			return schema.FirstError(
				func() error { return schema.Required(c, "properties.protocol", "Tcp", "Udp", "All") },
				func() error { return schema.Number(c, "properties.frontendPortRangeStart", -1, 1, highestPort-1) },
				func() error { return schema.Number(c, "properties.frontendPortRangeEnd", -1, 1, highestPort) },
				func() error { return schema.Number(c, "properties.backendPort", -1, 1, highestPort) },
				func() error { return idleTimeout(c) },
				func() error { return schema.Flags(c, "properties.enableFloatingIP", "properties.enableTcpReset") },
			)
		},
	})
}
