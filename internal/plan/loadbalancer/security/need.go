package security

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/spec"
)

// need is what a Service needs of the security rules at a destination.
type need struct {
	kind needKind
	port portNeed
	rule string // its name in lower case
}

type needKind int

const (
	needPort     needKind = iota // a port is open
	needDenial                   // everything else is denied
	needAllPorts                 // any port may be open: a rule for all ports leads there, of unknown sources
	needRule                     // one security rule, and nothing else
)

// portNeed is a port of a protocol.
type portNeed struct{ protocol, port string }

func portOf(protocol, port string) portNeed { return portNeed{strings.ToLower(protocol), port} }

// destination is where something is needed: an address, or all nodes, maybe of one family.
type destination struct {
	address string
	nodes   bool
	family  v1.IPFamily
}

func at(address string) destination { return destination{address: address} }

func atNodes(family v1.IPFamily) destination { return destination{nodes: true, family: family} }

// needs is what others than the batch's Services need at each destination.
type needs struct {
	index *index.Index
	all   map[needAt]bool
}

// needAt is what is needed at a destination.
type needAt struct {
	to   destination
	what need
}

func (n needs) add(to destination, what need) { n.all[needAt{to, what}] = true }

func (n needs) addPort(to destination, protocol, port string) {
	n.add(to, need{kind: needPort, port: portOf(protocol, port)})
}

// at is what others need at an address, which may be a node's.
func (n needs) at(text string) func(need) bool {
	all := []destination{at(text)}
	if ip, err := netip.ParseAddr(text); err == nil && n.index.NodeIPs[ip] {
		all = append(all, atNodes(""), atNodes(address.Family(ip)))
	}
	return func(what need) bool {
		return slices.ContainsFunc(all, func(to destination) bool { return n.all[needAt{to, what}] })
	}
}

// needsOfOthers is what others than the batch's Services need: by the rules that Services have at frontends, and by
// the objects of Services that are known. A Service that is not known may want a denial wherever it is.
func needsOfOthers(x *index.Index, b *batch.Batch, rules *ruleSet) needs {
	n := needs{x, map[needAt]bool{}}
	known := map[string]*spec.Spec{} // by owner
	for _, o := range others(x, b) {
		s := spec.WithAccess(o)
		known[s.Owner] = s
		n.addService(s, rules)
	}
	for lb, r := range x.Rules() {
		if owner := naming.Owner(r.Name); r.Properties.FrontendIPConfiguration != nil && naming.IsOwned(r.Name) && !b.Has(owner) {
			n.addRule(lb, r.Properties, known[owner])
		}
	}
	return n
}

// others are the Services that are known and not of the batch.
func others(x *index.Index, b *batch.Batch) []spec.Service {
	var all []spec.Service
	for _, o := range x.Others {
		all = append(all, spec.Service{Service: o})
	}
	for _, s := range x.Services { // those that are left as they are
		if !b.Has(naming.OwnerOf(s.Service)) {
			all = append(all, s)
		}
	}
	return all
}

// addRule adds what a Service needs where a rule of it leads. s is nil for a Service that is not known.
func (n needs) addRule(lb *index.LoadBalancer, r network.LoadBalancingRule, s *spec.Spec) {
	to, port := at(n.index.Address(index.Frontend{LB: lb, Name: r.FrontendIPConfiguration.ID.Name()})), r.FrontendPort
	denied := s == nil || s.Access.Deny
	if !floats(r) {
		to, port = atNodes(""), r.BackendPort
		if s != nil { // its object says what it wants denied, and of all ports which ones are let in
			denied = false
			if port == 0 && s.AllPorts() {
				return
			}
		}
	}
	if to == at("") {
		return
	}
	n.addPort(to, r.Protocol, strconv.Itoa(int(port)))
	if denied {
		n.add(to, need{kind: needDenial})
	}
}

func floats(r network.LoadBalancingRule) bool {
	return r.EnableFloatingIP != nil && *r.EnableFloatingIP
}

// addService adds what a Service serves, and wants denied, at the addresses that its object shows.
func (n needs) addService(s *spec.Spec, rules *ruleSet) {
	ports := s.PortsByProtocol(s.Fixed && !s.AllPorts())
	further, _ := key.AdditionalIPs.Read(s.Service.Annotations)
	for _, address := range s.Service.KnownAddresses() {
		for _, o := range ports {
			for _, port := range o.Ports {
				n.addPort(at(address), o.Protocol, port)
			}
		}
		if s.Access.Deny && (!s.Fixed || slices.Contains(further, address)) {
			n.add(at(address), need{kind: needDenial})
		}
	}
	for _, family := range s.Service.Families() {
		if s.Access.Deny && s.Fixed {
			n.add(atNodes(family), need{kind: needDenial})
		}
		if s.AllPorts() && !s.Floats(family) {
			n.addAllPorts(s, family, rules)
		}
	}
}

// addAllPorts adds what a Service with one rule for all ports needs at the nodes' own addresses, where others may
// have the same ports. Where all that it asks for exists, it needs that alone. Else it may have asked for something
// else before, which only the security rules show.
func (n needs) addAllPorts(s *spec.Spec, family v1.IPFamily, rules *ruleSet) {
	asked := s.Openings(family, false)
	has := !slices.ContainsFunc(asked, func(o spec.Opening) bool {
		r, there := rules.byName[strings.ToLower(o.Name())]
		return !there || !r.leadsTo(n.index.NodeIPs)
	})
	for _, o := range asked {
		if has {
			n.add(atNodes(family), need{kind: needRule, rule: strings.ToLower(o.Name())})
			continue
		}
		for _, port := range o.Ports {
			n.addPort(atNodes(family), o.Protocol, port)
		}
	}
	if !has && usesNodes(n.index, batch.Served{Spec: s}) {
		n.add(atNodes(family), need{kind: needAllPorts})
	}
}

// usesNodes reports whether packets of a Service arrive at nodes' own addresses, now or after the decision.
func usesNodes(x *index.Index, s batch.Served) bool {
	if slices.ContainsFunc(s.Placements, func(p batch.Placement) bool { return !p.Floating }) {
		return true
	}
	return slices.ContainsFunc(x.LoadBalancers, func(lb *index.LoadBalancer) bool {
		return slices.ContainsFunc(lb.RulesOf[s.Owner], func(r network.LoadBalancingRule) bool { return !floats(r) })
	})
}
