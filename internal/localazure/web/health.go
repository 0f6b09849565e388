package web

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/fabric/wiring"
)

// health is that of the members of a load balancing rule.
type health struct {
	Rule    string
	Healthy int
	Members []member
}

// member is a member of a backend pool.
type member struct {
	Address netip.Addr
	Healthy bool // it gets new connections
}

// Of is the number of members.
func (h health) Of() int { return len(h.Members) }

// State is the class of how much of a rule works.
func (h health) State() string {
	switch h.Healthy {
	case len(h.Members):
		return "good"
	case 0:
		return "bad"
	}
	return "warn"
}

// ShowBalancers lets the pages show which members of load balancing rules are healthy. A local Azure with machines that run calls it
// after each change.
func (s *Site) ShowBalancers(all []wiring.Balancer) {
	found := make(map[string]health, len(all))
	for _, b := range all {
		h := health{Rule: b.Rule.Name()}
		for _, address := range b.Backends {
			m := member{address, slices.Contains(b.Healthy, address)}
			if m.Healthy {
				h.Healthy++
			}
			h.Members = append(h.Members, m)
		}
		found[b.Rule.Key()] = h
	}
	s.mu.Lock()
	same := reflect.DeepEqual(found, s.health)
	s.health = found
	s.mu.Unlock()
	if !same {
		s.Recorder.tell()
	}
}

// healthOf returns the health of the members of a rule. It reports whether that is known, and there are some.
func (s *Site) healthOf(rule string) (health, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.health[rule]
	return h, len(h.Members) > 0
}

// withHealth adds the health of its members to each rule.
func (s *Site) withHealth(rows []row) {
	for i, r := range rows {
		if h, known := s.healthOf(r.rule); known {
			rows[i].Health = &h
		}
	}
}

// membersOf returns the health of the members of each rule of a load balancer.
func (s *Site) membersOf(id azure.ID, doc behaviour.Object) (all []health) {
	if !id.Is(loadBalancers) {
		return nil
	}
	for _, r := range behaviour.Objects(doc, "properties.loadBalancingRules") {
		if h, known := s.healthOf(ruleKey(r)); known {
			all = append(all, h)
		}
	}
	return all
}

// ruleKey is the key of the id of a load balancing rule.
func ruleKey(rule behaviour.Object) string {
	id, err := azure.ParseID(behaviour.Text(rule, "id"))
	if err != nil {
		return ""
	}
	return id.Key()
}

// String is how many members are healthy.
func (h health) String() string { return fmt.Sprintf("healthy %d of %d", h.Healthy, h.Of()) }
