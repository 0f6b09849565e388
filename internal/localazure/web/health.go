package web

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/appgateway"
	"kaz/internal/localazure/plane/fabric/wiring"
)

// health is that of the members of a load balancing rule, or of a pool of an application gateway.
type health struct {
	Of      string
	Healthy int
	Members []member
}

// member is a member of a backend pool.
type member struct {
	Address string
	state   memberState
}

// memberState is what probes know of a member. The larger one of two is the worse one.
type memberState int

const (
	healthy   memberState = iota // it gets new connections
	unknown                      // no probe has reached it
	unhealthy                    // probes fail
)

// String is the state of the member.
func (m member) String() string {
	return [...]string{"healthy", "not probed yet", "not healthy"}[m.state]
}

// State is the class of the state.
func (m member) State() string { return [...]string{"good", "warn", "bad"}[m.state] }

// add adds a member.
func (h *health) add(m member) {
	if m.state == healthy {
		h.Healthy++
	}
	h.Members = append(h.Members, m)
}

// State is the class of how much of a rule or a pool works.
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
		h := health{Of: b.Rule.Name()}
		for _, address := range b.Backends {
			m := member{address.String(), unhealthy}
			if slices.Contains(b.Healthy, address) {
				m.state = healthy
			}
			h.add(m)
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

// membersOf returns the health of the members of each rule of a load balancer, or of each pool of an application gateway.
func (s *Site) membersOf(id azure.ID, doc behaviour.Object) (all []health) {
	if id.Is(gateways) {
		return healthOfPools(doc)
	}
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

// probed are the states of members as documents of application gateways spell them.
var probed = map[string]memberState{"Healthy": healthy, "Unknown": unknown, "Unhealthy": unhealthy}

// healthOfPools returns the health of the members of the pools of an application gateway, in the order of the pools. Several backend
// settings can probe a member: the worst of what they find is its health.
func healthOfPools(doc behaviour.Object) (all []health) {
	found := appgateway.HealthIn(doc)
	for _, pool := range behaviour.Objects(doc, "properties.backendAddressPools") {
		h := health{Of: behaviour.Text(pool, "name")}
		members := map[string]memberState{}
		for _, f := range found {
			if strings.EqualFold(f.Pool, h.Of) {
				members[f.Address] = max(members[f.Address], probed[f.State])
			}
		}
		for _, address := range slices.Sorted(maps.Keys(members)) {
			h.add(member{address, members[address]})
		}
		if len(h.Members) > 0 {
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
func (h health) String() string { return fmt.Sprintf("healthy %d of %d", h.Healthy, len(h.Members)) }
