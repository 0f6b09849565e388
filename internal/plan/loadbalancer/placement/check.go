package placement

import (
	"cmp"
	"fmt"
	"maps"
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
	"kaz/internal/plan/loadbalancer/tag"
)

// checks find what is wrong with a placement, in the order in which their problems are reported.
var checks = []func(s *search, w *service, r request, wrong *problem.List){
	checkZones, checkSharing, checkRoom, warnTags, checkTags, checkIPTags, checkPrefix, checkListed, checkLabel,
	checkPool, checkOccupied, checkPorts,
}

// checkZones refuses a new address while the zones of the region are not known: Azure adds none to it later.
func checkZones(s *search, w *service, r request, wrong *problem.List) {
	_, known := r.Predecessor(w.Owner)
	isNew := r.Own && (!known || r.At.LB.IsBasic())
	if r.IP != "" {
		isNew = !r.Public.Exists() || publicip.IsOutdated(s.Index, w.Spec, r.Placement)
	}
	if isNew && s.NoZones != nil && s.Config.EdgeZone == nil {
		wrong.Refuse(w.Key(), problem.Zones, "a new address spans the zones of the region, and waits until they are known: %v", s.NoZones)
	}
}

func checkSharing(s *search, w *service, r request, wrong *problem.List) {
	switch {
	case r.Own:
	case !r.Given():
		wrong.Refuse(w.Key(), problem.Conflict,
			"its public IP %s is already at frontend %s of %s, allowed is one that the annotation %s or spec.loadBalancerIP names",
			r.IP.Name(), r.At.Name, r.At.LB.ID.Name(), key.PublicIPName.Name)
	case r.At.LB.Internal != w.Internal:
		wrong.Refuse(w.Key(), problem.Conflict,
			"%s belongs to frontend %s of load balancer %s, allowed is one of the same kind as the Service", r.Asked, r.At.Name,
			r.At.LB.ID.Name())
	}
}

func checkRoom(s *search, w *service, r request, wrong *problem.List) {
	if wrong.Blocking() || s.hasRoom(r.Address, r.At.LB) {
		return
	}
	with := "a node"
	if r.IsIPv6() {
		with = "the IPv6 address of a node"
	}
	wrong.Refuse(w.Key(), problem.Limit,
		"with %d more rules of load balancer %s and its sibling, too many would lead to %s, allowed by Azure are %d: take ports or "+
			"Services away, or spread the Services over several load balancers (multipleStandardLoadBalancerConfigurations)",
		r.NewRules(), strings.TrimSuffix(r.At.LB.ID.Name(), cluster.InternalSuffix), with, mostRulesPerNode)
}

func warnTags(_ *search, w *service, r request, wrong *problem.List) {
	for name, value := range w.Tags {
		had, is := r.Public.Tags.Get(name)
		if r.Public.Exists() && !r.Public.Managed && (!is || had != value) {
			wrong.Warn(w.Key(), problem.Unheeded,
				"annotation %s: %q is ignored at public IP %s, which kaz does not manage: set the tags there",
				key.PublicIPTags.Name, w.Service.Annotations[key.PublicIPTags.Name], r.Public.ID.Name())
			return
		}
	}
}

// checkTags counts the tags of a managed public IP with those of the other Services there.
func checkTags(s *search, w *service, r request, wrong *problem.List) {
	have := r.Public
	if len(w.Tags) == 0 || have.Exists() && !have.Managed {
		return
	}
	own := azure.Tags{tag.Services: "", tag.Cluster: ""}
	for _, comes := range slices.Concat(s.coming[r.IP.Key()], []*service{w}) {
		tag.Add(own, comes.Tags)
		if comes.Label != nil && *comes.Label != "" {
			own[tag.Label] = comes.Key()
		}
	}
	if owner := tag.LabelOwner(have.Tags); owner != "" && !s.leaves(owner, have) {
		own[tag.Label] = owner
	}
	for _, other := range have.Services {
		if other != w.Key() && !s.leaves(other, have) {
			tag.Add(own, publicip.TagsOfOther(s.Index, other, have))
		}
	}
	tags := tag.Wanted(s.Config, own, have.Tags)
	tag.Add(tags, have.Tags)
	maps.DeleteFunc(tags, func(_, value string) bool { return value == azure.DropTag })
	if len(tags) > azure.MostTags {
		wrong.Refuse(w.Key(), problem.Limit,
			"annotation %s: with its %d tags public IP %s would have %d, allowed by Azure are %d: take some away",
			key.PublicIPTags.Name, len(w.Tags), r.IP.Name(), len(tags), azure.MostTags)
	}
}

// checkIPTags refuses IP tags that would replace an existing public IP if they are invalid, or if the Service
// names that public IP. If the public IP stays, as it is or because something keeps it from being recreated, other IP
// tags are ignored with a warning, and another family is refused.
func checkIPTags(s *search, w *service, r request, wrong *problem.List) {
	if r.IP == "" {
		return
	}
	have, version := r.Public, r.Public.Properties.PublicIPAddressVersion
	wants, tags := publicip.WantsIPTags(w.Spec, have), publicip.IPTagsText(have)
	renewed, holder := publicip.IsOutdated(s.Index, w.Spec, r.Placement), s.ipHolder(w, r)
	stays := !renewed && (!s.Config.IPTagsMayChange || !have.Managed || !wants)
	asked := fmt.Sprintf("annotation %s: %q", key.IPTags.Name, w.Service.Annotations[key.IPTags.Name])
	switch {
	case holder != "" && !have.HasFamily(r.Family):
		wrong.Refuse(w.Key(), problem.Address,
			"its own public IP %s has %s and cannot be recreated while %s, allowed is %s until then",
			r.IP.Name(), version, holder, version)
	case holder != "":
		wrong.Warn(w.Key(), problem.Unheeded,
			"%s is ignored at public IP %s, which cannot be recreated while %s, allowed are the IP tags that it has, %s, until then",
			asked, r.IP.Name(), holder, tags)
	case stays && have.Exists() && wants:
		wrong.Warn(w.Key(), problem.Unheeded,
			"%s is ignored at public IP %s, which kaz does not manage or other Services share: its IP tags are %s, and Azure changes "+
				"none of a public IP",
			asked, r.IP.Name(), tags)
	case stays:
		*wrong = append(*wrong, w.IPTagWarnings...)
	case w.IPTagSlip != "":
		wrong.Refuse(w.Key(), problem.Annotation,
			"%s would change the IP tags of public IP %s, which are %s, but %s, allowed is %s: correct it, or take the annotation "+
				"away and the public IP stays as it is",
			asked, r.IP.Name(), tags, w.IPTagSlip, key.IPTags.Allowed)
	case renewed && r.Given():
		wrong.Refuse(w.Key(), problem.Annotation,
			"%s would recreate public IP %s with another address, but %s is that one, allowed are the IP tags that it has, "+
				"%s: ask for these, or take one of the two away",
			asked, r.IP.Name(), r.Asked, tags)
	}
}

// ipHolder says what keeps an outdated public IP from being recreated, "" for nothing.
func (s *search) ipHolder(w *service, r request) string {
	if !publicip.IsOutdated(s.Index, w.Spec, r.Placement) {
		return ""
	}
	for _, u := range r.At.Uses() {
		if s.byOwner[u.Owner] == nil {
			return s.Describe(u, r.IP) + " uses it"
		}
	}
	for _, other := range s.commit {
		if other != w && s.wants(other.Owner, r.IP.Key()) {
			return "Service " + other.Key() + " asks for it, too"
		}
	}
	return ""
}

// checkPrefix warns of a prefix that a Service's own public IP is not taken from: it existed
// before, under the name that it has with a prefix of that name.
func checkPrefix(s *search, w *service, r request, wrong *problem.List) {
	from := r.Public.Properties.PublicIPPrefix.To()
	if !r.Public.Exists() || r.Prefix == "" || from.Equal(r.Prefix) {
		return
	}
	wrong.Warn(w.Key(), problem.Unheeded,
		"%s is ignored at public IP %s, which is from %s, and Azure changes that of no public IP, allowed is a prefix whose name "+
			"differs in its first %d characters: the Service gets another public IP for it",
		r.Asked, r.IP.Name(), cmp.Or(from, "none"), naming.LongestName-len(naming.PublicIP(s.Config.ClusterName, r.Base, "", ""))-1)
}

// checkListed refuses a Service with a name that does not fit into the tag that lists the Services
// of a managed public IP: Azure would refuse the public IP. A listed Service stays.
func checkListed(s *search, w *service, r request, wrong *problem.List) {
	names := slices.Clone(r.Public.Services)
	if !r.Public.Managed || slices.Contains(names, w.Key()) {
		return
	}
	for _, comes := range slices.Concat(s.coming[r.IP.Key()], []*service{w}) {
		if !slices.Contains(names, comes.Key()) {
			names = append(names, comes.Key())
		}
	}
	length := func() int { return utf8.RuneCountInString(strings.Join(names, ",")) }
	if length() <= azure.LongestTagValue {
		return
	}
	names = slices.DeleteFunc(names, func(name string) bool { return s.leaves(name, r.Public) })
	if n := length(); n > azure.LongestTagValue {
		wrong.Refuse(w.Key(), problem.Limit,
			"with its name the tag %s of public IP %s, which lists the Services there, would have %d characters, allowed by Azure "+
				"are %d: have fewer Services at one address, or an address of your own, which carries no such tag",
			tag.Services, r.IP.Name(), n, azure.LongestTagValue)
	}
}

// checkLabel refuses another DNS label at a public IP that is not managed than the label of a Service that
// was served there before. No tag says which Service set the label.
func checkLabel(s *search, w *service, r request, wrong *problem.List) {
	ip := r.Public
	at, placed := s.at[r.IP.Key()]
	if w.Label == nil || !placed || !ip.Exists() || ip.Tagged || tag.IsOfOther(ip.Tags, s.Config.ClusterName) {
		return
	}
	there := map[string]bool{at.Owner(): true} // owners that use the frontend, or are placed there
	for _, u := range slices.Concat(at.Uses(), s.taken[at.Key()]) {
		there[u.Owner] = true
	}
	for _, service := range s.Staying() {
		_, asks := service.Annotations[key.DNSLabel.Name]
		if !asks || !there[naming.OwnerOf(service)] || service.UID == w.Service.UID {
			continue
		}
		other, _ := spec.Read(spec.Service{Service: service}, s.Config)
		if !publicip.AsksFor(s.Index, other, ip.ID) || *other.Label == *w.Label || there[w.Owner] && precedes(w.Spec, other, ip.Label()) {
			continue
		}
		wrong.Refuse(w.Key(), problem.DNSLabel,
			"annotation %s: %q cannot be set, Service %s asks for %q at public IP %s, allowed is one label for all of them",
			key.DNSLabel.Name, *w.Label, other.Key(), *other.Label, ip.ID.Name())
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

func checkPool(s *search, w *service, r request, wrong *problem.List) {
	if r.OwnPool == "" {
		return
	}
	const longest = 80
	refuse := func(format string, args ...any) { wrong.Refuse(w.Key(), problem.Spec, format, args...) }
	if len(r.OwnPool) > longest {
		refuse("its backend pool would be named %q, which has %d characters, allowed are %d: a shorter name of Service or namespace",
			r.OwnPool, len(r.OwnPool), longest)
	}
	if s.Config.IsOwnPool(r.OwnPool) {
		refuse("its backend pool would be named like the cluster's, %q, allowed is another name of Service or namespace", r.OwnPool)
	}
	if other, taken := s.pools[index.Frontend{LB: r.At.LB, Name: r.OwnPool}]; taken && other != w.Key() {
		refuse("its backend pool would be named %q like that of Service %s, allowed is another name of Service or namespace", r.OwnPool,
			other)
	}
	for owner := range r.At.LB.PoolUsers[r.OwnPool] {
		if s.byOwner[owner] == nil {
			refuse("its backend pool would be named %q like that of another Service at load balancer %s, allowed is another name of "+
				"Service or namespace", r.OwnPool, r.At.LB.ID.Name())
			return
		}
	}
}

func checkOccupied(s *search, w *service, r request, wrong *problem.List) {
	has := cmp.Or(r.Public.Properties.NATGateway.To(), r.Public.Properties.IPConfiguration.To())
	if has != "" && s.LoadBalancer(has.Parent()) == nil {
		wrong.Refuse(w.Key(), problem.Address, "%s: public IP %s is in use by %s, allowed is one that nothing else uses",
			cmp.Or(r.Asked, "its own"), r.IP, has)
	}
	if !r.Own || !r.At.Exists() || r.key == "" || index.TargetOf(r.At.State()).Key() == r.key {
		return
	}
	if uses := s.sharers(r.At); len(uses) > 0 {
		wrong.Refuse(w.Key(), problem.Conflict,
			"the address of frontend %s cannot change while %s uses it, allowed is the address that it has; asked for is %s",
			r.At.Name, s.Describe(uses[0], r.IP), describe(s.Index, r))
	}
}

// checkPorts refuses ports that others use at a frontend after the commit, as far as that is known: what stays
// there, and the rules that come with the Services placed so far.
func checkPorts(s *search, w *service, r request, wrong *problem.List) {
	uses := slices.DeleteFunc(slices.Clone(r.At.Uses()), func(u index.Use) bool { return !s.stays(u.Owner, u.Name) })
	for _, u := range s.taken[r.At.Key()] {
		if !slices.ContainsFunc(r.At.Uses(), func(now index.Use) bool { return strings.EqualFold(now.Name, u.Name) }) {
			uses = append(uses, u)
		}
	}
	for _, rule := range r.Rules {
		port := "all ports"
		if rule.Port > 0 {
			port = fmt.Sprintf("port %d/%s", rule.Port, rule.Protocol)
		}
		for _, u := range uses {
			if u.Owner != w.Owner && u.Takes(rule.Protocol, rule.Port) {
				wrong.Refuse(w.Key(), problem.Conflict, "%s of %s: %s uses it at frontend %s, allowed is a port that is free",
					port, describe(s.Index, r), s.Describe(u, r.IP), r.At.Name)
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

// describe is the address of a placement in a person's words, and where it is asked for.
func describe(x *index.Index, r request) string {
	text := "its own address"
	switch private := cmp.Or(r.Pinned, x.Address(r.At)); {
	case r.Public.Properties.IPAddress != "":
		text = fmt.Sprintf("public IP %s (%s)", r.IP.Name(), r.Public.Properties.IPAddress)
	case r.IP != "":
		text = "public IP " + r.IP.Name()
	case private != "":
		text = "address " + private
	}
	if r.Asked != "" {
		text += ", named by " + r.Asked
	}
	return text
}

// warnFurther warns of additional addresses that belong to another Service, if no rule there that is not one
// Service's alone takes the packets of a port: its rules do not forward packets to this one.
func (s *search) warnFurther(w *service, placements []batch.Placement, wrong *problem.List) {
	for _, ip := range w.Further {
		at := s.at[ip.String()]
		for _, id := range s.PublicIPsAt[ip.String()] {
			at = cmp.Or(at, s.at[id.Key()])
		}
		other := s.Known[at.Owner()]
		if other == nil || other.UID == w.Service.UID ||
			slices.ContainsFunc(placements, func(p batch.Placement) bool { return p.At.Key() == at.Key() }) {
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
