package loadbalancer

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

func outboundRules() behaviour.Type {
	return schema.Inside("loadBalancers/outboundRules", outboundRulesPath, behaviour.Type{
		ReadOnly: true,
		Fill:     fillOutboundRule,
	})
}

func fillOutboundRule(c *behaviour.Call) error {
	const longestIdle, mostPorts, portStep = 120, 64000, 8
	err := schema.FirstError(
		func() error { return schema.Required(c, "properties.protocol", "Tcp", "Udp", "All") },
		func() error { return schema.Number(c, "properties.allocatedOutboundPorts", 0, 0, mostPorts) },
		func() error { return schema.Number(c, "properties.idleTimeoutInMinutes", 4, 4, longestIdle) },
		func() error { return schema.Flags(c, "properties.enableTcpReset") },
		func() error { return schema.List(c, "properties.frontendIPConfigurations") },
	)
	if err != nil {
		return err
	}
	behaviour.Default(c.Doc, "properties.allocationPolicy", behaviour.Object{"onDemandAllocation": false, "portReuse": "FirstAvailable"})
	if ports, _ := behaviour.Int(c.Doc, "properties.allocatedOutboundPorts"); ports%portStep != 0 {
		return schema.Malformed("OutboundRuleInvalidAllocatedOutboundPorts",
			"Outbound rule %s has %d allocatedOutboundPorts. The value must be a multiple of %d.", c.ID, ports, portStep)
	}
	return nil
}

// checkOutboundRules checks the references of outbound rules. A frontend has one outbound rule for each protocol, and
// its load balancing rules must disable outbound SNAT.
func checkOutboundRules(b *balancer) error {
	used, outward := map[string]azure.ID{}, outwardRules(b)
	for id, rule := range b.all(outboundRulesPath) {
		if !b.standard() {
			return schema.Malformed("OutboundRulesNotSupported", "Load balancer %s has sku Basic, which has no outbound rules.", b.ID)
		}
		if err := b.require(poolsPath, id, behaviour.RefID(rule, "properties.backendAddressPool")); err != nil {
			return err
		}
		frontends := behaviour.Objects(rule, "properties.frontendIPConfigurations")
		if len(frontends) == 0 {
			return schema.Malformed("OutboundRuleMissingFrontend", "Outbound rule %s must have at least one frontend IP configuration.", id)
		}
		for _, ref := range frontends {
			frontend := azure.ID(behaviour.Text(ref, "id"))
			if err := b.require(FrontendsPath, id, frontend); err != nil {
				return err
			}
			if other := outward[frontend.Key()]; other != "" {
				return behaviour.Invalid("LoadBalancingRuleMustDisableSNATSinceSameFrontendIPConfigurationIsReferencedByOutboundRule",
					"Load Balancing Rules %s must have disableOutboundSNAT set to true when same FrontendIPConfiguration %s is "+
						"referenced by Outbound Rules %s.", other, frontend, id)
			}
			if err := claimOutbound(used, id, frontend, behaviour.Text(rule, "properties.protocol")); err != nil {
				return err
			}
		}
	}
	return nil
}

// claimOutbound notes the protocols of an outbound rule at a frontend, and refuses protocols of another outbound rule.
func claimOutbound(used map[string]azure.ID, id, frontend azure.ID, protocol string) error {
	for _, p := range protocolsOf(protocol) {
		key := p + " " + frontend.Key()
		if other, taken := used[key]; taken {
			return behaviour.Invalid("MoreThanOneOutboundRuleUsingSameFrontendIPConfigurationAndProtocolIsNotSupported",
				"It is not supported to have more than a single outbound rule using frontendIPConfiguration %s with same or "+
					"overlapping protocol. This frontendIPConfiguration is used by the following outbound rules: %s,%s",
				frontend, other, id)
		}
		used[key] = id
	}
	return nil
}

// outwardRules returns the load balancing rules that also give their backends outbound SNAT, by the key of the frontend.
func outwardRules(b *balancer) map[string]azure.ID {
	rules := map[string]azure.ID{}
	for id, rule := range b.all(rulesPath) {
		if !behaviour.Bool(rule, "properties.disableOutboundSnat") {
			rules[behaviour.RefID(rule, "properties.frontendIPConfiguration").Key()] = id
		}
	}
	return rules
}
