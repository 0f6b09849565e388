package records

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
)

// unit is a record set with the TXT records of the registry that own it. It is written as a whole, or not at all.
type unit struct {
	main  *change // nil if only the TXT records change
	texts []change
	steps []Step // of main and texts, without those that Azure has already
	drop  bool
}

// host is what is to happen at one name.
type host struct {
	name  string
	units []*unit
}

// Decide returns the writes for changes.
func Decide(s Snapshot, c Changes, o Options) Plan {
	d := decision{snapshot: s, options: o}
	changes := d.changes(c)
	var hosts []*host
	for _, h := range group(changes) {
		d.prepare(h)
		d.checkNeighbours(h)
		hosts = append(hosts, h)
	}
	d.hold(hosts)
	for _, h := range hosts {
		if steps := d.order(h); len(steps) > 0 {
			d.plan.Hosts = append(d.plan.Hosts, Host{h.name, steps})
		}
	}
	return d.plan
}

type decision struct {
	snapshot Snapshot
	options  Options
	plan     Plan
}

func (d *decision) problem(a *admitted, reason Reason, format string, args ...any) {
	d.plan.Problems = append(d.plan.Problems, Problem{a.endpoint.Name, a.endpoint.Type, reason, fmt.Sprintf(format, args...)})
}

// changes joins the lists of ExternalDNS to one change for each record set, in the order of the lists.
func (d *decision) changes(c Changes) []*change {
	var all []*change
	byKey := map[string]*change{}
	at := func(e Endpoint) *change {
		key := normalName(e.Name) + " " + e.Type + " " + e.SetIdentifier
		if byKey[key] == nil {
			_, registry := e.owned()
			byKey[key] = &change{registry: registry, ttl: d.options.DefaultTTL, cluster: d.options.Cluster, traffic: d.options.Traffic}
			all = append(all, byKey[key])
		}
		return byKey[key]
	}
	for _, e := range slices.Concat(c.Delete, c.UpdateOld) {
		at(e).old = place(d.snapshot.Zones, e)
	}
	for _, e := range slices.Concat(c.Create, c.UpdateNew) {
		at(e).new = admit(d.snapshot.Zones, e, d.options.Cluster)
	}
	return fold(all)
}

// group groups changes by the host that they are about.
func group(changes []*change) []*host {
	byName := map[string]*host{}
	at := func(name string) *host {
		if byName[name] == nil {
			byName[name] = &host{name: name}
		}
		return byName[name]
	}
	var texts []*change
	for _, c := range changes {
		if c.registry {
			texts = append(texts, c)
			continue
		}
		h := at(normalName(c.any().endpoint.Name))
		h.units = append(h.units, &unit{main: c})
	}
	for _, c := range texts {
		name, _ := c.any().endpoint.owned()
		at(name).add(*c)
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *host) int { return strings.Compare(a.name, b.name) })
}

// add adds a TXT record of the registry to the unit that it owns. Without one, it is a unit of its own.
func (h *host) add(c change) {
	var types []string
	for _, u := range h.units {
		if u.main != nil {
			types = append(types, u.main.any().endpoint.Type)
		}
	}
	owned := c.any().endpoint.ownedType(types)
	for _, u := range h.units {
		if u.main != nil && u.main.any().endpoint.Type == owned && (u.main.new == nil) == (c.new == nil) {
			u.texts = append(u.texts, c)
			return
		}
	}
	h.units = append(h.units, &unit{texts: []change{c}})
}

// prepare finds the steps of each unit. A unit of which one part cannot be written is dropped.
func (d *decision) prepare(h *host) {
	for _, u := range h.units {
		all := slices.Clone(u.texts)
		if u.main != nil {
			all = append(all, *u.main)
		}
		for _, c := range all {
			step, ok := d.stepOf(c)
			if !ok {
				u.drop = true
				if c.registry && u.main != nil && u.main.new != nil {
					d.problem(u.main.any(), Unowned, "the TXT record %s cannot be written", c.any().endpoint.Name)
				}
			}
			if step != nil {
				u.steps = append(u.steps, *step)
			}
		}
	}
}

// stepOf returns the step of a change, nil for none, and false if it cannot be done.
func (d *decision) stepOf(c change) (*Step, bool) {
	a := c.any()
	d.plan.Problems = append(d.plan.Problems, a.problems...)
	if a.fatal {
		return nil, false
	}
	if c.old != nil && c.old.fatal {
		d.plan.Problems = append(d.plan.Problems, c.old.problems...)
		return nil, false
	}
	for _, p := range d.options.Protect {
		if p.MatchString(normalName(a.endpoint.Name)) {
			d.problem(a, Protected, "the name is protected by --protect=%s", p)
			return nil, false
		}
	}
	var have *Set
	if s, ok := d.snapshot.Sets[c.key()]; ok {
		have = &s
	}
	step, err := c.step(have)
	if err != nil {
		d.problem(a, Conflict, "%v", err)
		return nil, false
	}
	return step, true
}

// checkNeighbours drops a unit with a record set that cannot stand beside those that stay. A CNAME stands alone. If a new record of the
// host is dropped, no other record of the host is deleted: the name must not disappear.
func (d *decision) checkNeighbours(h *host) {
	for _, u := range h.units {
		if u.drop || u.main == nil || u.main.new == nil {
			continue
		}
		a := u.main.new
		if other, blocked := d.blocked(h, u); blocked {
			u.drop = true
			d.problem(a, Conflict, "a record set of type %s has the name, and a CNAME stands alone", other)
		}
	}
	lost := slices.ContainsFunc(h.units, func(u *unit) bool { return u.drop && u.main != nil && u.main.new != nil })
	for _, u := range h.units {
		if lost && !u.drop && u.main != nil && u.main.new == nil {
			u.drop = true
			d.problem(u.main.old, Incomplete, "the record stays, because what replaces it cannot be written")
		}
	}
}

// blocked returns the type of a record set that stays at the name and excludes that of u.
func (d *decision) blocked(h *host, u *unit) (string, bool) {
	a := u.main.new
	for _, t := range types {
		key := keyOf(a.zone, a.relative, t.name)
		if t.name == a.endpoint.Type || t.name != "CNAME" && a.endpoint.Type != "CNAME" {
			continue
		}
		_, stays := d.snapshot.Sets[key]
		for _, other := range h.units {
			if other.main != nil && other != u && !other.drop && other.main.key() == key {
				stays = other.stays()
			}
		}
		if stays {
			return t.name, true
		}
	}
	return "", false
}

// stays reports whether the record set of a unit is there after its steps.
func (u *unit) stays() bool {
	return u.main.new != nil || slices.ContainsFunc(u.steps, func(s Step) bool { return !s.change.registry && s.Verb == azure.Put })
}

// order returns the steps of a host: TXT records that claim records, records, and TXT records of deleted records. What excludes each
// other is written back to back.
func (d *decision) order(h *host) []Step {
	var claims, makes, removes, replaced, releases []Step
	creates := func(cname bool) bool {
		return slices.ContainsFunc(h.units, func(u *unit) bool {
			return !u.drop && u.main != nil && u.main.new != nil && (u.main.new.endpoint.Type == "CNAME") == cname
		})
	}
	for _, u := range h.units {
		if u.drop {
			continue
		}
		for _, s := range u.steps {
			gone := s.change.new == nil
			switch {
			case s.change.registry && !gone:
				claims = append(claims, s)
			case s.change.registry:
				releases = append(releases, s)
			case !gone:
				makes = append(makes, s)
			case s.Verb == azure.Delete && creates(s.Key.Type != "CNAME"):
				set := d.snapshot.Sets[s.Key]
				body, err := restored(set)
				if err != nil { // a document that was read before
					continue
				}
				s.Restore, s.Why = body, "make room"
				replaced = append(replaced, s)
			default:
				removes = append(removes, s)
			}
		}
	}
	return slices.Concat(claims, replaced, makes, removes, releases)
}
