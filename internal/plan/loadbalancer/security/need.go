package security

import (
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/spec"
)

// need is what a Service needs of the security rules at a destination: one field besides the destination is set.
type need struct {
	to      string // an address, allNodes, or a family for the nodes' addresses of it
	port    port   // is open
	rule    string // leads there, by its name in lower case
	denial  bool   // everything else is denied
	anyPort bool   // any port may be open: a rule for all ports leads there, of unknown sources
}

const allNodes = "nodes"

// port is a port of a protocol in lower case.
type port struct{ protocol, number string }

func portOf(protocol, number string) port { return port{strings.ToLower(protocol), number} }

// needOthers adds what others than the batch's Services need: by the rules that Services have at frontends, and by
// the objects of Services that are known. A Service that is not known may want a denial wherever it is.
func (p *planner) needOthers() {
	known := map[string]*spec.Spec{} // by owner
	for owner, o := range p.Index.Known {
		if !p.Batch.Has(owner) {
			known[owner] = spec.WithAccess(spec.Service{Service: o})
			p.needService(known[owner])
		}
	}
	for lb, c := range p.Index.Rules() {
		r, owner, frontend := c.Properties, naming.Owner(c.Name), c.Properties.FrontendIPConfiguration.To().Name()
		if frontend == "" || !naming.IsOwned(c.Name) || p.Batch.Has(owner) {
			continue
		}
		s := known[owner] // nil for a Service that is not known
		to, port, denied := p.Index.Address(index.Frontend{LB: lb, Name: frontend}), r.FrontendPort, s == nil || s.Access.Deny
		if !floats(r) { // the object of a Service says what it wants denied, and of all ports which ones are let in
			to, port, denied = allNodes, r.BackendPort, s == nil
		}
		if to == "" || to == allNodes && port == 0 && s != nil && s.AllPorts() {
			continue
		}
		p.needed[need{to: to, port: portOf(r.Protocol, strconv.Itoa(int(port)))}] = true
		if denied {
			p.needed[need{to: to, denial: true}] = true
		}
	}
}

func floats(r network.LoadBalancingRule) bool {
	return r.EnableFloatingIP != nil && *r.EnableFloatingIP
}

// needService adds what a Service serves, and wants denied, at the addresses that its object shows.
func (p *planner) needService(s *spec.Spec) {
	further, _ := key.AdditionalIPs.Read(s.Service.Annotations)
	ports := s.PortsByProtocol(s.Fixed && !s.AllPorts())
	for _, to := range s.Service.KnownAddresses() {
		p.needPorts(to, ports)
		if s.Access.Deny && (!s.Fixed || slices.Contains(further, to)) {
			p.needed[need{to: to, denial: true}] = true
		}
	}
	for _, family := range s.Service.Families() {
		nodes := string(family)
		if s.Access.Deny && s.Fixed {
			p.needed[need{to: nodes, denial: true}] = true
		}
		if !s.AllPorts() || s.Floats(family) {
			continue
		}
		// One rule has all ports of the nodes' own addresses, where others may have the same ports. Where all that the
		// Service asks for exists, it needs that alone. Else it may have asked for something else before, which only the
		// security rules show.
		asked := s.Openings(family, false)
		if slices.ContainsFunc(asked, func(o spec.Opening) bool {
			r, there := p.rules.byName[strings.ToLower(o.Name())]
			return !there || !r.leadsTo(p.Index.NodeIPs)
		}) {
			p.needPorts(nodes, asked)
			if p.hasRuleAtNodes(s.Owner) {
				p.needed[need{to: nodes, anyPort: true}] = true
			}
			continue
		}
		for _, o := range asked {
			p.needed[need{to: nodes, rule: strings.ToLower(o.Name())}] = true
		}
	}
}

func (p *planner) needPorts(to string, openings []spec.Opening) {
	for _, o := range openings {
		for _, number := range o.Ports {
			p.needed[need{to: to, port: portOf(o.Protocol, number)}] = true
		}
	}
}

// hasRuleAtNodes reports whether packets arrive at nodes' own addresses because of a rule of an owner.
func (p *planner) hasRuleAtNodes(owner string) bool {
	return slices.ContainsFunc(p.Index.LoadBalancers, func(lb *index.LoadBalancer) bool {
		return slices.ContainsFunc(lb.RulesOf[owner], func(r network.LoadBalancingRule) bool { return !floats(r) })
	})
}
