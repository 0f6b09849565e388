package network

import (
	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

func inboundRules() behaviour.Type {
	return inside("loadBalancers/inboundNatRules", inboundRulesPath, behaviour.Type{
		Own:     []string{"properties.backendIPConfiguration"},
		Fill:    fillInboundRule,
		Removed: leave,
		Show: func(c *behaviour.Call, view behaviour.Object) {
			if by := users(c.World, c.ID, nicInboundRules); len(by) > 0 {
				behaviour.Set(view, "properties.backendIPConfiguration", behaviour.Ref(by[0].Object))
			}
		},
	})
}

func fillInboundRule(c *behaviour.Call) error {
	return first(
		func() error { return choose(c, "properties.protocol", "Tcp", "Tcp", "Udp", "All") },
		func() error { return number(c, "properties.frontendPort", -1, 0, highestPort-1) },
		func() error { return number(c, "properties.frontendPortRangeStart", -1, 1, highestPort-1) },
		func() error { return number(c, "properties.frontendPortRangeEnd", -1, 1, highestPort-1) },
		func() error { return number(c, "properties.backendPort", 0, 0, highestPort) },
		func() error { return idleTimeout(c) },
		func() error {
			return flags(c, "properties.enableFloatingIP", "properties.enableDestinationServiceEndpoint", "properties.enableTcpReset",
				"properties.allowBackendPortConflict")
		},
	)
}

// checkInboundRules checks what NAT rules refer to, and their ports against those
// of the other rules.
func (b *balancer) checkInboundRules() error {
	seen := traffic{}
	for _, rule := range behaviour.Objects(b.Doc, rulesPath) {
		frontend := behaviour.RefID(rule, "properties.frontendIPConfiguration")
		port, _ := behaviour.Int(rule, "properties.frontendPort")
		for _, p := range protocolsOf(behaviour.Text(rule, "properties.protocol")) {
			if err := seen.claim(b.ID.Child(segmentOf(rulesPath), behaviour.Text(rule, "name")), frontend, p, port); err != nil {
				return err
			}
		}
	}
	return b.each(inboundRulesPath, func(id azure.ID, rule behaviour.Object) error {
		frontend, err := b.inboundReferences(id, rule)
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
		return nil
	})
}

func (b *balancer) inboundReferences(id azure.ID, rule behaviour.Object) (azure.ID, error) {
	frontend := behaviour.RefID(rule, "properties.frontendIPConfiguration")
	if frontend == "" {
		return "", malformed("MissingJsonReferenceId", "Value for reference id is missing. Path properties.frontendIPConfiguration of resource %s.", id)
	}
	if err := b.must(frontendsPath, id, frontend); err != nil {
		return "", err
	}
	if behaviour.At(rule, "properties.backendAddressPool") != nil {
		if err := b.must(poolsPath, id, behaviour.RefID(rule, "properties.backendAddressPool")); err != nil {
			return "", err
		}
	}
	return frontend, nil
}

// inboundPools give every instance of a scale set a port; Azure knows them only
// inside of their load balancer.
func inboundPools() behaviour.Type {
	return inside("loadBalancers/inboundNatPools", inboundPoolsPath, behaviour.Type{
		ReadOnly: true,
		InUse:    scaleSetsKeep,
		Fill: func(c *behaviour.Call) error {
			return first(
				func() error { return required(c, "properties.protocol", "Tcp", "Udp", "All") },
				func() error { return number(c, "properties.frontendPortRangeStart", -1, 1, highestPort-1) },
				func() error { return number(c, "properties.frontendPortRangeEnd", -1, 1, highestPort) },
				func() error { return number(c, "properties.backendPort", -1, 1, highestPort) },
				func() error { return idleTimeout(c) },
				func() error { return flags(c, "properties.enableFloatingIP", "properties.enableTcpReset") },
			)
		},
	})
}
