package loadbalancer

import (
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// TakePort gives an instance of a scale set a port of a NAT pool: an inbound NAT rule of the load balancer, such as "ssh.3".
// It returns the rule, and "" if there is no such pool or it has no port left.
func TakePort(w behaviour.World, pool azure.ID, instance string) azure.ID {
	rule := pool.Parent().Child(PartType(inboundRulesPath), pool.Name()+"."+instance)
	if _, ok := w.Get(rule); ok {
		return rule
	}
	taken := false
	w.Edit(pool.Parent(), func(doc behaviour.Object) {
		model := behaviour.Named(doc, inboundPoolsPath, pool.Name())
		port, free := freePort(doc, model)
		if !free {
			return
		}
		taken = true
		properties := behaviour.Object{"frontendPort": port}
		for _, key := range []string{"frontendIPConfiguration", "backendPort", "protocol", "idleTimeoutInMinutes", "enableFloatingIP",
			"enableTcpReset", "enableDestinationServiceEndpoint", "allowBackendPortConflict"} {
			if v := behaviour.At(model, "properties."+key); v != nil {
				properties[key] = behaviour.Clone(v)
			}
		}
		rules := append(behaviour.Array(doc, inboundRulesPath), behaviour.Object{"name": rule.Name(), "properties": properties})
		behaviour.Set(doc, inboundRulesPath, rules)
		name := behaviour.RefID(model, "properties.frontendIPConfiguration").Name()
		if frontend := behaviour.Named(doc, FrontendsPath, name); frontend != nil {
			const list = "properties.inboundNatRules"
			behaviour.Set(frontend, list, append(behaviour.Array(frontend, list), behaviour.Ref(rule)))
		}
	})
	if !taken {
		return ""
	}
	return rule
}

// GiveBackPort deletes the rule of an instance that is gone.
func GiveBackPort(w behaviour.World, rule azure.ID) {
	w.Edit(rule.Parent(), func(doc behaviour.Object) {
		rules := slices.DeleteFunc(slices.Clone(behaviour.Array(doc, inboundRulesPath)), func(element any) bool {
			r, _ := element.(behaviour.Object)
			return strings.EqualFold(behaviour.Text(r, "name"), rule.Name())
		})
		behaviour.Set(doc, inboundRulesPath, rules)
	})
}

// freePort returns the lowest port of a pool that no rule has, and whether there is one.
func freePort(doc, pool behaviour.Object) (port int, free bool) {
	taken := map[int]bool{}
	frontend := behaviour.RefID(pool, "properties.frontendIPConfiguration")
	for _, path := range []string{inboundRulesPath, rulesPath} {
		for _, rule := range behaviour.Objects(doc, path) {
			if behaviour.RefID(rule, "properties.frontendIPConfiguration").Equal(frontend) {
				n, _ := behaviour.Int(rule, "properties.frontendPort")
				taken[n] = true
			}
		}
	}
	from, _ := behaviour.Int(pool, "properties.frontendPortRangeStart")
	to, _ := behaviour.Int(pool, "properties.frontendPortRangeEnd")
	for port := from; port <= to && port > 0; port++ {
		if !taken[port] {
			return port, true
		}
	}
	return 0, false
}

// keepPoolRules keeps the rules of the instances of scale sets as they are, because the rules belong to the NAT pools. A
// client that writes the load balancer can neither change these rules nor leave them out.
func keepPoolRules(c *behaviour.Call) {
	ofPool := func(element any) bool {
		rule, _ := element.(behaviour.Object)
		name := behaviour.Text(rule, "name")
		i := strings.LastIndexByte(name, '.')
		if i < 0 || behaviour.Named(c.Doc, inboundPoolsPath, name[:i]) == nil {
			return false
		}
		_, err := strconv.Atoi(name[i+1:])
		return err == nil && behaviour.Named(c.Old, inboundRulesPath, name) != nil
	}
	rules := slices.DeleteFunc(slices.Clone(behaviour.Array(c.Doc, inboundRulesPath)), ofPool)
	for _, rule := range behaviour.Array(c.Old, inboundRulesPath) {
		if ofPool(rule) {
			rules = append(rules, behaviour.Clone(rule))
		}
	}
	if len(rules) > 0 {
		behaviour.Set(c.Doc, inboundRulesPath, rules)
	}
}
