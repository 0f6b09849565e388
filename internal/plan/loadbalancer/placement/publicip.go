package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/spec"
	"kaz/internal/plan/loadbalancer/tag"
)

// publicIPArrivals is what newly placed Services add to a public IP.
type publicIPArrivals struct {
	services []string // keys of those that its tag does not name yet
	tags     azure.Tags
}

func (s *search) noteArrival(w *spec.Spec, p batch.Placement) {
	if p.IP == "" {
		return
	}
	id := p.IP.Key()
	a := s.coming[id]
	if a.tags == nil {
		a.tags = azure.Tags{}
	}
	tag.Add(a.tags, tagsAt(w))
	if ip := p.Public; ip.Tagged && !slices.Contains(ip.Services, w.Key()) {
		a.services = append(a.services, w.Key())
	}
	s.coming[id] = a
}

// tagsAt are the tags that a Service adds to a public IP.
func tagsAt(w *spec.Spec) azure.Tags {
	tags := azure.Tags{}
	maps.Copy(tags, w.Tags)
	if w.Label != nil && *w.Label != "" {
		tags[tag.Label] = w.Key()
	}
	return tags
}

// checkListed refuses a Service with a name that does not fit into the tag that lists the Services
// of a managed public IP: Azure would refuse the public IP. A listed Service stays.
func checkListed(s *search, w *spec.Spec, p batch.Placement, wrong *problem.List) {
	have := p.Public
	listed := have.Services
	if !have.Managed || slices.Contains(listed, w.Key()) {
		return
	}
	length := func() int {
		return utf8.RuneCountInString(strings.Join(slices.Concat(listed, s.coming[p.IP.Key()].services, []string{w.Key()}), ","))
	}
	if length() <= azure.LongestTagValue {
		return
	}
	listed = slices.DeleteFunc(slices.Clone(listed), func(name string) bool { return s.leaves(name, p.IP) })
	if n := length(); n > azure.LongestTagValue {
		wrong.Refuse(w.Key(), problem.Limit,
			"with its name the tag %s of public IP %s, which lists the Services there, would have %d characters, allowed by Azure "+
				"are %d: have fewer Services at one address, or an address of your own, which carries no such tag",
			tag.Services, p.IP.Name(), n, azure.LongestTagValue)
	}
}

// checkTags refuses tags that would exceed what Azure takes at a managed public IP, with the tags of the
// other Services there.
func checkTags(s *search, w *spec.Spec, p batch.Placement, wrong *problem.List) {
	have := p.Public
	if p.IP == "" || len(w.Tags) == 0 {
		return
	}
	if have.Exists() && !have.Managed {
		warnTags(w, have, wrong)
		return
	}
	own := azure.Tags{tag.Services: "", tag.Cluster: ""}
	tag.Add(own, tagsAt(w))
	tag.Add(own, s.coming[p.IP.Key()].tags)
	if owner := tag.LabelOwner(have.Tags); owner != "" && !s.leaves(owner, p.IP) {
		own[tag.Label] = owner
	}
	for _, other := range have.Services {
		if other != w.Key() && !s.leaves(other, p.IP) {
			tag.Add(own, publicip.TagsOfOther(s.Index, other, have))
		}
	}
	tags := tag.Wanted(s.Config, own, have.Tags)
	count := 0
	for name := range have.Tags {
		if _, said := tags.Get(name); !said {
			count++
		}
	}
	for _, value := range tags {
		if value != azure.DropTag {
			count++
		}
	}
	if count > azure.MostTags {
		wrong.Refuse(w.Key(), problem.Limit,
			"annotation %s: with its %d tags public IP %s would have %d, allowed by Azure are %d: take some away",
			key.PublicIPTags.Name, len(w.Tags), p.IP.Name(), count, azure.MostTags)
	}
}

// warnTags warns of tags that a public IP does not get because it is not managed.
func warnTags(w *spec.Spec, have *index.PublicIP, found *problem.List) {
	for name, value := range w.Tags {
		if had, is := have.Tags.Get(name); !is || had != value {
			found.Warn(w.Key(), problem.Unheeded,
				"annotation %s: %q is ignored at public IP %s, which kaz does not manage: set the tags there",
				key.PublicIPTags.Name, w.Service.Annotations[key.PublicIPTags.Name], have.ID.Name())
			return
		}
	}
}

// checkIPTags refuses IP tags that would replace an existing public IP if they are invalid, or if the Service
// names that public IP. If the public IP stays, the Service gets a warning.
func checkIPTags(s *search, w *spec.Spec, p batch.Placement, wrong *problem.List) {
	if p.IP == "" {
		return
	}
	have := p.Public
	renewed := publicip.IsOutdated(s.Index, w, p)
	if renewed && checkHeld(s, w, p, wrong) {
		return
	}
	wants := publicip.WantsIPTags(w, have)
	changed := s.Config.IPTagsMayChange && have.Managed && wants
	asked := fmt.Sprintf("annotation %s: %q", key.IPTags.Name, w.Service.Annotations[key.IPTags.Name])
	switch {
	case !renewed && !changed && have.Exists() && wants:
		wrong.Warn(w.Key(), problem.Unheeded,
			"%s is ignored at public IP %s, which kaz does not manage or other Services share: its IP tags are %s, and Azure changes "+
				"none of a public IP",
			asked, p.IP.Name(), publicip.IPTagsText(have))
	case !renewed && !changed:
		spec.WarnIPTags(w.Service, wrong)
	case w.IPTagSlip != "":
		wrong.Refuse(w.Key(), problem.Annotation,
			"%s would change the IP tags of public IP %s, which are %s, but %s, allowed is %s: correct it, or take the annotation "+
				"away and the public IP stays as it is",
			asked, p.IP.Name(), publicip.IPTagsText(have), w.IPTagSlip, key.IPTags.Allowed)
	case renewed && p.Given():
		wrong.Refuse(w.Key(), problem.Annotation,
			"%s would recreate public IP %s with another address, but %s is that one, allowed are the IP tags that it has, "+
				"%s: ask for these, or take one of the two away",
			asked, p.IP.Name(), p.Asked, publicip.IPTagsText(have))
	}
}

// checkHeld reports whether something keeps an outdated public IP from being recreated. Then other IP tags
// are ignored, and another family is refused.
func checkHeld(s *search, w *spec.Spec, p batch.Placement, wrong *problem.List) bool {
	have := p.Public
	holder := s.ipHolder(w, p)
	switch version := have.Properties.PublicIPAddressVersion; {
	case holder == "":
		return false
	case !have.HasFamily(p.Family):
		wrong.Refuse(w.Key(), problem.Address,
			"its own public IP %s has %s and cannot be recreated while %s, allowed is %s until then",
			p.IP.Name(), version, holder, version)
	default:
		wrong.Warn(w.Key(), problem.Unheeded,
			"annotation %s: %q is ignored at public IP %s, which cannot be recreated while %s, allowed are the IP tags that it has, "+
				"%s, until then",
			key.IPTags.Name, w.Service.Annotations[key.IPTags.Name], p.IP.Name(), holder, publicip.IPTagsText(have))
	}
	return true
}

// ipHolder says what keeps a public IP from being recreated, "" for nothing.
func (s *search) ipHolder(w *spec.Spec, p batch.Placement) string {
	for _, u := range p.At.Uses() {
		if _, live := s.specs[u.Owner]; !live && !s.gone[u.Owner] {
			return fmt.Sprintf("the %s %q of %s uses it", u.What, u.Name, s.NameOf(u, p.IP))
		}
	}
	for _, other := range s.commit {
		if !other.Service.Gone && other.Key() != w.Key() && s.wants(other.Owner, index.Target{PublicIP: p.IP}) {
			return "Service " + other.Key() + " asks for it, too"
		}
	}
	return ""
}

// checkPrefix warns of a prefix that a Service's own public IP is not taken from: it existed
// before, under the name that it has with a prefix of that name.
func checkPrefix(s *search, w *spec.Spec, p batch.Placement, wrong *problem.List) {
	have := p.Public
	from := have.Properties.PublicIPPrefix
	if !have.Exists() || p.Prefix == "" || from != nil && from.ID.Equal(p.Prefix) {
		return
	}
	is := "from none"
	if from != nil {
		is = "from " + string(from.ID)
	}
	wrong.Warn(w.Key(), problem.Unheeded,
		"%s is ignored at public IP %s, which is %s, and Azure changes that of no public IP, allowed is a prefix whose name "+
			"differs in its first %d characters: the Service gets another public IP for it",
		p.Asked, p.IP.Name(), is, naming.LongestName-len(naming.PublicIP(s.Config.ClusterName, w.Base, "", ""))-1)
}

// labelRequest is a Service that asks for a DNS label at a public IP.
type labelRequest struct {
	service *v1.Service
	label   string
}

// checkLabel refuses another DNS label at a public IP that is not managed than the label of a Service that
// was served there before. No tag says which Service set the label.
func checkLabel(s *search, w *spec.Spec, p batch.Placement, wrong *problem.List) {
	ip := p.Public
	if w.Label == nil || !ip.Exists() || ip.Tagged || tag.IsOfOther(ip.Tags, s.Config.ClusterName) {
		return
	}
	at, placed := s.at[p.IP.Key()]
	if !placed {
		return
	}
	there := map[string]bool{at.Owner(): true} // owners that use the frontend, or are placed there
	for _, u := range at.Uses() {
		there[u.Owner] = true
	}
	for _, t := range s.taken[at.Key()] {
		there[t.Owner] = true
	}
	own := labelRequest{w.Service.Service, *w.Label}
	for _, other := range labelRequests(s.Index, ip.ID, there) {
		if other.service.UID == own.service.UID || other.label == own.label || there[w.Owner] && own.precedes(other, ip.Label()) {
			continue
		}
		wrong.Refuse(w.Key(), problem.DNSLabel,
			"annotation %s: %q cannot be set, Service %s asks for %q at public IP %s, allowed is one label for all of them",
			key.DNSLabel.Name, own.label, spec.KeyOf(other.service), other.label, ip.ID.Name())
		return
	}
}

// precedes reports whether of two Services at a public IP this is the one to name
// it: its label is there now, or it is the older one.
func (r labelRequest) precedes(other labelRequest, now string) bool {
	if is := strings.EqualFold(r.label, now); is != strings.EqualFold(other.label, now) {
		return is
	}
	return cmp.Or(r.service.CreationTimestamp.Compare(other.service.CreationTimestamp.Time),
		strings.Compare(spec.KeyOf(r.service), spec.KeyOf(other.service))) < 0
}

// labelRequests are the requests for a label at a public IP by some owners.
func labelRequests(x *index.Index, id azure.ID, among map[string]bool) []labelRequest {
	var requests []labelRequest
	for _, service := range x.Staying() {
		if _, asks := service.Annotations[key.DNSLabel.Name]; !asks || !among[naming.OwnerOf(service)] {
			continue
		}
		w, _ := spec.Read(spec.Service{Service: service}, x.Config)
		if w.Label != nil && publicip.AsksFor(x, w, id) {
			requests = append(requests, labelRequest{service, *w.Label})
		}
	}
	return requests
}
