package scaleset

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/behaviour/network/ipam"
)

// member is an instance of a scale set as far as scaling needs it.
type member struct {
	id        azure.ID
	number    int
	zone      string
	domain    int
	created   string
	protected bool
	leaving   bool
}

// members returns the ids of the machines of a scale set.
func members(w behaviour.World, set behaviour.Object, id azure.ID) []azure.ID {
	if schema.IsFlexible(set) {
		return flexMembers(w, id)
	}
	return allMembers(w, id)
}

// allMembers returns the ids of the instances of a uniform scale set, oldest first.
func allMembers(w behaviour.World, set azure.ID) []azure.ID {
	var ids []azure.ID
	for id := range w.List(set, schema.InstanceType) {
		ids = append(ids, id)
	}
	return ids
}

func readMembers(w behaviour.World, set behaviour.Object, id azure.ID) []member {
	var all []member
	for _, m := range members(w, set, id) {
		doc, _ := w.Get(m)
		n, _ := strconv.Atoi(m.Name()) // 0 for the machines of a flexible set, which are ordered by age
		zone := ""
		if zones := behaviour.Texts(doc, "zones"); len(zones) > 0 {
			zone = zones[0]
		}
		all = append(all, member{
			id: m, number: n, zone: zone, domain: schema.Number(doc, schema.Runtime+".faultDomain"),
			created:   behaviour.Text(doc, "properties.timeCreated"),
			protected: behaviour.Bool(doc, "properties.protectionPolicy.protectFromScaleIn"),
			leaving:   behaviour.Bool(doc, schema.Runtime+".released") || schema.State(doc) == schema.Deleting,
		})
	}
	return all
}

// scale adds or removes machines until the scale set has its capacity. New machines appear at once in state Creating;
// machines to remove are marked.
func scale(c *behaviour.Call) error {
	want, ok := behaviour.Int(c.Doc, schema.CapacityPath)
	if !ok || c.Old != nil && !c.Changed(schema.CapacityPath) {
		return nil
	}
	var staying []member
	for _, m := range readMembers(c.World, c.Doc, c.ID) {
		if m.leaving {
			release(c.World, m.id) // the new capacity does not count it
			continue
		}
		staying = append(staying, m)
	}
	if want < len(staying) {
		leaving := victims(staying, len(staying)-want, scaleInRule(c.Doc))
		for _, m := range leaving {
			release(c.World, m.id)
		}
		behaviour.Set(c.Doc, schema.CapacityPath, len(staying)-len(leaving)) // protected machines stay and count
		return nil
	}
	if err := checkQuota(c, want-len(staying)); err != nil {
		return err
	}
	if schema.IsFlexible(c.Doc) {
		return growFlexible(c, staying, want-len(staying))
	}
	return grow(c, staying, want-len(staying))
}

// checkQuota refuses n more machines if they exceed a quota.
func checkQuota(c *behaviour.Call, n int) error {
	return vm.CheckQuota(c, azure.SubscriptionID(c.ID.Subscription()), behaviour.Text(c.Doc, "location"), behaviour.Text(c.Doc, "sku.name"),
		behaviour.Text(c.Doc, schema.ProfilePath+".priority"), n)
}

func scaleInRule(set behaviour.Object) string {
	if rules := behaviour.Texts(set, "properties.scaleInPolicy.rules"); len(rules) > 0 {
		return rules[0]
	}
	return "Default"
}

// victims chooses n machines to remove, one after the other. Each is from a zone with the most remaining machines. Within
// it, the rules NewestVM and OldestVM choose by the time of creation. Any other rule prefers the fault domain with the most
// machines, then the highest instance id. Protected machines stay.
func victims(all []member, n int, rule string) []member {
	zones, domains := map[string]int{}, map[string]int{}
	domain := func(m member) string { return m.zone + "/" + strconv.Itoa(m.domain) }
	var candidates []member
	for _, m := range all {
		zones[m.zone]++
		domains[domain(m)]++
		if !m.protected {
			candidates = append(candidates, m)
		}
	}
	better := func(a, b member) int {
		order := 0
		switch {
		case strings.EqualFold(rule, "OldestVM"):
			order = cmp.Or(cmp.Compare(b.created, a.created), cmp.Compare(b.number, a.number))
		case strings.EqualFold(rule, "NewestVM"):
			order = cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.number, b.number))
		default:
			order = cmp.Or(cmp.Compare(domains[domain(a)], domains[domain(b)]), cmp.Compare(a.number, b.number))
		}
		return cmp.Or(cmp.Compare(zones[a.zone], zones[b.zone]), order)
	}
	var chosen []member
	for len(chosen) < n && len(candidates) > 0 {
		best := 0
		for i := range candidates {
			if better(candidates[i], candidates[best]) > 0 {
				best = i
			}
		}
		m := candidates[best]
		candidates = slices.Delete(candidates, best, best+1)
		zones[m.zone]--
		domains[domain(m)]--
		chosen = append(chosen, m)
	}
	return chosen
}

// release marks a machine for removal. The capacity no longer counts it.
func release(w behaviour.World, id azure.ID) {
	w.Edit(id, func(doc behaviour.Object) {
		behaviour.Set(doc, schema.Runtime+".released", true)
		schema.SetState(doc, schema.Deleting)
	})
}

// placement spreads new instances over zones and fault domains.
type placement struct {
	zones   []string
	domains int
	inZone  map[string]int
	count   int
}

func newPlacement(set behaviour.Object, all []member) *placement {
	p := &placement{zones: behaviour.Texts(set, "zones"), domains: max(schema.Number(set, "properties.platformFaultDomainCount"), 1),
		inZone: map[string]int{}}
	for _, m := range all {
		p.inZone[m.zone]++
		p.count++
	}
	return p
}

func (p *placement) next() (zone string, domain int) {
	if len(p.zones) > 0 {
		zone = slices.MinFunc(p.zones, func(a, b string) int { return cmp.Compare(p.inZone[a], p.inZone[b]) })
	}
	domain = p.count % p.domains
	p.inZone[zone]++
	p.count++
	return zone, domain
}

// grow adds n instances to a uniform scale set. It never uses a number again.
func grow(c *behaviour.Call, all []member, n int) error {
	if n <= 0 {
		return nil
	}
	b := builder{world: c.World, set: c.ID, doc: c.Doc, addresses: ipam.NewSubnets(c.World, c.ID), template: instanceTemplate(c.Doc)}
	place := newPlacement(c.Doc, all)
	next := schema.Number(c.Doc, schema.Runtime+".next")
	for range n {
		zone, domain := place.next()
		if err := b.create(next, zone, domain); err != nil {
			return err
		}
		next++
	}
	behaviour.Set(c.Doc, schema.Runtime+".next", next)
	return nil
}

// settleMembers ends the creation of new machines and deletes the marked machines.
func settleMembers(c *behaviour.Call, set behaviour.Object) error {
	for _, id := range members(c.World, set, c.ID) {
		doc, ok := c.Get(id)
		switch {
		case !ok:
		case behaviour.Bool(doc, schema.Runtime+".released"):
			c.Delete(id)
		case schema.State(doc) == schema.Creating:
			c.Edit(id, func(doc behaviour.Object) { schema.SetState(doc, schema.Succeeded) })
		}
	}
	return nil
}
