package records

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kaz/internal/azure"
)

// LeaseLabel is the last label of the relative names of leases. The id of the cluster goes before it.
const LeaseLabel = "_kaz-lease"

// leaseTTL is the TTL of a lease in seconds. Nothing resolves it.
const leaseTTL = 300

// Lease is a TXT record with which a cluster says that its contributions to the record sets of a zone are good. Others see that it lives
// because the record changes; its clock does not matter.
type Lease struct {
	Cluster string
	Every   time.Duration // between two renewals
	At      time.Time     // of the renewal, by the clock of the cluster
}

// Text returns the text of the TXT record.
func (l Lease) Text() string {
	return fmt.Sprintf(`"kaz-lease cluster=%s every=%d at=%s"`, l.Cluster, int(l.Every.Seconds()), l.At.UTC().Format(time.RFC3339))
}

// ReadLease reads the lease in a record set, and returns false if there is none.
func ReadLease(s Set) (l Lease, ok bool) {
	if len(s.Targets) != 1 || !s.isLease() {
		return Lease{}, false
	}
	kind, rest, _ := strings.Cut(strings.Trim(s.Targets[0], `"`), " ")
	for field := range strings.FieldsSeq(rest) {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "cluster":
			l.Cluster = value
		case "every":
			n, _ := strconv.Atoi(value)
			l.Every = time.Duration(n) * time.Second
		case "at":
			l.At, _ = time.Parse(time.RFC3339, value)
		}
	}
	return l, kind == "kaz-lease" && l.Every > 0 && s.Name == leaseName(l.Cluster)
}

func leaseName(cluster string) string { return cluster + "." + LeaseLabel }

// LeaseID returns the id of the record set with the lease of a cluster.
func LeaseID(z Zone, cluster string) azure.ID { return z.set("TXT", leaseName(cluster)) }

func (s Set) isLease() bool { return s.Type == "TXT" && strings.HasSuffix(s.Name, "."+LeaseLabel) }

// Renew returns the write of a lease. have is the lease as it is, nil if there is none.
func (l Lease) Renew(z Zone, have *Set) (Step, error) {
	s := Step{
		Verb: azure.Put, ID: LeaseID(z, l.Cluster), Key: keyOf(z, leaseName(l.Cluster), "TXT"), Zone: z, Create: have == nil,
		Why: "renew the lease",
	}
	if have != nil {
		s.IfMatch = have.Etag
	}
	var err error
	s.Body, err = wanted{Zone: z, Name: leaseName(l.Cluster), Type: "TXT", TTL: leaseTTL, Targets: []string{l.Text()}}.document(nil)
	return s, err
}

// End returns the deletion of a lease.
func (l Lease) End(have Set) Step {
	return Step{
		Verb: azure.Delete, ID: LeaseID(have.Zone, l.Cluster), Key: have.Key(), Zone: have.Zone, IfMatch: have.Etag, Why: "end the lease",
	}
}

// Clusters returns the clusters that contribute to the record sets of a zone, in order.
func (s Snapshot) Clusters(z Zone) []string {
	all := map[string]bool{}
	for _, set := range s.Sets {
		if !set.Zone.ID.Equal(z.ID) {
			continue
		}
		for _, c := range set.Shares {
			all[c.Cluster] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Marks are what is known of the clusters that share record sets. They decide which contributions are answered.
type Marks struct {
	Cluster string // the id of this cluster
	// Silent are other clusters, by zone, that have not renewed their leases. Their contributions are taken out.
	Silent map[string][]string
	// Back are the zones in which this cluster has renewed its lease, so that its contributions are answered again.
	Back map[string]bool
	// Ready says of objects of this cluster, as KIND/NAMESPACE/NAME, whether an endpoint is ready. Objects that are not in it keep
	// what they have.
	Ready map[string]bool
	// Orphans are contributions of this cluster that nothing needs. They are removed.
	Orphans []Orphan
}

// Orphan is a TXT record of ExternalDNS's registry, in a set that clusters share, about a record that the cluster does not have. A program
// that ended between two writes left it.
type Orphan struct {
	Key Key
	ID  string // set identifier
}

// Orphans returns the orphans of a cluster, in the order of their names.
func (s Snapshot) Orphans(cluster string) (all []Orphan) {
	for key, set := range s.Sets {
		for id, c := range set.Shares {
			if c.Cluster == cluster && c.Of != "" && !s.contributes(cluster, id, c.Of) {
				all = append(all, Orphan{key, id})
			}
		}
	}
	slices.SortFunc(all, func(a, b Orphan) int {
		return cmp.Or(strings.Compare(a.Key.Zone, b.Key.Zone), strings.Compare(a.Key.Name, b.Key.Name), strings.Compare(a.ID, b.ID))
	})
	return all
}

// contributes reports whether a cluster has a contribution to a record of a name.
func (s Snapshot) contributes(cluster, id, name string) bool {
	zone, relative, _ := find(s.Zones, name)
	return slices.ContainsFunc(types, func(t recordType) bool {
		return s.Sets[keyOf(zone, relative, t.name)].Shares[id].Cluster == cluster
	})
}

// out returns why a contribution is not answered.
func (m Marks) out(zone string, c Contribution) Out {
	if c.Cluster != m.Cluster {
		if slices.Contains(m.Silent[zone], c.Cluster) {
			return Silent
		}
		return c.Out
	}
	ready, known := m.Ready[c.Resource]
	switch {
	case c.Out == Silent && !m.Back[zone]:
		return Silent
	case known && !ready:
		return Empty
	case known, c.Out == Silent:
		return ""
	}
	return c.Out
}

// shares returns contributions with what m says of them. If none of them would be answered, they stay as they are.
func (m Marks) shares(s Set) Shares {
	all, some := maps.Clone(s.Shares), false
	for id, c := range all {
		c.Out = m.out(s.Key().Zone, c)
		some = some || c.Out == ""
		all[id] = c
	}
	if !some {
		return s.Shares
	}
	return all
}

// last reports whether this cluster is answered though it is not ready: no other one would be.
func (m Marks) last(s Set) bool {
	for _, c := range s.Shares {
		if c.Cluster == m.Cluster && c.Out == "" && m.out(s.Key().Zone, c) == Empty {
			return true
		}
	}
	return false
}

// Mark returns the writes that take contributions out of shared record sets and back, in the order of their names.
func (s Snapshot) Mark(m Marks, o Options) (plan Plan) {
	for _, set := range s.Sets {
		a := &admitted{endpoint: Endpoint{Name: set.Zone.full(set.Name), Type: set.Type}, zone: set.Zone, relative: set.Name}
		c := change{old: a, marks: &m, cluster: m.Cluster}
		if set.Type == "TXT" { // it says what belongs to a cluster, dead or alive
			c = change{old: a, parts: m.orphans(a, set.Key()), cluster: m.Cluster, registry: true}
		}
		if len(set.Shares) == 0 || set.Shares.routed() || set.Type == "TXT" && len(c.parts) == 0 {
			continue
		}
		step, err := c.step(&set)
		if err != nil {
			plan.Problems = append(plan.Problems, Problem{a.endpoint.Name, set.Type, Conflict, err.Error()})
		}
		if step == nil && m.last(set) {
			plan.Last = append(plan.Last, set.Key())
		}
		if step != nil {
			for _, p := range c.parts {
				step.Before = append(step.Before, s.abandoned(set.Shares[p.id].Of, p.id, o)...)
			}
			plan.Hosts = append(plan.Hosts, Host{a.endpoint.Name, []Step{*step}})
		}
	}
	slices.SortFunc(plan.Hosts, func(a, b Host) int {
		return strings.Compare(a.Name+" "+a.Steps[0].Key.Type, b.Name+" "+b.Steps[0].Key.Type)
	})
	slices.SortFunc(plan.Last, func(a, b Key) int { return strings.Compare(a.Zone+a.Name+a.Type, b.Zone+b.Name+b.Type) })
	return plan
}

// orphans returns the contributions to a set that are removed.
func (m Marks) orphans(a *admitted, key Key) (all []part) {
	for _, o := range m.Orphans {
		if o.Key == key {
			all = append(all, part{id: o.ID, old: a})
		}
	}
	return all
}

// marked returns the write of a shared set after its clusters were judged, nil if nothing changes.
func (c change) marked(s *Step, have *Set) (*Step, error) {
	if have == nil || len(have.Shares) == 0 {
		return nil, nil
	}
	shares := c.marks.shares(*have)
	want := wanted{
		Zone: s.Zone, Name: have.Name, Type: have.Type, TTL: shares.ttl(), Metadata: foreign(have.Metadata), Shares: shares,
	}
	step, err := c.write(s, have, want, have.others())
	if step != nil {
		step.Why = "answer for the clusters that live"
	}
	return step, err
}
