package loadbalancer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

func balancingRules() behaviour.Type {
	return schema.Inside("loadBalancers/loadBalancingRules", rulesPath, behaviour.Type{
		ReadOnly: true,
		Fill:     fillBalancingRule,
	})
}

const highestPort = 65535

func fillBalancingRule(c *behaviour.Call) error {
	if behaviour.At(c.Doc, "properties.frontendPort") == nil {
		return schema.Missing(c, "properties.frontendPort")
	}
	err := schema.FirstError(
		func() error { return schema.Required(c, "properties.protocol", "Tcp", "Udp", "All", "Quic") },
		func() error { return schema.Number(c, "properties.frontendPort", -1, 0, highestPort-1) },
		func() error { return schema.Number(c, "properties.backendPort", 0, 0, highestPort) },
		func() error { return idleTimeout(c) },
		func() error {
			return schema.Choose(c, "properties.loadDistribution", "Default", "Default", "SourceIP", "SourceIPProtocol")
		},
		func() error {
			return schema.Flags(c, "properties.enableFloatingIP", "properties.enableDestinationServiceEndpoint",
				"properties.enableTcpReset",
				"properties.allowBackendPortConflict", "properties.disableOutboundSnat")
		},
		func() error { return rulePorts(c) },
	)
	if err != nil {
		return err
	}
	return rulePools(c)
}

// idleTimeout checks the idle timeout: 4 to 100 minutes, at most 30 for the Basic SKU.
func idleTimeout(c *behaviour.Call) error {
	most := 100
	if behaviour.Text(c.Parent, "sku.name") == "Basic" {
		most = 30
	}
	return schema.Number(c, "properties.idleTimeoutInMinutes", 4, 4, most)
}

// rulePorts checks that a rule for all protocols has all ports, and another rule has one port.
func rulePorts(c *behaviour.Call) error {
	frontend, _ := behaviour.Int(c.Doc, "properties.frontendPort")
	backend, _ := behaviour.Int(c.Doc, "properties.backendPort")
	all := behaviour.Text(c.Doc, "properties.protocol") == "All"
	if all && (frontend != 0 || backend != 0) {
		return schema.Malformed("LoadBalancingRuleInvalidPort",
			"Load balancing rule %s has the protocol All: frontendPort and backendPort must be 0.", c.ID)
	}
	if !all && (frontend == 0 || backend == 0) {
		return schema.Malformed("LoadBalancingRuleInvalidPort",
			"Load balancing rule %s must have a frontendPort and a backendPort from 1 to %d.", c.ID, highestPort)
	}
	return nil
}

// rulePools writes a rule's only pool both as a single reference and as a list.
func rulePools(c *behaviour.Call) error {
	one := behaviour.RefID(c.Doc, "properties.backendAddressPool")
	many := behaviour.Objects(c.Doc, "properties.backendAddressPools")
	switch {
	case one != "" && len(many) > 1:
		return schema.Malformed("BothBackendAddressPoolAndBackendAddressPools",
			"Load balancing rule %s must not have both a backendAddressPool and several backendAddressPools.", c.ID)
	case one != "":
		behaviour.Set(c.Doc, "properties.backendAddressPools", behaviour.Refs([]azure.ID{one}))
	case len(many) == 1:
		behaviour.Set(c.Doc, "properties.backendAddressPool", behaviour.Ref(azure.ID(behaviour.Text(many[0], "id"))))
	}
	return nil
}

// checkRules checks the references of the rules, and that no two rules match the same traffic.
func checkRules(b *balancer) error {
	seen := traffic{}
	for id, rule := range b.all(rulesPath) {
		if err := checkRuleReferences(b, id, rule); err != nil {
			return err
		}
		if err := checkAllPorts(b, id, rule); err != nil {
			return err
		}
		if err := seen.add(id, rule); err != nil {
			return err
		}
	}
	return nil
}

func checkRuleReferences(b *balancer, id azure.ID, rule behaviour.Object) error {
	if _, err := b.frontendOf(id, rule); err != nil {
		return err
	}
	for _, ref := range behaviour.Objects(rule, "properties.backendAddressPools") {
		if err := b.require(poolsPath, id, azure.ID(behaviour.Text(ref, "id"))); err != nil {
			return err
		}
	}
	if behaviour.At(rule, "properties.probe") != nil {
		if err := b.require(probesPath, id, behaviour.RefID(rule, "properties.probe")); err != nil {
			return err
		}
	}
	return nil
}

// checkAllPorts refuses the protocol All on load balancers that are not internal and Standard.
func checkAllPorts(b *balancer, id azure.ID, rule behaviour.Object) error {
	if behaviour.Text(rule, "properties.protocol") == "All" && (!b.standard() || !internal(b.Doc)) {
		return schema.Malformed("LoadBalancingRuleHAPortsNotSupported",
			"Load balancing rule %s has the protocol All, which only internal load balancers of sku Standard support.", id)
	}
	return nil
}

// traffic has the rule for each frontend port and backend port.
type traffic map[string]azure.ID

func (t traffic) add(id azure.ID, rule behaviour.Object) error {
	frontend := behaviour.RefID(rule, "properties.frontendIPConfiguration")
	protocol := behaviour.Text(rule, "properties.protocol")
	port, _ := behaviour.Int(rule, "properties.frontendPort")
	for _, p := range protocolsOf(protocol) {
		if err := t.claim(id, frontend, p, port); err != nil {
			return err
		}
	}
	if behaviour.Bool(rule, "properties.allowBackendPortConflict") {
		return nil
	}
	backend, _ := behaviour.Int(rule, "properties.backendPort")
	floating := behaviour.Bool(rule, "properties.enableFloatingIP")
	for _, ref := range behaviour.Objects(rule, "properties.backendAddressPools") {
		pool := azure.ID(behaviour.Text(ref, "id"))
		key := fmt.Sprintf("backend %s %d %s", protocol, backend, pool.Key())
		if floating {
			key += " " + frontend.Key()
		}
		other, taken := t[key]
		t[key] = id
		switch {
		case taken && floating:
			return behaviour.Invalid("RulesUseSameBackendPortProtocolAndPoolAndFrontendIPWithFloatingIPEnabled",
				"Load balancing rules %s and %s with floating IP enabled use the same protocol %s and backend port %d and frontend "+
					"IP %s, and must not be used with the same backend address pool %s.", other, id, protocol, backend, frontend, pool)
		case taken:
			return behaviour.Invalid("RulesUseSameBackendPortProtocolAndPool",
				"Load balancing rules %s and %s with floating IP disabled use the same protocol %s and backend port %d, and must "+
					"not be used with the same backend address pool %s.", other, id, protocol, backend, pool)
		}
	}
	return nil
}

// protocolsOf returns the protocols of a rule.
func protocolsOf(protocol string) []string {
	if protocol == "All" {
		return []string{"Tcp", "Udp"}
	}
	return []string{protocol}
}

// claim adds a port of a frontend. Port 0 means all ports. It returns an error if another rule has the port.
func (t traffic) claim(id, frontend azure.ID, protocol string, port int) error {
	place := "frontend " + frontend.Key() + " " + strings.ToLower(protocol) + " "
	conflict := t[place+"all"]
	if port == 0 {
		conflict = t[place+"any"]
		t[place+"all"] = id
	}
	exact := fmt.Sprintf("%s%d", place, port)
	if other, taken := t[exact]; taken {
		conflict = other
	}
	t[exact], t[place+"any"] = id, id
	if conflict != "" && !conflict.Equal(id) {
		return behaviour.Invalid("RulesUseSameFrontendPortProtocolAndIPConfig",
			"Load balancing rules %s and %s use the same frontend port %d and protocol %s and frontend IP configuration %s.", conflict,
			id, port, protocol, frontend)
	}
	return nil
}

// backendPort is a port of the members of a pool, for rules without floating IP.
type backendPort struct {
	protocol string
	port     int
}

// rulesByBackendPort returns the rules of a load balancer by backend port and key of the pool.
func rulesByBackendPort(id azure.ID, balancer behaviour.Object) map[backendPort]map[string]azure.ID {
	all := map[backendPort]map[string]azure.ID{}
	for _, rule := range behaviour.Objects(balancer, rulesPath) {
		if behaviour.Bool(rule, "properties.enableFloatingIP") || behaviour.Bool(rule, "properties.allowBackendPortConflict") {
			continue
		}
		port, _ := behaviour.Int(rule, "properties.backendPort")
		key := backendPort{behaviour.Text(rule, "properties.protocol"), port}
		if all[key] == nil {
			all[key] = map[string]azure.ID{}
		}
		for _, ref := range behaviour.Objects(rule, "properties.backendAddressPools") {
			all[key][azure.ID(behaviour.Text(ref, "id")).Key()] = id.Child(PartType(rulesPath), behaviour.Text(rule, "name"))
		}
	}
	return all
}

// checkBackendPorts checks that an IP configuration in several pools of a load balancer has one rule for each backend
// port.
func checkBackendPorts(configuration, id azure.ID, balancer behaviour.Object, pools []azure.ID) error {
	if len(pools) < 2 {
		return nil
	}
	for want, rules := range rulesByBackendPort(id, balancer) {
		var first azure.ID
		for _, pool := range pools {
			rule := rules[pool.Key()]
			switch {
			case rule == "" || rule.Equal(first):
			case first == "":
				first = rule
			default:
				code := "RulesOfSameLoadBalancerTypeUseSameBackendPortProtocolAndIPConfig"
				if schema.ScaleSetOf(configuration) != "" {
					code = "RulesOfSameLoadBalancerTypeUseSameBackendPortProtocolAndVmssIPConfig"
				}
				return behaviour.Invalid(code,
					"Load balancer rules %s and %s with floating IP disabled use the same backend port %d and protocol %s, and must "+
						"not be used with the same backend IP %s.", first, rule, want.port, want.protocol, configuration)
			}
		}
	}
	return nil
}

// checkMemberPorts calls checkBackendPorts for all members of several pools with the same backend port.
func checkMemberPorts(b *balancer) error {
	seen := map[string]bool{}
	for _, rules := range rulesByBackendPort(b.ID, b.Doc) {
		keys := slices.Sorted(maps.Keys(rules))
		together := strings.Join(keys, " ")
		if len(keys) < 2 || seen[together] {
			continue
		}
		seen[together] = true // these pools are checked for all ports
		in := map[string][]azure.ID{}
		for _, pool := range keys {
			for _, member := range schema.ReferrersAt(b.World, azure.ID(pool), nicPools) {
				key := member.Object.Key()
				in[key] = append(in[key], azure.ID(pool))
				if err := checkBackendPorts(member.Object, b.ID, b.Doc, in[key]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
