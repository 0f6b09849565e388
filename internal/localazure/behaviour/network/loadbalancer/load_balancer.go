// Package loadbalancer has the behaviour of load balancers and their parts. Layer L2.
package loadbalancer

import (
	"iter"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

// The arrays of a load balancer.
const (
	FrontendsPath     = "properties.frontendIPConfigurations"
	poolsPath         = "properties.backendAddressPools"
	rulesPath         = "properties.loadBalancingRules"
	probesPath        = "properties.probes"
	inboundRulesPath  = "properties.inboundNatRules"
	outboundRulesPath = "properties.outboundRules"
	inboundPoolsPath  = "properties.inboundNatPools"
)

func Types() []behaviour.Type {
	return []behaviour.Type{loadBalancers(), frontends(), backendPools(), balancingRules(), probes(), inboundRules(),
		outboundRules(), inboundPools()}
}

func loadBalancers() behaviour.Type {
	style := schema.RetryAfter(0, 0)
	style.Prompt = map[behaviour.Verb]bool{behaviour.Create: true, behaviour.Update: true}
	return schema.Tracked("loadBalancers", behaviour.Type{
		Style:     style,
		Fill:      fillLoadBalancer,
		Check:     checkLoadBalancer,
		BlockedBy: scaleSetsInPools,
		Actions:   map[string]behaviour.Action{"migrateToIpBased": {Do: migrateToIPBased}},
		Views:     map[string]func(c *behaviour.Call) (any, error){"networkInterfaces": members},
	})
}

func fillLoadBalancer(c *behaviour.Call) error {
	keepPoolRules(c)
	return schema.FirstError(
		func() error { return schema.Choose(c, "sku.name", "Basic", "Basic", "Standard", "Gateway", "Service") },
		func() error { return schema.Choose(c, "sku.tier", "Regional", "Regional", "Global") },
		func() error {
			return schema.List(c, FrontendsPath, poolsPath, rulesPath, probesPath, inboundRulesPath, outboundRulesPath, inboundPoolsPath)
		},
		func() error {
			if c.Changed("sku.name") {
				return behaviour.Invalid("LoadBalancerSkuCannotBeChanged",
					"Changing the sku of load balancer %s from %s to %s is not allowed.", c.ID, behaviour.Text(c.Old, "sku.name"),
					behaviour.Text(c.Doc, "sku.name"))
			}
			return nil
		},
	)
}

// balancer is a load balancer during its check, with its parts by name.
type balancer struct {
	*behaviour.Call
	parts map[string]map[string]behaviour.Object // by path of the array and lower-case name
}

// checkLoadBalancer checks the parts against each other and writes their back-references.
func checkLoadBalancer(c *behaviour.Call) error {
	b := newBalancer(c)
	for _, check := range []func(*balancer) error{
		checkLimits, checkFrontends, checkRules, checkInboundRules, checkOutboundRules, checkPools, checkMemberPorts,
	} {
		if err := check(b); err != nil {
			return err
		}
	}
	writeBackReferences(b)
	return nil
}

func newBalancer(c *behaviour.Call) *balancer {
	b := &balancer{Call: c, parts: map[string]map[string]behaviour.Object{}}
	for _, path := range []string{FrontendsPath, poolsPath, probesPath, inboundRulesPath, inboundPoolsPath} {
		b.parts[path] = map[string]behaviour.Object{}
		for _, part := range behaviour.Objects(c.Doc, path) {
			b.parts[path][azure.ID(behaviour.Text(part, "name")).Key()] = part
		}
	}
	return b
}

// all yields the parts of an array with their ids.
func (b *balancer) all(path string) iter.Seq2[azure.ID, behaviour.Object] {
	return func(yield func(azure.ID, behaviour.Object) bool) {
		for _, part := range behaviour.Objects(b.Doc, path) {
			if !yield(b.ID.Child(PartType(path), behaviour.Text(part, "name")), part) {
				return
			}
		}
	}
}

// PartType returns the type segment of the parts of an array.
func PartType(path string) string { return path[len("properties."):] }

// find returns the part with an id, nil if it is not of this load balancer.
func (b *balancer) find(path string, id azure.ID) behaviour.Object {
	if !id.Parent().Equal(b.ID) || !id.Is(schema.Namespace+"loadBalancers/"+PartType(path)) {
		return nil
	}
	return b.parts[path][azure.ID(id.Name()).Key()]
}

// require returns an error if a reference leads to no part of this load balancer.
func (b *balancer) require(path string, from, to azure.ID) error {
	if b.find(path, to) == nil {
		return behaviour.InvalidReference(from, to)
	}
	return nil
}

// frontendOf returns the frontend of a rule, or an error if the rule has none of this load balancer.
func (b *balancer) frontendOf(id azure.ID, rule behaviour.Object) (azure.ID, error) {
	frontend := behaviour.RefID(rule, "properties.frontendIPConfiguration")
	if frontend == "" {
		return "", schema.Malformed("MissingJsonReferenceId",
			"Value for reference id is missing. Path properties.frontendIPConfiguration of resource %s.", id)
	}
	return frontend, b.require(FrontendsPath, id, frontend)
}

func (b *balancer) standard() bool { return behaviour.Text(b.Doc, "sku.name") != "Basic" }

// checkLimits checks the numbers of frontends and rules. The Basic SKU has lower limits.
func checkLimits(b *balancer) error {
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
	if err := schema.CheckLimit(b.Call, "FrontendIPConfigurationCountLimitReached", "frontend IP configurations", count(FrontendsPath),
		frontends); err != nil {
		return err
	}
	if err := schema.CheckLimit(b.Call, "LoadBalancerRuleCountLimitReached", "rules", count(rulesPath, inboundRulesPath, outboundRulesPath),
		rules); err != nil {
		return err
	}
	if count(FrontendsPath) == 0 && count(poolsPath, rulesPath, probesPath, inboundRulesPath, outboundRulesPath, inboundPoolsPath) > 0 {
		return behaviour.Invalid("LoadBalancerWithoutFrontendIPCantHaveChildResources",
			"Load Balancer %s does not have Frontend IP Configuration, but it has other child resources. This setup is not supported.",
			b.ID)
	}
	return nil
}

// writeBackReferences writes into each part which rules refer to it.
func writeBackReferences(b *balancer) {
	notes := map[string]map[string][]any{} // by key of the part and property
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
		for from, part := range b.all(path) {
			for _, to := range partsOf(part) {
				note(to, PartType(path), from)
			}
		}
	}
	for _, path := range []string{FrontendsPath, poolsPath, probesPath} {
		for id, part := range b.all(path) {
			for _, property := range backReferences[path] {
				behaviour.Remove(part, "properties."+property)
				if refs := notes[id.Key()][property]; len(refs) > 0 {
					behaviour.Set(part, "properties."+property, refs)
				}
			}
		}
	}
}

// backReferences are the properties of a part that list the rules that refer to it.
var backReferences = map[string][]string{
	FrontendsPath: {"loadBalancingRules", "inboundNatRules", "outboundRules", "inboundNatPools"},
	poolsPath:     {"loadBalancingRules", "inboundNatRules", "outboundRules"},
	probesPath:    {"loadBalancingRules"},
}

// partsOf returns the parts that a rule refers to, each once.
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

// scaleSetsKeep refuses to delete parts that a scale set uses. Network interfaces leavePools the pools.
func scaleSetsKeep(c *behaviour.Call, by []behaviour.Referrer) error {
	if set := schema.ScaleSetAmong(by); set != "" {
		return behaviour.Invalid("LoadBalancerInUseByVirtualMachineScaleSet",
			"Cannot delete load balancer %s since its child resources %s are in use by virtual machine scale set %s.", c.ID.Parent(),
			c.ID.Name(), set)
	}
	return nil
}

// leavePools removes the references of network interfaces to a deleted part.
func leavePools(c *behaviour.Call) error {
	removeReferences(c.World, c.ID)
	return nil
}

// removeReferences removes {"id": id} from the lists of all documents.
func removeReferences(w behaviour.World, id azure.ID) {
	for _, r := range w.Referrers(id) {
		w.Edit(r.Resource, func(doc behaviour.Object) { removeFrom(doc, id) })
	}
}

// removeFrom removes {"id": id} from every list in a value.
func removeFrom(value any, id azure.ID) {
	object, ok := value.(behaviour.Object)
	if !ok {
		return
	}
	for key, x := range object {
		array, ok := x.([]any)
		if !ok {
			removeFrom(x, id)
			continue
		}
		kept := make([]any, 0, len(array))
		for _, element := range array {
			if ref, ok := element.(behaviour.Object); ok && id.Equal(azure.ID(behaviour.Text(ref, "id"))) {
				continue
			}
			removeFrom(element, id)
			kept = append(kept, element)
		}
		object[key] = kept
	}
}
