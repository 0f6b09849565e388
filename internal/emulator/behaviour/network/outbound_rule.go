package network

import (
	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

func outboundRules() behaviour.Type {
	return inside("loadBalancers/outboundRules", outboundRulesPath, behaviour.Type{
		ReadOnly: true,
		Fill:     fillOutboundRule,
	})
}

func fillOutboundRule(c *behaviour.Call) error {
	const longestIdle, mostPorts, portStep = 120, 64000, 8
	err := first(
		func() error { return required(c, "properties.protocol", "Tcp", "Udp", "All") },
		func() error { return number(c, "properties.allocatedOutboundPorts", 0, 0, mostPorts) },
		func() error { return number(c, "properties.idleTimeoutInMinutes", 4, 4, longestIdle) },
		func() error { return flags(c, "properties.enableTcpReset") },
		func() error { return list(c, "properties.frontendIPConfigurations") },
	)
	if err != nil {
		return err
	}
	behaviour.Default(c.Doc, "properties.allocationPolicy", behaviour.Object{"onDemandAllocation": false, "portReuse": "FirstAvailable"})
	if ports, _ := behaviour.Int(c.Doc, "properties.allocatedOutboundPorts"); ports%portStep != 0 {
		return malformed("OutboundRuleInvalidAllocatedOutboundPorts", "Outbound rule %s has %d allocatedOutboundPorts. The value must be a multiple of %d.", c.ID, ports, portStep)
	}
	return nil
}

// checkOutboundRules checks what outbound rules refer to; a frontend has one for
// each protocol, and by its other rules nobody goes out.
func (b *balancer) checkOutboundRules() error {
	used, outward := map[string]azure.ID{}, b.outwardRules()
	return b.each(outboundRulesPath, func(id azure.ID, rule behaviour.Object) error {
		if !b.standard() {
			return malformed("OutboundRulesNotSupported", "Load balancer %s has sku Basic, which has no outbound rules.", b.ID)
		}
		if err := b.must(poolsPath, id, behaviour.RefID(rule, "properties.backendAddressPool")); err != nil {
			return err
		}
		frontends := behaviour.Objects(rule, "properties.frontendIPConfigurations")
		if len(frontends) == 0 {
			return malformed("OutboundRuleMissingFrontend", "Outbound rule %s must have at least one frontend IP configuration.", id)
		}
		for _, ref := range frontends {
			frontend := azure.ID(behaviour.Text(ref, "id"))
			if err := b.must(frontendsPath, id, frontend); err != nil {
				return err
			}
			if other := outward[frontend.Key()]; other != "" {
				return behaviour.Invalid("LoadBalancingRuleMustDisableSNATSinceSameFrontendIPConfigurationIsReferencedByOutboundRule", "Load Balancing Rules %s must have disableOutboundSNAT set to true when same FrontendIPConfiguration %s is referenced by Outbound Rules %s.", other, frontend, id)
			}
			for _, protocol := range protocolsOf(behaviour.Text(rule, "properties.protocol")) {
				key := protocol + " " + frontend.Key()
				if other, taken := used[key]; taken {
					return behaviour.Invalid("MoreThanOneOutboundRuleUsingSameFrontendIPConfigurationAndProtocolIsNotSupported", "It is not supported to have more than a single outbound rule using frontendIPConfiguration %s with same or overlapping protocol. This frontendIPConfiguration is used by the following outbound rules: %s,%s", frontend, other, id)
				}
				used[key] = id
			}
		}
		return nil
	})
}

// outwardRules are the load balancing rules by which backends go out too, by their frontend.
func (b *balancer) outwardRules() map[string]azure.ID {
	rules := map[string]azure.ID{}
	_ = b.each(rulesPath, func(id azure.ID, rule behaviour.Object) error { // it does not fail
		if !behaviour.Bool(rule, "properties.disableOutboundSnat") {
			rules[behaviour.RefID(rule, "properties.frontendIPConfiguration").Key()] = id
		}
		return nil
	})
	return rules
}
