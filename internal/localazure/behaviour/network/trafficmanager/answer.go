package trafficmanager

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// Query is what decides about an answer besides the documents.
type Query struct {
	// Client is the address of the client or of its name server. The zero value is an unknown address.
	Client netip.Addr
	// Region is the Azure region of the client, "" if it is in none.
	Region string
	// IPv4 and IPv6 say which addresses the query asks for.
	IPv4, IPv6 bool
}

// Answer is the answer of a profile.
type Answer struct {
	// Exists is false for a profile that is disabled: its name does not exist.
	Exists bool
	// TTL is in seconds.
	TTL int
	// Targets are one DNS name, or addresses.
	Targets []string
}

// Resolve returns the answer of a profile to a query.
func Resolve(w behaviour.World, profile azure.ID, q Query) Answer {
	doc, ok := w.Get(profile)
	if !ok || isDisabled(doc, "properties.profileStatus") {
		return Answer{}
	}
	ttl, _ := behaviour.Int(doc, "properties.dnsConfig.ttl")
	return Answer{Exists: true, TTL: ttl, Targets: targets(w, doc, q, deepest)}
}

// candidate is an endpoint that can be in an answer.
type candidate struct {
	doc   behaviour.Object
	state State
}

func (c candidate) healthy() bool { return c.state != Degraded }

func (c candidate) number(name string) int {
	n, _ := behaviour.Int(c.doc, "properties."+name)
	return n
}

// targets returns the targets of the endpoints that the method of a profile chooses, of nested profiles too. If all endpoints are
// degraded, they count as healthy.
func targets(w behaviour.World, profile behaviour.Object, q Query, left int) []string {
	if left == 0 {
		return nil
	}
	var all []candidate
	for _, e := range endpoints(profile) {
		s := endpointState(w, profile, e, left)
		if s == Disabled || s == Inactive || s == Stopped {
			continue
		}
		all = append(all, candidate{e, s})
	}
	if !slices.ContainsFunc(all, candidate.healthy) {
		for i := range all {
			all[i].state = Online
		}
	}
	m, ok := methods[method(profile)]
	if !ok {
		return nil
	}
	var found []string
	for _, c := range m.choose(choice{w, profile, all, q}) {
		if kindOf(c.doc) != nestedKind {
			found = append(found, behaviour.Text(c.doc, "properties.target"))
			continue
		}
		if child, ok := w.Get(azure.ID(behaviour.Text(c.doc, "properties.targetResourceId"))); ok {
			found = append(found, targets(w, child, q, left-1)...)
		}
	}
	return found
}

// choice is what a method chooses by. The endpoints are those that are not disabled or stopped.
type choice struct {
	world   behaviour.World
	profile behaviour.Object
	all     []candidate
	query   Query
}

const multiValue = "MultiValue"

// methods are the routing methods: what they want of the endpoints, and which endpoints they choose.
var methods = map[string]struct {
	check  func(profile azure.ID, all []behaviour.Object) error
	choose func(choice) []candidate
}{
	"Priority":    {nil, byPriority},
	"Weighted":    {nil, byWeight},
	"Performance": {checkLocations, byRegion},
	"Geographic":  {checkGeography, byGeography},
	"Subnet":      {checkSubnets, bySubnet},
	multiValue:    {checkAddresses, several},
}

func method(profile behaviour.Object) string {
	return behaviour.Text(profile, "properties.trafficRoutingMethod")
}

func (c choice) healthy() []candidate {
	return slices.DeleteFunc(slices.Clone(c.all), func(x candidate) bool { return !x.healthy() })
}

func byPriority(c choice) []candidate {
	all := c.healthy()
	if len(all) == 0 {
		return nil
	}
	return []candidate{slices.MinFunc(all, func(a, b candidate) int { return cmp.Compare(a.number("priority"), b.number("priority")) })}
}

// byWeight draws an endpoint in proportion to the weights, from the seeded source of the local Azure.
func byWeight(c choice) []candidate {
	all, total := c.healthy(), 0
	for _, x := range all {
		total += max(1, x.number("weight"))
	}
	if total == 0 {
		return nil
	}
	drawn := c.world.Intn(total)
	for _, x := range all {
		if drawn -= max(1, x.number("weight")); drawn < 0 {
			return []candidate{x}
		}
	}
	return nil
}

// byRegion returns an endpoint in the client's region. Other regions count as equally far: the local Azure has no latencies between them.
func byRegion(c choice) []candidate {
	all := c.healthy()
	near := slices.DeleteFunc(slices.Clone(all), func(x candidate) bool {
		return c.query.Region == "" || normal(regionOf(c.world, x.doc)) != normal(c.query.Region)
	})
	if len(near) > 0 {
		all = near
	}
	if len(all) == 0 {
		return nil
	}
	return []candidate{all[c.world.Intn(len(all))]}
}

func regionOf(w behaviour.World, endpoint behaviour.Object) string {
	if region := behaviour.Text(endpoint, "properties.endpointLocation"); region != "" {
		return region
	}
	doc, _ := w.Get(azure.ID(behaviour.Text(endpoint, "properties.targetResourceId")))
	return behaviour.Text(doc, "location")
}

func normal(region string) string { return strings.ToLower(strings.ReplaceAll(region, " ", "")) }

// byGeography returns the endpoint with the whole world: where a client is, the local Azure does not know. Another endpoint does not stand
// in for it.
func byGeography(c choice) []candidate {
	for _, x := range c.all {
		world := func(code string) bool { return strings.EqualFold(code, "WORLD") }
		if slices.ContainsFunc(behaviour.Texts(x.doc, "properties.geoMapping"), world) && x.healthy() {
			return []candidate{x}
		}
	}
	return nil
}

// bySubnet returns the endpoint with the client's address, or that for all other addresses. Another endpoint does not stand in for it.
func bySubnet(c choice) []candidate {
	var rest []candidate
	for _, x := range c.all {
		subnets := behaviour.Objects(x.doc, "properties.subnets")
		if len(subnets) == 0 {
			rest = []candidate{x}
		}
		for _, s := range subnets {
			first, last, ok := rangeOf(s)
			if ok && c.query.Client.IsValid() && first.Compare(c.query.Client) <= 0 && c.query.Client.Compare(last) <= 0 {
				return choice{all: []candidate{x}}.healthy()
			}
		}
	}
	return choice{all: rest}.healthy()
}

// several returns at most maxReturn endpoints of the family that the query asks for, beginning at another one each time.
func several(c choice) []candidate {
	all := slices.DeleteFunc(c.healthy(), func(x candidate) bool {
		t := recordType(x.doc)
		return t == ipv4Address && !c.query.IPv4 || t == ipv6Address && !c.query.IPv6
	})
	if len(all) == 0 {
		return nil
	}
	most, given := behaviour.Int(c.profile, "properties.maxReturn")
	if !given {
		most = 2 // what Azure returns by default
	}
	first := c.world.Intn(len(all))
	return slices.Concat(all[first:], all[:first])[:min(most, len(all))]
}
