package records

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
)

// Adjust returns the endpoints as Azure can have them, in the order of the input, and the problems of those that it cannot have.
// ExternalDNS compares the result with what [Set.Endpoint] returned. Adjusted endpoints adjust to themselves.
//
// cluster is the id of the cluster in shared record sets, "" if it shares none.
func Adjust(zones []Zone, endpoints []Endpoint, cluster string) ([]Endpoint, []Problem) {
	adjusted, problems := []Endpoint{}, []Problem(nil)
	for _, e := range endpoints {
		a := admit(zones, e, cluster)
		problems = append(problems, a.problems...)
		if !a.fatal {
			adjusted = append(adjusted, a.endpoint)
		}
	}
	return adjusted, problems
}

// admitted is an endpoint as Azure can have it.
type admitted struct {
	endpoint Endpoint
	zone     Zone
	relative string
	problems []Problem
	fatal    bool // it cannot have it
}

// refuse notes why an endpoint is not written.
func (a *admitted) refuse(reason Reason, format string, args ...any) {
	a.fatal = true
	a.note(reason, format, args...)
}

func (a *admitted) note(reason Reason, format string, args ...any) {
	a.problems = append(a.problems, Problem{a.endpoint.Name, a.endpoint.Type, reason, fmt.Sprintf(format, args...)})
}

// place finds the zone of an endpoint.
func place(zones []Zone, e Endpoint) *admitted {
	a := &admitted{endpoint: e}
	name := normalName(e.Name)
	zone, relative, ok := find(zones, name)
	if !ok {
		hint := ""
		if e.Labels[ownedRecord] != "" {
			hint = "; for records at the apex of a zone, set --txt-prefix of ExternalDNS to a text with %{record_type} and a final dot, " +
				"such as _edns-%{record_type}."
		}
		a.refuse(NoZone, "no zone contains the name%s", hint)
		return a
	}
	a.zone, a.relative = zone, relative
	return a
}

func admit(zones []Zone, e Endpoint, cluster string) *admitted {
	a := place(zones, e)
	if a.fatal {
		return a
	}
	if _, ok := typeNamed(e.Type, a.zone.Private); !ok {
		a.refuse(Unsupported, "zone %s cannot have records of this type", a.zone.Name)
		return a
	}
	if err := checkName(a.zone, a.relative, e.Type); err != nil {
		a.refuse(Invalid, "%v", err)
		return a
	}
	a.endpoint.TTL = min(max(e.TTL, 0), longestTTL)
	if e.SetIdentifier != "" {
		a.admitShared(cluster)
		return a
	}
	metadata := e.metadata()
	if a.zone.Private {
		metadata = nil
	}
	alias := e.alias()
	a.endpoint.ProviderSpecific = properties(metadata, alias)
	if alias != "" {
		a.admitAlias(alias)
		return a
	}
	a.admitTargets()
	return a
}

// admitShared admits a contribution to a shared record set.
func (a *admitted) admitShared(cluster string) {
	e := &a.endpoint
	if cluster == "" {
		a.refuse(Unsupported, "set identifier %q: to share names with other clusters, set --cluster-id to a name of this cluster",
			e.SetIdentifier)
		return
	}
	if err := CheckIdentifier(e.SetIdentifier); err != nil {
		a.refuse(Invalid, "set identifier %v", err)
		return
	}
	if e.alias() != "" {
		a.refuse(Unsupported, "a shared record set cannot be an alias")
		return
	}
	a.admitTargets()
	if !a.fatal {
		a.admitRouting()
	}
}

func (a *admitted) admitAlias(alias string) {
	if a.zone.Private {
		a.refuse(Unsupported, "private zones have no alias record sets")
		return
	}
	if _, err := azure.ParseID(alias); err != nil {
		a.refuse(Invalid, "annotation webhook-azure-alias %q: must be the id of a public IP, Traffic Manager profile, Front Door, CDN "+
			"endpoint or record set", alias)
		return
	}
	a.endpoint.Targets = []string{alias}
}

func (a *admitted) admitTargets() {
	e := &a.endpoint
	t, _ := typeNamed(e.Type, a.zone.Private)
	e.Targets = canonicalAll(e.Type, e.Targets)
	if len(e.Targets) == 0 {
		a.refuse(Invalid, "there is no target")
		return
	}
	total := 0
	for _, target := range e.Targets {
		total += len(target)
		if _, err := t.parse(target); err != nil {
			a.refuse(Invalid, "target %v", err)
			return
		}
	}
	most := mostRecords
	if t.one {
		most = 1
	}
	if e.Type == "TXT" && total > longestTXT {
		a.refuse(Invalid, "the texts have %d bytes; at most %d are allowed", total, longestTXT)
		return
	}
	if len(e.Targets) > most {
		a.note(Truncated, "there are %d targets, and Azure takes %d: the first in alphabetical order are written", len(e.Targets), most)
		e.Targets = slices.Sorted(slices.Values(e.Targets))[:most]
	}
}

// want returns the record set of an admitted endpoint.
func (a *admitted) want(ttl int64) wanted {
	e := a.endpoint
	if e.TTL > 0 {
		ttl = e.TTL
	}
	w := wanted{Zone: a.zone, Name: a.relative, Type: e.Type, TTL: ttl, Metadata: e.metadata(), Alias: e.alias(), Targets: e.Targets}
	if w.Alias != "" {
		w.Targets = nil
	}
	return w
}

// owned returns the name of the host that an endpoint is about: its own, or that of the record that a TXT record of the registry owns.
func (e Endpoint) owned() (host string, registry bool) {
	if e.Type == "TXT" && e.Labels[ownedRecord] != "" {
		return normalName(e.Labels[ownedRecord]), true
	}
	return normalName(e.Name), false
}

// ownedType returns which of the types of a host a TXT record of the registry is about, "" for all of them. The name of the record has
// the type before a hyphen, or as a label of its own.
func (e Endpoint) ownedType(types []string) string {
	if len(types) == 1 {
		return types[0]
	}
	best, at, name := "", -1, strings.ToLower(e.Name)
	for _, t := range types {
		i := strings.Index(name, strings.ToLower(t)+"-")
		if label := strings.Index(name, strings.ToLower(t)+"."); i < 0 || label >= 0 && label < i && strings.Contains(name[:label], "-") {
			i = label
		}
		if i >= 0 && (at < 0 || i < at || i == at && len(t) > len(best)) {
			best, at = t, i
		}
	}
	return best
}
