package records

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"kaz/internal/azure"
)

// Options are the rules of an administrator.
type Options struct {
	Protect    []*regexp.Regexp // names that are never changed
	DefaultTTL int64            // seconds, of records without a TTL
	// MostDeleted is how many percent of a zone's record sets may be deleted at once, 0 for all. Ten may always be.
	MostDeleted int
	// Cluster is the id of the cluster in record sets that clusters share, "" if it shares none.
	Cluster string
	// Traffic is the resource group of Traffic Manager profiles, "" for that of each zone.
	Traffic azure.ID
}

// Snapshot is what was read of Azure.
type Snapshot struct {
	Zones []Zone
	Sets  map[Key]Set
}

// Step is one write.
type Step struct {
	Verb azure.Verb
	ID   azure.ID
	Key  Key
	Zone Zone
	// IfMatch is the etag that the set must have. Create demands that it does not exist.
	IfMatch string
	Create  bool
	Body    azure.Document
	// Restore is the document that brings back a deleted set if a later step of the host fails. It is only set for sets that make room
	// for others.
	Restore azure.Document
	// Claim marks the TXT record that claims a new record. It is removed if the new record is not written.
	Claim bool
	Why   string
	// Before and After are writes of Traffic Manager before and after this one.
	Before, After []Write

	change change
}

func (s Step) String() string {
	condition := "if unchanged"
	if s.Create {
		condition = "if absent"
	}
	return fmt.Sprintf("%s %s %s %s: %s", s.Verb, s.Key.Type, s.Zone.full(s.Key.Name), condition, s.Why)
}

// Host is the steps of a name and of the TXT records that own its records. They are carried out one after another, and a step that fails
// ends them.
type Host struct {
	Name  string
	Steps []Step
}

// Plan is what to write.
type Plan struct {
	Hosts    []Host // in the order of their names; they do not depend on each other
	Problems []Problem
	// Held is how many deletions were held back because they are too many at once.
	Held int
	// Last are the sets that answer this cluster without a ready endpoint because no other cluster is known there.
	Last []Key
}

// change is what ExternalDNS wants of one record set: old is how it saw it, new how it is to be. nil stands for none.
type change struct {
	old, new *admitted
	registry bool // a TXT record of the registry
	ttl      int64
	cluster  string
	traffic  azure.ID
	parts    []part // of a shared set
	marks    *Marks // of a shared set, in place of what ExternalDNS wants
}

func (c change) any() *admitted {
	if c.new != nil {
		return c.new
	}
	return c.old
}

func (c change) key() Key { a := c.any(); return keyOf(a.zone, a.relative, a.endpoint.Type) }

// errConflict is the reason why a set is left as it is.
var errConflict = errors.New("the record set is not what ExternalDNS saw")

// step returns the write of a change, nil if Azure has what is wanted. have is the record set as it is, nil if there is none.
func (c change) step(have *Set) (*Step, error) {
	a := c.any()
	s := &Step{ID: a.zone.set(a.endpoint.Type, a.relative), Key: c.key(), Zone: a.zone, change: c}
	if have != nil && have.Own {
		return nil, fmt.Errorf("%w: it belongs to Azure", errConflict)
	}
	if have != nil && have.Unreadable != nil {
		return nil, have.Unreadable
	}
	switch {
	case c.marks != nil:
		return c.marked(s, have)
	case len(c.parts) > 0:
		return c.shared(s, have)
	}
	return c.alone(s, have)
}

// alone returns the write of a set that is not shared, nil if Azure has what is wanted.
func (c change) alone(s *Step, have *Set) (*Step, error) {
	if have != nil && len(have.Shares) > 0 {
		return nil, fmt.Errorf("%w: clusters share it, so that it needs a set identifier", errConflict)
	}
	if c.new == nil {
		return c.removal(s, have)
	}
	want := c.new.want(c.ttl)
	if have == nil {
		s.Verb, s.Create, s.Why = azure.Put, true, "create"
		s.Claim = c.registry
		var err error
		s.Body, err = want.document(nil)
		return s, err
	}
	if c.old != nil && want.Type == "TXT" {
		want.Targets = c.texts(have, want.Targets)
	}
	if want.isAs(*have) {
		return nil, nil
	}
	if c.old == nil {
		return nil, fmt.Errorf("%w: it exists already", errConflict)
	}
	if !c.saw(have) {
		return nil, fmt.Errorf("%w: it has %q", errConflict, have.Targets)
	}
	s.Verb, s.IfMatch, s.Why = azure.Put, have.Etag, "update"
	var err error
	s.Body, err = want.document(have)
	return s, err
}

func (c change) removal(s *Step, have *Set) (*Step, error) {
	if have == nil {
		return nil, nil
	}
	if !c.saw(have) {
		return nil, fmt.Errorf("%w: it has %q", errConflict, have.Targets)
	}
	s.Verb, s.IfMatch, s.Why = azure.Delete, have.Etag, "delete"
	if have.Type != "TXT" {
		return s, nil
	}
	rest := c.texts(have, nil)
	if len(rest) == 0 {
		return s, nil
	}
	s.Verb, s.Why = azure.Put, "remove a text"
	want := wanted{Zone: have.Zone, Name: have.Name, Type: have.Type, TTL: have.TTL, Metadata: withoutEmpty(have.Metadata), Targets: rest}
	var err error
	s.Body, err = want.document(have)
	return s, err
}

// saw reports whether a set is as ExternalDNS saw it. Of TXT records, others may have added more.
func (c change) saw(have *Set) bool {
	if have.Type == "TXT" {
		return len(c.ours(have)) > 0
	}
	old := c.old.endpoint
	if have.Alias != "" || old.alias() != "" {
		return have.Alias == old.alias()
	}
	return sameTargets(have.Type, have.Targets, old.Targets)
}

// ours returns the texts of a TXT record set that ExternalDNS means.
func (c change) ours(have *Set) (all []string) {
	for _, text := range have.Targets {
		if slices.Contains(c.old.endpoint.Targets, text) || c.registry && (isHeritage(text) || isEncrypted(text)) {
			all = append(all, text)
		}
	}
	return all
}

// texts returns the texts of a set with those that ExternalDNS means replaced.
func (c change) texts(have *Set, by []string) []string {
	ours := c.ours(have)
	all := slices.Clone(by)
	for _, text := range have.Targets {
		if !slices.Contains(ours, text) && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// Again returns the step anew after Azure had another record set than the snapshot. It returns nil if Azure has what is wanted, and an
// error if the set is not what ExternalDNS saw. have is nil if there is no such set.
func (s Step) Again(have *Set) (*Step, error) {
	again, err := s.change.step(have)
	if again != nil {
		again.Restore = s.Restore
		if s.Restore != nil && have != nil {
			again.Restore, err = restored(*have)
		}
	}
	return again, err
}

// Host returns the full name of the record set.
func (s Step) Host() string { return s.Zone.full(s.Key.Name) }
