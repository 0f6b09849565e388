package network

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

func balancingRules() behaviour.Type {
	return inside("loadBalancers/loadBalancingRules", rulesPath, behaviour.Type{
		ReadOnly: true,
		Fill:     fillBalancingRule,
	})
}

const highestPort = 65535

func fillBalancingRule(c *behaviour.Call) error {
	if behaviour.At(c.Doc, "properties.frontendPort") == nil {
		return missing(c, "properties.frontendPort")
	}
	err := first(
		func() error { return required(c, "properties.protocol", "Tcp", "Udp", "All", "Quic") },
		func() error { return number(c, "properties.frontendPort", -1, 0, highestPort-1) },
		func() error { return number(c, "properties.backendPort", 0, 0, highestPort) },
		func() error { return idleTimeout(c) },
		func() error {
			return choose(c, "properties.loadDistribution", "Default", "Default", "SourceIP", "SourceIPProtocol")
		},
		func() error {
			return flags(c, "properties.enableFloatingIP", "properties.enableDestinationServiceEndpoint", "properties.enableTcpReset",
				"properties.allowBackendPortConflict", "properties.disableOutboundSnat")
		},
		func() error { return rulePorts(c) },
	)
	if err != nil {
		return err
	}
	return rulePools(c)
}

// idleTimeout is 4 to 100 minutes, 30 at most for the Basic SKU.
func idleTimeout(c *behaviour.Call) error {
	most := 100
	if behaviour.Text(c.Parent, "sku.name") == "Basic" {
		most = 30
	}
	return number(c, "properties.idleTimeoutInMinutes", 4, 4, most)
}

// rulePorts: a rule for all protocols is for all ports, other rules for one.
func rulePorts(c *behaviour.Call) error {
	frontend, _ := behaviour.Int(c.Doc, "properties.frontendPort")
	backend, _ := behaviour.Int(c.Doc, "properties.backendPort")
	all := behaviour.Text(c.Doc, "properties.protocol") == "All"
	if all && (frontend != 0 || backend != 0) {
		return malformed("LoadBalancingRuleInvalidPort", "Load balancing rule %s has the protocol All: frontendPort and backendPort must be 0.", c.ID)
	}
	if !all && (frontend == 0 || backend == 0) {
		return malformed("LoadBalancingRuleInvalidPort", "Load balancing rule %s must have a frontendPort and a backendPort from 1 to %d.", c.ID, highestPort)
	}
	return nil
}

// rulePools shows a rule's pool both as one and as a list.
func rulePools(c *behaviour.Call) error {
	one := behaviour.RefID(c.Doc, "properties.backendAddressPool")
	many := behaviour.Objects(c.Doc, "properties.backendAddressPools")
	switch {
	case one != "" && len(many) > 1:
		return malformed("BothBackendAddressPoolAndBackendAddressPools", "Load balancing rule %s must not have both a backendAddressPool and several backendAddressPools.", c.ID)
	case one != "":
		behaviour.Set(c.Doc, "properties.backendAddressPools", behaviour.Refs([]azure.ID{one}))
	case len(many) == 1:
		behaviour.Set(c.Doc, "properties.backendAddressPool", behaviour.Ref(azure.ID(behaviour.Text(many[0], "id"))))
	}
	return nil
}

// checkRules checks what the rules refer to and that no two want the same traffic.
func (b *balancer) checkRules() error {
	seen := traffic{}
	return b.each(rulesPath, func(id azure.ID, rule behaviour.Object) error {
		if err := b.checkRuleReferences(id, rule); err != nil {
			return err
		}
		if err := b.checkAllPorts(id, rule); err != nil {
			return err
		}
		return seen.add(id, rule)
	})
}

func (b *balancer) checkRuleReferences(id azure.ID, rule behaviour.Object) error {
	frontend := behaviour.RefID(rule, "properties.frontendIPConfiguration")
	if frontend == "" {
		return malformed("MissingJsonReferenceId", "Value for reference id is missing. Path properties.frontendIPConfiguration of resource %s.", id)
	}
	if err := b.must(frontendsPath, id, frontend); err != nil {
		return err
	}
	for _, ref := range behaviour.Objects(rule, "properties.backendAddressPools") {
		if err := b.must(poolsPath, id, azure.ID(behaviour.Text(ref, "id"))); err != nil {
			return err
		}
	}
	if behaviour.At(rule, "properties.probe") != nil {
		if err := b.must(probesPath, id, behaviour.RefID(rule, "properties.probe")); err != nil {
			return err
		}
	}
	return nil
}

// checkAllPorts: rules for all protocols are for internal Standard load
// balancers.
func (b *balancer) checkAllPorts(id azure.ID, rule behaviour.Object) error {
	if behaviour.Text(rule, "properties.protocol") == "All" && (!b.standard() || !internal(b.Doc)) {
		return malformed("LoadBalancingRuleHAPortsNotSupported", "Load balancing rule %s has the protocol All, which only internal load balancers of sku Standard support.", id)
	}
	return nil
}

// traffic knows which rule has which traffic.
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
			return behaviour.Invalid("RulesUseSameBackendPortProtocolAndPoolAndFrontendIPWithFloatingIPEnabled", "Load balancing rules %s and %s with floating IP enabled use the same protocol %s and backend port %d and frontend IP %s, and must not be used with the same backend address pool %s.", other, id, protocol, backend, frontend, pool)
		case taken:
			return behaviour.Invalid("RulesUseSameBackendPortProtocolAndPool", "Load balancing rules %s and %s with floating IP disabled use the same protocol %s and backend port %d, and must not be used with the same backend address pool %s.", other, id, protocol, backend, pool)
		}
	}
	return nil
}

// protocolsOf are the protocols whose ports a rule takes.
func protocolsOf(protocol string) []string {
	if protocol == "All" {
		return []string{"Tcp", "Udp"}
	}
	return []string{protocol}
}

// claim takes a port of a frontend, or all with port 0.
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
		return behaviour.Invalid("RulesUseSameFrontendPortProtocolAndIPConfig", "Load balancing rules %s and %s use the same frontend port %d and protocol %s and frontend IP configuration %s.", conflict, id, port, protocol, frontend)
	}
	return nil
}

// backendPort is what rules want of a pool: a port of its members, as far as no frontend's
// address tells them apart.
type backendPort struct {
	protocol string
	port     int
}

// wanted are the rules of a load balancer by the backend port that they want, and by pool.
func wanted(id azure.ID, balancer behaviour.Object) map[backendPort]map[string]azure.ID {
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
			all[key][azure.ID(behaviour.Text(ref, "id")).Key()] = id.Child(segmentOf(rulesPath), behaviour.Text(rule, "name"))
		}
	}
	return all
}

// checkBackendPorts: who is in several pools of a load balancer has each port from one rule.
func checkBackendPorts(configuration, id azure.ID, balancer behaviour.Object, pools []azure.ID) error {
	if len(pools) < 2 {
		return nil
	}
	for want, rules := range wanted(id, balancer) {
		var first azure.ID
		for _, pool := range pools {
			rule := rules[pool.Key()]
			switch {
			case rule == "" || rule.Equal(first):
			case first == "":
				first = rule
			default:
				code := "RulesOfSameLoadBalancerTypeUseSameBackendPortProtocolAndIPConfig"
				if scaleSetOf(configuration) != "" {
					code = "RulesOfSameLoadBalancerTypeUseSameBackendPortProtocolAndVmssIPConfig"
				}
				return behaviour.Invalid(code, "Load balancer rules %s and %s with floating IP disabled use the same backend port %d and protocol %s, and must not be used with the same backend IP %s.", first, rule, want.port, want.protocol, configuration)
			}
		}
	}
	return nil
}

// checkPorts is checkBackendPorts for all who are in pools whose rules want the same port.
func (b *balancer) checkPorts() error {
	seen := map[string]bool{}
	for _, rules := range wanted(b.ID, b.Doc) {
		keys := slices.Sorted(maps.Keys(rules))
		together := strings.Join(keys, " ")
		if len(keys) < 2 || seen[together] {
			continue
		}
		seen[together] = true // with whatever port
		in := map[string][]azure.ID{}
		for _, pool := range keys {
			for _, member := range users(b.World, azure.ID(pool), nicPools) {
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
