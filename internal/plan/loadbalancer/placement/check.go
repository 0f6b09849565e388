package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/spec"
)

// checks find what is wrong with a placement, in the order in which their problems are reported.
var checks = []func(s *search, p batch.Placement, wrong *problem.List){
	checkZones, checkSharing, checkRoom, warnTags, checkTags, checkIPTags, checkPrefix, checkLabel, checkPool,
	checkOccupied, checkPorts,
}

// checkZones refuses a new address while the zones of the region are not known: Azure adds none to it later.
func checkZones(s *search, p batch.Placement, wrong *problem.List) {
	_, known := p.Predecessor()
	isNew := p.Own && (!known || p.At.LB.IsBasic())
	if p.IP != "" {
		isNew = !p.Public.Exists() || publicip.IsOutdated(s.Index, p)
	}
	if isNew && s.NoZones != nil && s.Config.EdgeZone == nil {
		wrong.Refuse(p.For.Key(), problem.Zones, "a new address spans the zones of the region, and waits until they are known: %v",
			s.NoZones)
	}
}

func checkSharing(s *search, p batch.Placement, wrong *problem.List) {
	switch {
	case p.Own:
	case !p.Given():
		wrong.Refuse(p.For.Key(), problem.Conflict,
			"its public IP %s is already at frontend %s of %s, allowed is one that the annotation %s or spec.loadBalancerIP names",
			p.IP.Name(), p.At.Name, p.At.LB.ID.Name(), key.PublicIPName.Name)
	case p.At.LB.Internal != p.For.Internal:
		wrong.Refuse(p.For.Key(), problem.Conflict,
			"%s belongs to frontend %s of load balancer %s, allowed is one of the same kind as the Service", p.Asked, p.At.Name,
			p.At.LB.ID.Name())
	}
}

func checkRoom(s *search, p batch.Placement, wrong *problem.List) {
	if wrong.Blocking() || s.hasRoom(p.Address, p.At.LB) {
		return
	}
	with := "a node"
	if p.IsIPv6() {
		with = "the IPv6 address of a node"
	}
	wrong.Refuse(p.For.Key(), problem.Limit,
		"with %d more rules of load balancer %s and its sibling, too many would lead to %s, allowed by Azure are %d: take ports or "+
			"Services away, or spread the Services over several load balancers (multipleStandardLoadBalancerConfigurations)",
		p.NewRules(), strings.TrimSuffix(p.At.LB.ID.Name(), cluster.InternalSuffix), with, mostRulesPerNode)
}

func warnTags(_ *search, p batch.Placement, wrong *problem.List) {
	for name, value := range p.For.Tags {
		had, is := p.Public.Tags.Get(name)
		if p.Public.Exists() && !p.Public.Managed && (!is || had != value) {
			wrong.Warn(p.For.Key(), problem.Unheeded,
				"annotation %s: %q is ignored at public IP %s, which kaz does not manage: set the tags there",
				key.PublicIPTags.Name, p.For.Service.Annotations[key.PublicIPTags.Name], p.Public.ID.Name())
			return
		}
	}
}

// checkTags refuses a Service that would give a managed public IP more tags than Azure takes, or too long a tag that
// lists the Services. The length of that tag does not matter for a Service that it lists already.
func checkTags(s *search, p batch.Placement, wrong *problem.List) {
	have, name := p.Public, p.For.Key()
	isListed := slices.Contains(have.Services, name)
	if p.IP == "" || have.Exists() && !have.Managed || isListed && len(p.For.Tags) == 0 {
		return
	}
	stays := func(other string) bool { return other == name || !s.leaves(other, have) }
	comes := append(slices.Clip(s.coming[p.IP.Key()]), p)
	services, tags := publicip.After(s.Index, comes, slices.DeleteFunc(slices.Clone(have.Services), stays))
	if len(p.For.Tags) > 0 && len(tags) > azure.MostTags {
		wrong.Refuse(name, problem.Limit,
			"annotation %s: with its %d tags public IP %s would have %d, allowed by Azure are %d: take some away",
			key.PublicIPTags.Name, len(p.For.Tags), p.IP.Name(), len(tags), azure.MostTags)
	}
	if n := utf8.RuneCountInString(strings.Join(services, ",")); !isListed && n > azure.LongestTagValue {
		wrong.Refuse(name, problem.Limit,
			"with its name the tag %s of public IP %s, which lists the Services there, would have %d characters, allowed by Azure "+
				"are %d: have fewer Services at one address, or an address of your own, which carries no such tag",
			naming.ServicesTag, p.IP.Name(), n, azure.LongestTagValue)
	}
}

// checkIPTags refuses IP tags that would replace an existing public IP if they are invalid, or if the Service names that
// public IP. If the public IP stays, other IP tags are ignored with a warning. If something keeps the public IP from
// being recreated, another family is refused.
func checkIPTags(s *search, p batch.Placement, wrong *problem.List) {
	if p.IP == "" {
		return
	}
	have, version := p.Public, p.Public.Properties.PublicIPAddressVersion
	wants, tags := publicip.WantsIPTags(p.For, have), publicip.IPTagsText(have)
	renewed, holder := publicip.IsOutdated(s.Index, p), s.ipHolder(p)
	stays := !renewed && (!s.Config.IPTagsMayChange || !have.Managed || !wants)
	asked := fmt.Sprintf("annotation %s: %q", key.IPTags.Name, p.For.Service.Annotations[key.IPTags.Name])
	switch {
	case holder != "" && !have.HasFamily(p.Family):
		wrong.Refuse(p.For.Key(), problem.Address,
			"its own public IP %s has %s and cannot be recreated while %s, allowed is %s until then",
			p.IP.Name(), version, holder, version)
	case holder != "":
		wrong.Warn(p.For.Key(), problem.Unheeded,
			"%s is ignored at public IP %s, which cannot be recreated while %s, allowed are the IP tags that it has, %s, until then",
			asked, p.IP.Name(), holder, tags)
	case stays && have.Exists() && wants:
		wrong.Warn(p.For.Key(), problem.Unheeded,
			"%s is ignored at public IP %s, which kaz does not manage or other Services share: its IP tags are %s, and Azure changes "+
				"none of a public IP",
			asked, p.IP.Name(), tags)
	case stays:
		*wrong = append(*wrong, p.For.IPTagWarnings...)
	case p.For.IPTagSlip != "":
		wrong.Refuse(p.For.Key(), problem.Annotation,
			"%s would change the IP tags of public IP %s, which are %s, but %s, allowed is %s: correct it, or take the annotation "+
				"away and the public IP stays as it is",
			asked, p.IP.Name(), tags, p.For.IPTagSlip, key.IPTags.Allowed)
	case renewed && p.Given():
		wrong.Refuse(p.For.Key(), problem.Annotation,
			"%s would recreate public IP %s with another address, but %s is that one, allowed are the IP tags that it has, "+
				"%s: ask for these, or take one of the two away",
			asked, p.IP.Name(), p.Asked, tags)
	}
}

// ipHolder says what keeps an outdated public IP from being recreated, "" for nothing.
func (s *search) ipHolder(p batch.Placement) string {
	if !publicip.IsOutdated(s.Index, p) {
		return ""
	}
	for _, u := range p.At.Uses() {
		if s.byOwner[u.Owner] == nil {
			return s.Describe(u, p.IP) + " uses it"
		}
	}
	for _, other := range s.commit {
		if other.Owner != p.For.Owner && s.wants(other.Owner, p.IP.Key()) {
			return "Service " + other.Key() + " asks for it, too"
		}
	}
	return ""
}

// checkPrefix warns of a prefix that a Service's own public IP is not taken from. The public IP existed before, under the
// name that it has with a prefix of that name.
func checkPrefix(s *search, p batch.Placement, wrong *problem.List) {
	from := p.Public.Properties.PublicIPPrefix.To()
	if !p.Public.Exists() || p.Prefix == "" || from.Equal(p.Prefix) {
		return
	}
	wrong.Warn(p.For.Key(), problem.Unheeded,
		"%s is ignored at public IP %s, which is from %s, and Azure changes that of no public IP, allowed is a prefix whose name "+
			"differs in its first %d characters: the Service gets another public IP for it",
		p.Asked, p.IP.Name(), cmp.Or(from, "none"), naming.LongestName-len(naming.PublicIP(s.Config.ClusterName, p.Base, "", ""))-1)
}

// checkLabel refuses a DNS label at a public IP that is not managed if a Service that was served there before asks for
// another label. No tag says which Service set the label.
func checkLabel(s *search, p batch.Placement, wrong *problem.List) {
	ip := p.Public
	at, placed := s.at[p.IP.Key()]
	if p.For.Label == nil || !placed || !ip.Exists() || len(ip.Services) > 0 || naming.IsOfOther(ip.Tags, s.Config.ClusterName) {
		return
	}
	there := map[string]bool{at.Owner(): true} // owners that use the frontend, or are placed there
	for _, u := range slices.Concat(at.Uses(), s.taken[at.Key()]) {
		there[u.Owner] = true
	}
	for _, service := range s.Staying() {
		_, asks := service.Annotations[key.DNSLabel.Name]
		if !asks || !there[naming.OwnerOf(service)] || service.UID == p.For.Service.UID {
			continue
		}
		other, _ := spec.Read(spec.Service{Service: service}, s.Config)
		if !publicip.AsksFor(s.Index, other, ip.ID) || *other.Label == *p.For.Label ||
			there[p.For.Owner] && precedes(p.For, other, ip.Label()) {
			continue
		}
		wrong.Refuse(p.For.Key(), problem.DNSLabel,
			"annotation %s: %q cannot be set, Service %s asks for %q at public IP %s, allowed is one label for all of them",
			key.DNSLabel.Name, *p.For.Label, other.Key(), *other.Label, ip.ID.Name())
		return
	}
}

// precedes reports whether the first of two Services is to name a public IP: its label is there now, or it is older.
func precedes(s, other *spec.Spec, now string) bool {
	if is := strings.EqualFold(*s.Label, now); is != strings.EqualFold(*other.Label, now) {
		return is
	}
	return cmp.Or(s.Service.CreationTimestamp.Compare(other.Service.CreationTimestamp.Time), strings.Compare(s.Key(), other.Key())) < 0
}

func checkPool(s *search, p batch.Placement, wrong *problem.List) {
	if p.OwnPool == "" {
		return
	}
	const longest = 80
	refuse := func(format string, args ...any) { wrong.Refuse(p.For.Key(), problem.Spec, format, args...) }
	if len(p.OwnPool) > longest {
		refuse("its backend pool would be named %q, which has %d characters, allowed are %d: a shorter name of Service or namespace",
			p.OwnPool, len(p.OwnPool), longest)
	}
	if s.Config.IsOwnPool(p.OwnPool) {
		refuse("its backend pool would be named like the cluster's, %q, allowed is another name of Service or namespace", p.OwnPool)
	}
	if other, taken := s.pools[index.Frontend{LB: p.At.LB, Name: p.OwnPool}]; taken && other != p.For.Key() {
		refuse("its backend pool would be named %q like that of Service %s, allowed is another name of Service or namespace", p.OwnPool,
			other)
	}
	for owner := range p.At.LB.PoolUsers[p.OwnPool] {
		if s.byOwner[owner] == nil {
			refuse("its backend pool would be named %q like that of another Service at load balancer %s, allowed is another name of "+
				"Service or namespace", p.OwnPool, p.At.LB.ID.Name())
			return
		}
	}
}

func checkOccupied(s *search, p batch.Placement, wrong *problem.List) {
	has := cmp.Or(p.Public.Properties.NATGateway.To(), p.Public.Properties.IPConfiguration.To())
	if has != "" && s.LoadBalancer(has.Parent()) == nil {
		wrong.Refuse(p.For.Key(), problem.Address, "%s: public IP %s is in use by %s, allowed is one that nothing else uses",
			cmp.Or(p.Asked, "its own"), p.IP, has)
	}
	if !p.Own || !p.At.Exists() || p.For.Internal && p.Asked == "" || index.AddressKey(p.At.State()) == p.AddressKey() {
		return
	}
	if uses := s.sharers(p.At); len(uses) > 0 {
		wrong.Refuse(p.For.Key(), problem.Conflict,
			"the address of frontend %s cannot change while %s uses it, allowed is the address that it has; asked for is %s",
			p.At.Name, s.Describe(uses[0], p.IP), describe(s.Index, p))
	}
}

// checkPorts refuses ports that others use at a frontend after the commit, as far as that is known. It knows the rules
// that stay there, and those of the Services placed so far.
func checkPorts(s *search, p batch.Placement, wrong *problem.List) {
	uses := slices.DeleteFunc(slices.Clone(p.At.Uses()), func(u index.Use) bool { return !s.stays(u.Owner, u.Name) })
	for _, u := range s.taken[p.At.Key()] {
		if !slices.ContainsFunc(p.At.Uses(), func(now index.Use) bool { return strings.EqualFold(now.Name, u.Name) }) {
			uses = append(uses, u)
		}
	}
	for _, rule := range p.Rules {
		port := "all ports"
		if rule.Port > 0 {
			port = fmt.Sprintf("port %d/%s", rule.Port, rule.Protocol)
		}
		for _, u := range uses {
			if u.Owner != p.For.Owner && u.Takes(rule.Protocol, rule.Port) {
				wrong.Refuse(p.For.Key(), problem.Conflict, "%s of %s: %s uses it at frontend %s, allowed is a port that is free",
					port, describe(s.Index, p), s.Describe(u, p.IP), p.At.Name)
			}
		}
	}
}

// stays reports whether a rule is there after the commit, as far as its owner's spec tells.
func (s *search) stays(owner, rule string) bool {
	w := s.byOwner[owner]
	return w == nil || slices.ContainsFunc(w.Addresses, func(a spec.Address) bool {
		return slices.ContainsFunc(a.Rules, func(r spec.Rule) bool { return strings.EqualFold(r.Name, rule) })
	})
}

// describe returns the address of a placement in words for users, and where it is asked for.
func describe(x *index.Index, p batch.Placement) string {
	text := "its own address"
	switch private := cmp.Or(p.Pinned, x.Address(p.At)); {
	case p.Public.Properties.IPAddress != "":
		text = fmt.Sprintf("public IP %s (%s)", p.IP.Name(), p.Public.Properties.IPAddress)
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

// warnFurther warns of additional addresses that belong to another Service, as the rules of that Service forward no
// packets to this one. A foreign rule there, or a rule for all ports, may forward them. The warning names the first port
// without such a rule.
func (s *search) warnFurther(w batch.Served, wrong *problem.List) {
	for _, ip := range w.Further {
		at := s.at[ip.String()]
		for _, id := range s.PublicIPsAt[ip.String()] {
			at = cmp.Or(at, s.at[id.Key()])
		}
		other := s.Known[at.Owner()]
		if other == nil || other.UID == w.Service.UID ||
			slices.ContainsFunc(w.Placements, func(p batch.Placement) bool { return p.At.Key() == at.Key() }) {
			continue
		}
		uses := slices.Concat(at.Uses(), s.taken[at.Key()])
		for _, p := range w.Service.Spec.Ports {
			isForwarded := slices.ContainsFunc(uses, func(u index.Use) bool {
				return (u.Owner == "" || u.First == 0) && u.Takes(spec.Protocol(p), p.Port)
			})
			if !isForwarded {
				wrong.Warn(w.Key(), problem.Address,
					"annotation %s: %q is the address of Service %s/%s, where nothing forwards the packets of port %d/%s to this "+
						"Service, allowed are addresses whose packets something else forwards to it",
					key.AdditionalIPs.Name, ip, other.Namespace, other.Name, p.Port, spec.ProtocolOf(p))
				break
			}
		}
	}
}
