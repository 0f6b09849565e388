package placement

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/spec"
)

// check finds what is wrong with a placement of a Service.
type check func(s *search, w *spec.Spec, p batch.Placement, wrong *problem.List)

// checks are all checks of a placement, in the order in which their problems are reported.
var checks = []check{
	checkZones,
	checkSharing,
	checkRoom,
	checkTags,
	checkIPTags,
	checkPrefix,
	checkListed,
	checkLabel,
	checkPool,
	checkAttached,
	checkOccupied,
	checkPorts,
	func(s *search, w *spec.Spec, p batch.Placement, wrong *problem.List) { s.links.Check(w, p, wrong) },
}

// checkZones refuses a new address while the zones of the region are not known: Azure adds none to it later.
func checkZones(s *search, w *spec.Spec, p batch.Placement, wrong *problem.List) {
	isNew := p.Own && (!p.At.Exists() && p.Predecessor(w.Owner) == nil || p.At.LB.IsBasic())
	if p.IP != "" {
		isNew = !p.Public.Exists() || publicip.IsOutdated(s.Index, w, p)
	}
	if isNew && s.NoZones != nil && s.Config.EdgeZone == nil {
		wrong.Refuse(w.Key(), problem.Zones, "a new address spans the zones of the region, and waits until they are known: %v", s.NoZones)
	}
}

// checkSharing refuses a shared frontend if the Service does not name its address, or if it is of the other kind.
func checkSharing(s *search, w *spec.Spec, p batch.Placement, wrong *problem.List) {
	switch {
	case p.Own:
	case !p.Given():
		wrong.Refuse(w.Key(), problem.Conflict,
			"its public IP %s is already at frontend %s of %s, allowed is one that the annotation %s or spec.loadBalancerIP names",
			p.IP.Name(), p.At.Name, p.At.LB.ID.Name(), key.PublicIPName.Name)
	case p.At.LB.Internal != w.Internal:
		wrong.Refuse(w.Key(), problem.Conflict,
			"%s belongs to frontend %s of load balancer %s, allowed is one of the same kind as the Service", p.Asked, p.At.Name,
			p.At.LB.ID.Name())
	}
}

// checkAttached refuses a public IP that something else has.
func checkAttached(s *search, w *spec.Spec, p batch.Placement, wrong *problem.List) {
	ip := p.Public
	at := ip.Properties.IPConfiguration
	switch {
	case p.IP == "":
		return
	case ip.Properties.NATGateway != nil:
		at = ip.Properties.NATGateway
	case at == nil || s.LoadBalancer(at.ID.Parent()) != nil:
		return
	}
	wrong.Refuse(w.Key(), problem.Address, "%s: public IP %s is in use by %s, allowed is one that nothing else uses",
		cmp.Or(p.Asked, "its own"), p.IP, at.ID)
}

// checkOccupied refuses a change of a frontend's address while other Services share it.
func checkOccupied(s *search, w *spec.Spec, p batch.Placement, wrong *problem.List) {
	if !p.Own || !p.At.Exists() || p.Wanted.Key() == "" || index.TargetOf(p.At.State()).Key() == p.Wanted.Key() {
		return
	}
	for _, u := range s.sharers(p.At) {
		wrong.Refuse(w.Key(), problem.Conflict,
			"the address of frontend %s cannot change while the %s %q of %s uses it, allowed is the address that it has; "+
				"asked for is %s",
			p.At.Name, u.What, u.Name, s.NameOf(u, p.IP), describe(s.Index, p))
		return
	}
}

// checkPorts refuses ports that others use.
func checkPorts(s *search, w *spec.Spec, p batch.Placement, wrong *problem.List) {
	uses := s.usesAfter(p.At)
	for _, r := range p.Rules {
		port := "all ports"
		if r.Port > 0 {
			port = fmt.Sprintf("port %d/%s", r.Port, r.Protocol)
		}
		for _, u := range uses {
			if u.Owner != w.Owner && u.Takes(r.Protocol, r.Port) {
				wrong.Refuse(w.Key(), problem.Conflict,
					"%s of %s: the %s %q of %s uses it at frontend %s, allowed is a port that is free",
					port, describe(s.Index, p), u.What, u.Name, s.NameOf(u, p.IP), p.At.Name)
			}
		}
	}
}

// usesAfter are the uses of a frontend after the commit, as far as they are known: those that stay, and the
// rules that come with the Services placed so far.
func (s *search) usesAfter(at index.Frontend) []index.Use {
	now := at.Uses()
	after := slices.DeleteFunc(slices.Clone(now), func(u index.Use) bool { return !s.stays(u) })
	for _, u := range s.taken[at.Key()] {
		if !slices.ContainsFunc(now, func(other index.Use) bool { return strings.EqualFold(other.Name, u.Name) }) {
			after = append(after, u)
		}
	}
	return after
}

// stays reports whether a use is there after the commit, as far as its owner's spec tells.
func (s *search) stays(u index.Use) bool {
	if s.gone[u.Owner] {
		return false
	}
	w, live := s.specs[u.Owner]
	return !live || u.Owner == "" || slices.ContainsFunc(w.Addresses, func(a spec.Address) bool {
		return slices.ContainsFunc(a.Rules, func(r spec.Rule) bool { return strings.EqualFold(r.Name, u.Name) })
	})
}

// describe is the address of a placement in a person's words, and where it is asked for.
func describe(x *index.Index, p batch.Placement) string {
	text := "its own address"
	ip := p.Public
	switch private := cmp.Or(p.Pinned, x.Address(p.At)); {
	case p.IP != "" && ip.Properties.IPAddress != "":
		text = fmt.Sprintf("public IP %s (%s)", p.IP.Name(), ip.Properties.IPAddress)
	case p.IP != "":
		text = "public IP " + p.IP.Name()
	case private != "":
		text = "address " + private
	}
	if p.Asked != "" {
		text += ", named by " + p.Asked
	}
	return text
}

const longestPoolName = 80

// checkPool refuses a Service if its own pool cannot have its name.
func checkPool(s *search, w *spec.Spec, p batch.Placement, wrong *problem.List) {
	if p.OwnPool == "" {
		return
	}
	refuse := func(format string, args ...any) { wrong.Refuse(w.Key(), problem.Spec, format, args...) }
	if len(p.OwnPool) > longestPoolName {
		refuse("its backend pool would be named %q, which has %d characters, allowed are %d: a shorter name of Service or namespace",
			p.OwnPool, len(p.OwnPool), longestPoolName)
	}
	for _, family := range address.Families() {
		if strings.EqualFold(p.OwnPool, s.Config.PoolName(family)) {
			refuse("its backend pool would be named like the cluster's, %q, allowed is another name of Service or namespace", p.OwnPool)
		}
	}
	if other, taken := s.pools[ownPool{p.At.LB, p.OwnPool}]; taken && other != w.Key() {
		refuse("its backend pool would be named %q like that of Service %s, allowed is another name of Service or namespace", p.OwnPool,
			other)
	}
	for owner := range p.At.LB.PoolUsers[p.OwnPool] {
		if _, live := s.specs[owner]; owner != w.Owner && !live && !s.gone[owner] {
			refuse("its backend pool would be named %q like that of another Service at load balancer %s, allowed is another name of "+
				"Service or namespace", p.OwnPool, p.At.LB.ID.Name())
			return
		}
	}
}

// warnFurther warns of additional addresses that belong to another Service: its rules do not forward packets
// to this one.
func (s *search) warnFurther(w *spec.Spec, placements []batch.Placement, found *problem.List) {
	for _, ip := range w.Further {
		at, exists := s.frontendAt(ip)
		if !exists || slices.ContainsFunc(placements, func(p batch.Placement) bool { return p.At.Key() == at.Key() }) {
			continue
		}
		other := s.Known[at.Owner()]
		if other == nil || other.UID == w.Service.UID {
			continue
		}
		if i := slices.IndexFunc(w.Service.Spec.Ports, func(p v1.ServicePort) bool { return !s.isForwarded(p, at) }); i >= 0 {
			p := w.Service.Spec.Ports[i]
			found.Warn(w.Key(), problem.Address,
				"annotation %s: %q is the address of Service %s/%s, where nothing forwards the packets of port %d/%s to this "+
					"Service, allowed are addresses whose packets something else forwards to it",
				key.AdditionalIPs.Name, ip, other.Namespace, other.Name, p.Port, spec.ProtocolOf(p))
		}
	}
}

func (s *search) frontendAt(ip netip.Addr) (at index.Frontend, exists bool) {
	keys := []string{ip.String()}
	for _, id := range s.PublicIPsAt[ip.String()] {
		keys = append(keys, id.Key())
	}
	for _, key := range keys {
		if at, exists = s.at[key]; exists {
			return at, true
		}
	}
	return at, false
}

// isForwarded reports whether something at a frontend that is not one Service's alone takes the packets of a port.
func (s *search) isForwarded(p v1.ServicePort, at index.Frontend) bool {
	forwards := func(u index.Use) bool {
		return (u.Owner == "" || u.First == 0) && u.Takes(spec.Protocol(p), p.Port)
	}
	return slices.ContainsFunc(slices.Concat(at.Uses(), s.taken[at.Key()]), forwards)
}
