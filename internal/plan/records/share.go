package records

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"kaz/internal/azure"
)

// sharePrefix begins the keys of metadata with the contributions to a shared record set. The set identifier follows.
const sharePrefix = "kaz-set-"

// longestShare is the size in bytes of the contributions to a record set. The limit of Azure is not documented.
const longestShare = 8 << 10

// Contribution is what one cluster has in a record set that several clusters share.
type Contribution struct {
	Cluster  string   `json:"cluster"`
	TTL      int64    `json:"ttl"`
	Targets  []string `json:"targets"`
	Resource string   `json:"resource,omitempty"` // KIND/NAMESPACE/NAME of the object that it comes from
	Of       string   `json:"of,omitempty"`       // of a TXT record of the registry: the name that it is about
	Out      Out      `json:"out,omitempty"`
	Routing  *Routing `json:"routing,omitempty"` // nil for a set that answers the targets of all clusters
}

// Out is why a contribution is not answered, "" if it is. If all contributions of a set are out, all are answered.
type Out string

// The reasons.
const (
	Silent Out = "silent" // the cluster has not renewed its lease
	Empty  Out = "empty"  // no endpoint is ready
)

func (c Contribution) equal(other Contribution) bool {
	return c.Cluster == other.Cluster && c.TTL == other.TTL && slices.Equal(c.Targets, other.Targets) && c.Resource == other.Resource &&
		c.Of == other.Of && c.Out == other.Out && c.Routing.equal(other.Routing)
}

// Shares are the contributions to a record set by their set identifiers.
type Shares map[string]Contribution

// readShares returns the contributions in the metadata of a record set, nil for none.
func readShares(metadata map[string]string) (Shares, error) {
	var all Shares
	for key, value := range metadata {
		id, ok := cutFold(key, sharePrefix)
		if !ok {
			continue
		}
		var c Contribution
		if err := json.Unmarshal([]byte(value), &c); err != nil || c.Cluster == "" || len(c.Targets) == 0 || c.Routing.check() != nil {
			return nil, fmt.Errorf("%w: its metadata %s is no contribution of a cluster: %q", errConflict, key, value)
		}
		if all == nil {
			all = Shares{}
		}
		all[id] = c
	}
	return all, nil
}

// cutFold cuts a prefix in any case and returns the rest in lower case.
func cutFold(text, prefix string) (string, bool) {
	return strings.CutPrefix(strings.ToLower(text), prefix)
}

// foreign returns metadata without contributions.
func foreign(metadata map[string]string) map[string]string {
	all := map[string]string{}
	for key, value := range metadata {
		if _, ok := cutFold(key, sharePrefix); !ok {
			all[key] = value
		}
	}
	return all
}

// metadata returns the metadata of a set with contributions.
func (s Shares) metadata(other map[string]string) (map[string]string, error) {
	all, size := maps.Clone(other), 0
	if all == nil {
		all = map[string]string{}
	}
	for id, c := range s {
		text, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		all[sharePrefix+id] = string(text)
		size += len(text)
	}
	if size > longestShare {
		return nil, fmt.Errorf("%w: the contributions of all clusters have %d bytes; at most %d are stored with a record set", errConflict,
			size, longestShare)
	}
	return all, nil
}

// Live returns the set identifiers of the contributions that are answered, in order.
func (s Shares) Live() (ids []string) {
	for id, c := range s {
		if c.Out == "" {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		ids = slices.Collect(maps.Keys(s))
	}
	slices.Sort(ids)
	return ids
}

// ttl returns the shortest TTL of the contributions that are answered.
func (s Shares) ttl() (shortest int64) {
	for i, id := range s.Live() {
		if c := s[id]; i == 0 || c.TTL < shortest {
			shortest = c.TTL
		}
	}
	return shortest
}

// targets returns what a set answers: other targets first, then those of each cluster in turn, so that each one has its share if there
// are more than a set can have.
func (s Shares) targets(other []string, most int) []string {
	all := slices.Clone(other)
	ids := s.Live()
	for turn := 0; ; turn++ {
		more := false
		for _, id := range ids {
			targets := s[id].Targets
			if turn >= len(targets) {
				continue
			}
			more = true
			if !slices.Contains(all, targets[turn]) && len(all) < most {
				all = append(all, targets[turn])
			}
		}
		if !more {
			return all
		}
	}
}

// others returns the targets of a shared set that no cluster contributes. They stay.
func (s Set) others() (all []string) {
	if s.Alias != "" {
		return nil
	}
	for _, target := range s.Targets {
		contributed := false
		for _, c := range s.Shares {
			contributed = contributed || slices.Contains(c.Targets, target)
		}
		if !contributed {
			all = append(all, target)
		}
	}
	return all
}

// identifierForm is the form of set identifiers and of the ids of clusters: they are labels of names too.
var identifierForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// CheckIdentifier returns why a text is no set identifier or id of a cluster.
func CheckIdentifier(text string) error {
	if !identifierForm.MatchString(text) {
		return fmt.Errorf("%q: must have 1 to 32 lower-case letters, digits and hyphens, and neither begin nor end with a hyphen", text)
	}
	return nil
}

// part is what a cluster wants of its contribution to a record set: old is how it saw it, new how it is to be. nil stands for none.
// Without an identifier it is about the whole set.
type part struct {
	id       string
	old, new *admitted
}

// fold joins the changes of one record set to one change of a shared set, if one of them has a set identifier.
func fold(changes []*change) []*change {
	shared := map[Key][]*change{}
	for _, c := range changes {
		if c.any().endpoint.SetIdentifier != "" {
			shared[c.key()] = nil
		}
	}
	var all []*change
	for _, c := range changes {
		same, ok := shared[c.key()]
		if !ok || c.any().fatal {
			all = append(all, c)
			continue
		}
		if same == nil {
			same = []*change{{registry: c.registry, ttl: c.ttl, cluster: c.cluster, traffic: c.traffic}}
			all = append(all, same[0])
			shared[c.key()] = same
		}
		whole := same[0]
		whole.parts = append(whole.parts, part{c.any().endpoint.SetIdentifier, c.old, c.new})
		whole.old, whole.new = first(whole.old, c.old), first(whole.new, c.new)
	}
	return all
}

func first(a, b *admitted) *admitted {
	if a != nil {
		return a
	}
	return b
}

// shared returns the write of a change of a shared set. Only the contributions of this cluster change.
func (c change) shared(s *Step, have *Set) (*Step, error) {
	var now Set // of none, nothing
	if have != nil {
		now = *have
	}
	shares, other := Shares{}, now.others()
	maps.Copy(shares, now.Shares)
	rest, claimed, err := c.claim(have)
	if err != nil {
		return nil, err
	}
	if claimed {
		other = rest
	}
	if err := c.contribute(shares, have != nil && len(shares) == 0 && !claimed); err != nil {
		return nil, err
	}
	whole := c.whole()
	if err := shares.check(whole); err != nil {
		return nil, err
	}
	if len(shares) == 0 && whole == nil && len(other) == 0 {
		s.Before, s.After, err = c.trafficWrites(now.Shares, nil)
		return removed(s, have), err
	}
	want := wanted{
		Zone: s.Zone, Name: c.any().relative, Type: s.Key.Type, Shares: shares, Metadata: foreign(now.Metadata), TTL: now.TTL,
	}
	if shares.routed() {
		want.Alias, other = strings.ToLower(string(c.profile())), nil
	}
	if len(shares) > 0 {
		want.TTL = shares.ttl()
	}
	if whole != nil {
		want = whole.wholeSet(want, other, c.ttl)
	}
	return c.write(s, have, want, other)
}

// check returns why contributions do not fit each other, or a cluster that wants the set for itself.
func (s Shares) check(whole *admitted) error {
	if whole != nil && len(s) > 0 {
		return fmt.Errorf("%w: clusters %s share the name, so that it needs a set identifier", errConflict,
			strings.Join(slices.Sorted(maps.Keys(s)), ", "))
	}
	return s.checkRouting()
}

// wholeSet returns a set that this cluster has for itself from now on. Other targets stay.
func (a *admitted) wholeSet(want wanted, other []string, ttl int64) wanted {
	one := a.want(ttl)
	one.Targets = append(slices.Clone(one.Targets), other...)
	if a.zone.Private {
		one.Metadata = want.Metadata
	}
	return one
}

// removed returns the deletion of a set, nil if there is none.
func removed(s *Step, have *Set) *Step {
	if have == nil {
		return nil
	}
	s.Verb, s.IfMatch, s.Why = azure.Delete, have.Etag, "delete"
	return s
}

// write returns the write of a shared set, nil if Azure has what is wanted.
func (c change) write(s *Step, have *Set, want wanted, other []string) (*Step, error) {
	t, _ := typeNamed(want.Type, s.Zone.Private)
	if len(want.Shares) > 0 && want.Alias == "" {
		want.Targets = want.Shares.targets(other, mostRecords)
	}
	if t.one && len(want.Targets) > 1 {
		return nil, fmt.Errorf("%w: there can be one target, and clusters have %q", errConflict, want.Targets)
	}
	if have != nil && want.isAs(*have) {
		return nil, nil
	}
	var err error
	if have != nil {
		s.Before, s.After, err = c.trafficWrites(have.Shares, want.Shares)
	} else {
		s.Before, s.After, err = c.trafficWrites(nil, want.Shares)
	}
	if err != nil {
		return nil, err
	}
	s.Verb, s.Claim, s.Why = azure.Put, c.registry, "share"
	if have == nil {
		s.Create = true
	} else {
		s.IfMatch = have.Etag
	}
	s.Body, err = want.document(have)
	return s, err
}

// whole returns the set as it is to be without contributions, nil if that is not wanted.
func (c change) whole() *admitted {
	for _, p := range c.parts {
		if p.id == "" && p.new != nil {
			return p.new
		}
	}
	return nil
}

// claim reports whether a set is one that this cluster had for itself and shares from now on. It returns the texts that stay in it.
func (c change) claim(have *Set) (rest []string, ok bool, err error) {
	i := slices.IndexFunc(c.parts, func(p part) bool { return p.id == "" && p.old != nil })
	if i < 0 || have == nil || len(have.Shares) > 0 {
		return nil, false, nil
	}
	one := change{old: c.parts[i].old, registry: c.registry}
	if !one.saw(have) {
		return nil, false, fmt.Errorf("%w: it has %q", errConflict, have.Targets)
	}
	if have.Type == "TXT" {
		rest = one.texts(have, nil)
	}
	return rest, true, nil
}

// contribute makes the parts of a change in the contributions to a set. taken is true for a set that others have for themselves.
func (c change) contribute(shares Shares, taken bool) error {
	for _, p := range c.parts {
		if p.id == "" {
			continue
		}
		old, exists := shares[p.id]
		switch {
		case exists && old.Cluster != c.cluster:
			return fmt.Errorf("%w: set identifier %q belongs to cluster %q", errConflict, p.id, old.Cluster)
		case p.new == nil:
			delete(shares, p.id)
		case taken:
			return fmt.Errorf("%w: it exists already, and is not shared", errConflict)
		default:
			shares[p.id] = p.contribution(c, old.Out)
		}
	}
	return nil
}

// contribution returns the contribution that is wanted. What takes it out stays.
func (p part) contribution(c change, out Out) Contribution {
	want := p.new.want(c.ttl)
	made := Contribution{
		Cluster: c.cluster, TTL: want.TTL, Targets: want.Targets, Resource: p.new.endpoint.Labels[resourceLabel], Out: out,
	}
	if r, err := p.new.endpoint.readRouting(); err == nil { // it was admitted
		made.Routing = r
	}
	if owned, registry := p.new.endpoint.owned(); registry {
		made.Of = owned
	}
	return made
}
