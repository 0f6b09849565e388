package network

import (
	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// The arrays of a load balancer.
const (
	frontendsPath     = "properties.frontendIPConfigurations"
	poolsPath         = "properties.backendAddressPools"
	rulesPath         = "properties.loadBalancingRules"
	probesPath        = "properties.probes"
	inboundRulesPath  = "properties.inboundNatRules"
	outboundRulesPath = "properties.outboundRules"
	inboundPoolsPath  = "properties.inboundNatPools"
)

func loadBalancerTypes() []behaviour.Type {
	return []behaviour.Type{loadBalancers(), frontends(), backendPools(), balancingRules(), probes(), inboundRules(),
		outboundRules(), inboundPools()}
}

func loadBalancers() behaviour.Type {
	style := waiting(0, 0)
	style.Prompt = map[behaviour.Verb]bool{behaviour.Create: true, behaviour.Update: true}
	return tracked("loadBalancers", behaviour.Type{
		Style:   style,
		Fill:    fillLoadBalancer,
		Check:   checkLoadBalancer,
		Beside:  scaleSetsInPools,
		Actions: map[string]behaviour.Action{"migrateToIpBased": {Do: migrateToIPBased}},
	})
}

func fillLoadBalancer(c *behaviour.Call) error {
	return first(
		func() error { return choose(c, "sku.name", "Basic", "Basic", "Standard", "Gateway", "Service") },
		func() error { return choose(c, "sku.tier", "Regional", "Regional", "Global") },
		func() error {
			return list(c, frontendsPath, poolsPath, rulesPath, probesPath, inboundRulesPath, outboundRulesPath, inboundPoolsPath)
		},
		func() error {
			if c.Changed("sku.name") {
				return behaviour.Invalid("LoadBalancerSkuCannotBeChanged", "Changing the sku of load balancer %s from %s to %s is not allowed.", c.ID, behaviour.Text(c.Old, "sku.name"), behaviour.Text(c.Doc, "sku.name"))
			}
			return nil
		},
	)
}

// balancer is a load balancer that is being checked, with its parts by name.
type balancer struct {
	*behaviour.Call
	parts map[string]map[string]behaviour.Object // by array and lower-cased name
}

// checkLoadBalancer checks the parts against each other and notes in each which
// others refer to it.
func checkLoadBalancer(c *behaviour.Call) error {
	b := newBalancer(c)
	return first(b.checkLimits, b.checkFrontends, b.checkRules, b.checkInboundRules, b.checkOutboundRules,
		b.checkPools, b.checkPorts, b.noteReferences)
}

func newBalancer(c *behaviour.Call) *balancer {
	b := &balancer{Call: c, parts: map[string]map[string]behaviour.Object{}}
	for _, path := range []string{frontendsPath, poolsPath, probesPath, inboundRulesPath, inboundPoolsPath} {
		b.parts[path] = map[string]behaviour.Object{}
		for _, part := range behaviour.Objects(c.Doc, path) {
			b.parts[path][azure.ID(behaviour.Text(part, "name")).Key()] = part
		}
	}
	return b
}

// each calls f with the parts of an array and their ids.
func (b *balancer) each(path string, f func(id azure.ID, part behaviour.Object) error) error {
	for _, part := range behaviour.Objects(b.Doc, path) {
		if err := f(b.ID.Child(segmentOf(path), behaviour.Text(part, "name")), part); err != nil {
			return err
		}
	}
	return nil
}

// segmentOf is the type segment of the parts of an array.
func segmentOf(path string) string { return path[len("properties."):] }

// find is the part that an id names, nil when it is not one of this load balancer.
func (b *balancer) find(path string, id azure.ID) behaviour.Object {
	if !id.Parent().Equal(b.ID) || !id.Is(namespace+"loadBalancers/"+segmentOf(path)) {
		return nil
	}
	return b.parts[path][azure.ID(id.Name()).Key()]
}

// must is find for references that have to lead somewhere.
func (b *balancer) must(path string, from, to azure.ID) error {
	if b.find(path, to) == nil {
		return behaviour.InvalidReference(from, to)
	}
	return nil
}

func (b *balancer) standard() bool { return behaviour.Text(b.Doc, "sku.name") != "Basic" }

// checkLimits: 600 frontends and 1,500 rules of all kinds, and a third of that
// for the Basic SKU.
func (b *balancer) checkLimits() error {
	frontends, rules := 200, 250
	if b.standard() {
		frontends, rules = 600, 1500
	}
	count := func(paths ...string) int {
		n := 0
		for _, path := range paths {
			n += len(behaviour.Objects(b.Doc, path))
		}
		return n
	}
	if err := tooMany(b.Call, "FrontendIPConfigurationCountLimitReached", "frontend IP configurations", count(frontendsPath), frontends); err != nil {
		return err
	}
	if err := tooMany(b.Call, "LoadBalancerRuleCountLimitReached", "rules", count(rulesPath, inboundRulesPath, outboundRulesPath), rules); err != nil {
		return err
	}
	if count(frontendsPath) == 0 && count(poolsPath, rulesPath, probesPath, inboundRulesPath, outboundRulesPath, inboundPoolsPath) > 0 {
		return behaviour.Invalid("LoadBalancerWithoutFrontendIPCantHaveChildResources", "Load Balancer %s does not have Frontend IP Configuration, but it has other child resources. This setup is not supported.", b.ID)
	}
	return nil
}

// noteReferences writes into each part which other parts refer to it.
func (b *balancer) noteReferences() error {
	notes := map[string]map[string][]any{} // by id of the part, by property
	note := func(to azure.ID, property string, from azure.ID) {
		if to == "" {
			return
		}
		if notes[to.Key()] == nil {
			notes[to.Key()] = map[string][]any{}
		}
		notes[to.Key()][property] = append(notes[to.Key()][property], behaviour.Ref(from))
	}
	for _, path := range []string{rulesPath, inboundRulesPath, outboundRulesPath, inboundPoolsPath} {
		for _, part := range behaviour.Objects(b.Doc, path) {
			from := b.ID.Child(segmentOf(path), behaviour.Text(part, "name"))
			for _, to := range partsOf(part) {
				note(to, segmentOf(path), from)
			}
		}
	}
	for _, path := range []string{frontendsPath, poolsPath, probesPath} {
		_ = b.each(path, func(id azure.ID, part behaviour.Object) error { // it does not fail
			for _, property := range backReferences[path] {
				behaviour.Remove(part, "properties."+property)
				if refs := notes[id.Key()][property]; len(refs) > 0 {
					behaviour.Set(part, "properties."+property, refs)
				}
			}
			return nil
		})
	}
	return nil
}

// backReferences are the properties that say which rules refer to a part.
var backReferences = map[string][]string{
	frontendsPath: {"loadBalancingRules", "inboundNatRules", "outboundRules", "inboundNatPools"},
	poolsPath:     {"loadBalancingRules", "inboundNatRules", "outboundRules"},
	probesPath:    {"loadBalancingRules"},
}

// partsOf are the parts that a rule refers to, each once.
func partsOf(rule behaviour.Object) []azure.ID {
	var ids []azure.ID
	seen := map[string]bool{"": true}
	add := func(id azure.ID) {
		if !seen[id.Key()] {
			seen[id.Key()] = true
			ids = append(ids, id)
		}
	}
	for _, single := range []string{"frontendIPConfiguration", "backendAddressPool", "probe"} {
		add(behaviour.RefID(rule, "properties."+single))
	}
	for _, plural := range []string{"frontendIPConfigurations", "backendAddressPools"} {
		for _, ref := range behaviour.Objects(rule, "properties."+plural) {
			add(azure.ID(behaviour.Text(ref, "id")))
		}
	}
	return ids
}

// scaleSetsKeep refuses to delete parts that a scale set needs. Network interfaces
// just leave the pools.
func scaleSetsKeep(c *behaviour.Call, by []behaviour.Referrer) error {
	if set := scaleSetAmong(by); set != "" {
		return behaviour.Invalid("LoadBalancerInUseByVirtualMachineScaleSet", "Cannot delete load balancer %s since its child resources %s are in use by virtual machine scale set %s.", c.ID.Parent(), c.ID.Name(), set)
	}
	return nil
}

// leave takes a part that is gone out of the network interfaces.
func leave(c *behaviour.Call) error {
	forget(c.World, c.ID)
	return nil
}

// forget removes {"id": id} from the lists of all documents.
func forget(w behaviour.World, id azure.ID) {
	for _, r := range w.Referrers(id) {
		w.Edit(r.Resource, func(doc behaviour.Object) { without(doc, id) })
	}
}

// without removes {"id": id} from every list in a value.
func without(value any, id azure.ID) {
	object, ok := value.(behaviour.Object)
	if !ok {
		return
	}
	for key, x := range object {
		array, ok := x.([]any)
		if !ok {
			without(x, id)
			continue
		}
		kept := make([]any, 0, len(array))
		for _, element := range array {
			if ref, ok := element.(behaviour.Object); ok && id.Equal(azure.ID(behaviour.Text(ref, "id"))) {
				continue
			}
			without(element, id)
			kept = append(kept, element)
		}
		object[key] = kept
	}
}
