package units

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/naming"
)

// The parts of the load balancer of outbound traffic that kaz cluster makes. All other parts are those of Services.
const (
	OutboundPool = "nodes"
	OutboundRule = "outbound"

	outboundFrontends = "out-" // before the number of the address
)

// OutboundFrontend is the name of the frontend of a public address.
func OutboundFrontend(i int) string { return fmt.Sprint(outboundFrontends, i) }

// parts are the lists of a load balancer, as Azure shows it.
type parts map[string]any

// list is a list of parts of the load balancer.
func (p parts) list(name string) []any {
	all, _ := p[name].([]any)
	return all
}

// find returns a part of the load balancer, nil for none.
func (p parts) find(list, name string) object {
	for _, one := range p.list(list) {
		if part, ok := one.(object); ok && strings.EqualFold(fmt.Sprint(part["name"]), name) {
			return part
		}
	}
	return nil
}

// Outbound returns the load balancer of outbound traffic with the addresses and the timeout of a definition, and what that
// changes, nothing if have agrees. The parts of Services stay: a frontend that the definition no longer has leaves the outbound
// rule, and the load balancer only if no Service uses it.
func Outbound(c definition.Cluster, have azure.Document) (next azure.Document, changes []string, err error) {
	var doc object
	if err := json.Unmarshal(have, &doc); err != nil {
		return nil, nil, fmt.Errorf("load balancer of outbound traffic: %w", err)
	}
	properties, ok := doc["properties"].(object)
	if !ok {
		return nil, nil, fmt.Errorf("load balancer %s: it has no properties", have.ID())
	}
	lb, names, count := parts(properties), naming.Of(c), c.Spec.Network.Outbound.PublicIPs
	var used []any
	for i := range count {
		address := names.Group().Resource("Microsoft.Network/publicIPAddresses", names.OutboundAddress(i))
		changes = append(changes, lb.setFrontend(OutboundFrontend(i), address)...)
		used = append(used, object{"id": string(have.ID().Child("frontendIPConfigurations", OutboundFrontend(i)))})
	}
	if lb.find("backendAddressPools", OutboundPool) == nil {
		lb["backendAddressPools"] = append(lb.list("backendAddressPools"), object{"name": OutboundPool})
		changes = append(changes, "pool "+OutboundPool)
	}
	changes = append(changes, lb.setRule(used, have.ID().Child("backendAddressPools", OutboundPool),
		c.Spec.Network.Outbound.IdleTimeoutMinutes)...)
	changes = append(changes, lb.removeFrontends(count)...)
	if len(changes) == 0 {
		return have, nil, nil
	}
	next, err = json.Marshal(doc)
	return next, changes, err
}

// setFrontend gives a frontend a public address, and says so if the frontend had another one, or was not there.
func (p parts) setFrontend(name string, address azure.ID) []string {
	want := object{"publicIPAddress": object{"id": string(address)}}
	if had := p.find("frontendIPConfigurations", name); had == nil {
		p["frontendIPConfigurations"] = append(p.list("frontendIPConfigurations"), object{"name": name, "properties": want})
	} else if idIn(had, "properties", "publicIPAddress").Equal(address) {
		return nil
	} else {
		had["properties"] = want
	}
	return []string{"frontend " + name + " with address " + address.Name()}
}

// setRule gives the outbound rule these frontends and this timeout, and says so if that changes it.
func (p parts) setRule(frontends []any, pool azure.ID, minutes int) []string {
	rule := p.find("outboundRules", OutboundRule)
	if rule == nil {
		rule = object{"name": OutboundRule, "properties": object{"protocol": "All", "enableTcpReset": true}}
		p["outboundRules"] = append(p.list("outboundRules"), rule)
	}
	properties, _ := rule["properties"].(object)
	had := ids(properties["frontendIPConfigurations"])
	if slices.Equal(had, ids(frontends)) && idIn(properties, "backendAddressPool").Equal(pool) &&
		fmt.Sprint(properties["idleTimeoutInMinutes"]) == strconv.Itoa(minutes) {
		return nil
	}
	properties["frontendIPConfigurations"], properties["backendAddressPool"] = frontends, object{"id": string(pool)}
	properties["idleTimeoutInMinutes"] = minutes
	return []string{fmt.Sprintf("rule %s with %d addresses and a timeout of %d minutes", OutboundRule, len(frontends), minutes)}
}

// removeFrontends removes the frontends of outbound traffic from a number on that no rule uses.
func (p parts) removeFrontends(from int) (changes []string) {
	p["frontendIPConfigurations"] = slices.DeleteFunc(p.list("frontendIPConfigurations"), func(one any) bool {
		part, _ := one.(object)
		name := strings.ToLower(fmt.Sprint(part["name"]))
		i, err := strconv.Atoi(strings.TrimPrefix(name, outboundFrontends))
		if err != nil || i < from || name != OutboundFrontend(i) || p.uses("/frontendipconfigurations/"+name) {
			return false
		}
		changes = append(changes, "without frontend "+name)
		return true
	})
	return changes
}

// uses reports whether a rule refers to a part of the load balancer.
func (p parts) uses(part string) bool {
	for _, list := range []string{"loadBalancingRules", "inboundNatRules", "inboundNatPools", "outboundRules"} {
		text, err := json.Marshal(p[list])
		if err != nil || strings.Contains(strings.ToLower(string(text)), part+`"`) {
			return true
		}
	}
	return false
}

// ids are the ids of references, in lower case and in order.
func ids(references any) []string {
	list, _ := references.([]any)
	all := make([]string, len(list))
	for i, one := range list {
		all[i] = idIn(object{"of": one}, "of").Key()
	}
	slices.Sort(all)
	return all
}

// idIn is the id of a reference at a path, "" for none.
func idIn(o object, path ...string) azure.ID {
	for _, name := range path {
		o, _ = o[name].(object)
	}
	id, _ := o["id"].(string)
	return azure.ID(id)
}
