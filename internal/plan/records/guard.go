package records

import (
	"maps"
	"slices"

	"kaz/internal/azure"
)

// fewDeletions are so few that they are always allowed.
const fewDeletions = 10

// hold drops the deletions of a zone if they are too many at once. A list of sources that is empty by mistake must not empty the zone.
// Records that are replaced at the same name do not count.
func (d *decision) hold(hosts []*host) {
	if d.options.MostDeleted <= 0 {
		return
	}
	deleted, owners := map[string]int{}, map[string]bool{}
	lost := func(h *host, visit func(u *unit, zone string)) {
		for _, u := range h.units {
			if u.drop || u.main == nil || u.main.new != nil || replacedIn(h) {
				continue
			}
			for _, s := range u.steps {
				if s.takesAway() {
					visit(u, s.Key.Zone)
				}
			}
		}
	}
	for _, h := range hosts {
		lost(h, func(u *unit, zone string) {
			deleted[zone]++
			if owner := u.main.old.endpoint.Labels[ownerLabel]; owner != "" {
				owners[owner] = true
			}
		})
	}
	total := d.managed(owners)
	for _, h := range hosts {
		lost(h, func(u *unit, zone string) {
			if deleted[zone] <= fewDeletions || deleted[zone]*100 <= total[zone]*d.options.MostDeleted {
				return
			}
			u.drop = true
			d.plan.Held++
			d.problem(u.main.old, Held, "%d of %d record sets of the zone would be deleted at once, which is more than "+
				"--max-delete-percent=%d; set it to 0 if that is right", deleted[zone], total[zone], d.options.MostDeleted)
		})
	}
}

// replacedIn reports whether a host gets a record in these changes.
func replacedIn(h *host) bool {
	for _, u := range h.units {
		if !u.drop && u.main != nil && u.main.new != nil {
			return true
		}
	}
	return false
}

// managed returns how many record sets of each zone ExternalDNS has: as many as there are TXT records of its owners. If these cannot be
// told, it returns how many record sets there are that do not belong to Azure.
func (d *decision) managed(owners map[string]bool) map[string]int {
	all, owned := map[string]int{}, map[string]int{}
	for key, s := range d.snapshot.Sets {
		if s.Own {
			continue
		}
		all[key.Zone]++
		if s.Type == "TXT" && slices.ContainsFunc(s.Targets, func(text string) bool { return owners[ownerOf(text)] }) {
			owned[key.Zone]++
		}
	}
	maps.Copy(all, owned)
	return all
}

// takesAway reports whether a step of a deletion takes a record away, and not what the registry has of it.
func (s Step) takesAway() bool {
	return !s.change.registry && (s.Verb == azure.Delete || len(s.change.parts) > 0)
}
