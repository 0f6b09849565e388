package loadbalancer

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"kaz/internal/azure"
	"kaz/internal/key"
)

// The tags by which a public IP says whom it serves, and their older names, which
// are read only.
const (
	tagServices       = key.TagServices
	tagCluster        = key.TagCluster
	tagLabel          = "k8s-azure-dns-label-service"
	legacyTagServices = "service"
	legacyTagCluster  = "kubernetes-cluster-name"
	legacyTagLabel    = "kubernetes-dns-label-service"
)

// wantedTags is the configured tags with own ones over them. Where system tags are
// configured, tags that nobody wants and that are none of those are dropped.
func wantedTags(c Config, own, have azure.Tags) azure.Tags {
	if len(c.Tags)+len(own) == 0 && len(c.SystemTags) == 0 {
		return nil
	}
	tags := azure.Tags{}
	set := func(name, value string) {
		for known := range tags {
			if sameText(known, name) {
				delete(tags, known)
			}
		}
		tags[name] = value
	}
	for _, from := range []azure.Tags{c.Tags, own} {
		for name, value := range from {
			set(name, value)
		}
	}
	if len(c.SystemTags) > 0 {
		for name := range have {
			if _, wanted := tags.Get(name); !wanted && !isSystemTag(c, name) {
				tags[name] = azure.DropTag
			}
		}
	}
	return tags
}

// addTags adds tags of names that are not there yet.
func addTags(to, tags azure.Tags) {
	for name, value := range tags {
		if _, there := to.Get(name); !there {
			to[name] = value
		}
	}
}

// frameTags is wantedTags for a load balancer or the security group. These have configured
// tags alone, so where there are none it is not kaz that tags them, and others' tags stay. No
// system tags make notes go, which may be another cluster's that shares the security group.
func frameTags(c Config, notes, have azure.Tags) azure.Tags {
	switch {
	case len(c.Tags) == 0:
		c.SystemTags = nil
	case len(c.SystemTags) > 0:
		c.SystemTags = slices.Concat(c.SystemTags, []string{notesOfKaz})
	}
	return wantedTags(c, notes, have)
}

// refuseUnlisted refuses a Service whose name does not fit into the tag that lists the Services
// of a managed public IP: Azure would refuse the public IP. Who is listed stays.
func (s *search) refuseUnlisted(w wish, p place, wrong *problems) {
	have := s.ips[p.ip.Key()]
	listed, managed := servicesIn(have.Tags)
	if !managed || ofOtherCluster(have.Tags, s.Config.ClusterName) || slices.Contains(listed, w.service.Key()) {
		return
	}
	length := func() int {
		return utf8.RuneCountInString(strings.Join(slices.Concat(listed, s.coming[p.ip.Key()], []string{w.service.Key()}), ","))
	}
	if length() <= azure.LongestTagValue {
		return
	}
	listed = slices.DeleteFunc(listed, func(name string) bool { return s.letsGo(name, p.ip) })
	if n := length(); n > azure.LongestTagValue {
		wrong.refuse(w.service.Key(), ReasonLimit,
			"with its name the tag %s of public IP %s, which lists the Services there, would have %d characters, allowed by Azure are %d: have fewer Services at one address, or an address of your own, which carries no such tag",
			tagServices, p.ip.Name(), n, azure.LongestTagValue)
	}
}

// letsGo reports whether a Service of the commit leaves a public IP that has it in its list.
func (s *search) letsGo(service string, ip azure.ID) bool {
	lets := false
	for _, w := range s.commit {
		switch {
		case w.service.Key() != service:
		case !w.service.Gone && s.wants(strings.ToLower(w.base), target{ip: ip}):
			return false
		default:
			lets = lets || slices.ContainsFunc(s.managedIPsOf(w), ip.Equal)
		}
	}
	return lets
}

// tagsAt are the tags that a Service brings to a public IP.
func (w wish) tagsAt(p place) azure.Tags {
	tags := azure.Tags{}
	if p.ip != "" {
		maps.Copy(tags, w.ipTags)
	}
	if p.ip != "" && w.label != nil && *w.label != "" {
		tags[tagLabel] = w.service.Key()
	}
	return tags
}

// noteTags remembers what a Service brings to a public IP, for the Services that come after.
func (s *search) noteTags(w wish, p place) {
	if s.tagged[p.ip.Key()] == nil {
		s.tagged[p.ip.Key()] = azure.Tags{}
	}
	addTags(s.tagged[p.ip.Key()], w.tagsAt(p))
}

// noteListed remembers who comes to a managed public IP, for the Services that come after.
func (s *search) noteListed(w wish, p place) {
	if listed, managed := servicesIn(s.ips[p.ip.Key()].Tags); managed && !slices.Contains(listed, w.service.Key()) {
		s.coming[p.ip.Key()] = append(s.coming[p.ip.Key()], w.service.Key())
	}
}

// refuseTags refuses tags that a managed public IP cannot have beside those that it gets
// besides: Azure would refuse the public IP. Those of Services that found their place before
// count, and what others who stay there have there.
func (s *search) refuseTags(w wish, p place, wrong *problems) {
	have, exists := s.ips[p.ip.Key()]
	if p.ip == "" || len(w.ipTags) == 0 {
		return
	}
	if exists && !s.isManaged(have) {
		warnTags(w, have, wrong)
		return
	}
	listed, _ := servicesIn(have.Tags)
	own := azure.Tags{tagServices: "", tagCluster: ""}
	addTags(own, w.tagsAt(p))
	addTags(own, s.tagged[p.ip.Key()])
	if owner := labelOwner(have.Tags); owner != "" && !s.letsGo(owner, p.ip) {
		own[tagLabel] = owner
	}
	for _, other := range listed {
		if other != w.service.Key() && !s.letsGo(other, p.ip) {
			addTags(own, s.tagsOfOther(other, have))
		}
	}
	tags := wantedTags(s.Config, own, have.Tags)
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
		wrong.refuse(w.service.Key(), ReasonLimit, "annotation %s: with its %d tags public IP %s would have %d, allowed by Azure are %d: take some away",
			key.PublicIPTags.Name, len(w.ipTags), p.ip.Name(), count, azure.MostTags)
	}
}

// warnTags tells of tags that somebody's own public IP does not get.
func warnTags(w wish, have publicIP, found *problems) {
	for name, value := range w.ipTags {
		if had, is := have.Tags.Get(name); !is || had != value {
			found.warn(w.service.Key(), ReasonUnheeded, "annotation %s: %q is not heeded at public IP %s, which somebody else made: tag it there",
				key.PublicIPTags.Name, w.service.Annotations[key.PublicIPTags.Name], have.ID.Name())
			return
		}
	}
}

func isSystemTag(c Config, name string) bool {
	return slices.ContainsFunc(c.SystemTags, func(prefix string) bool {
		return len(name) >= len(prefix) && sameText(name[:len(prefix)], prefix)
	})
}

// servicesIn is what a public IP's tag names, in its order, and whether that makes the
// public IP managed. One whose tag names no Service is somebody's own: people have tags of
// these names, too, and Azure lets anybody write them.
func servicesIn(tags azure.Tags) ([]string, bool) {
	text, ok := tags.Get(tagServices)
	if !ok {
		text, _ = tags.Get(legacyTagServices)
	}
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	if !slices.ContainsFunc(names, isServiceKey) {
		return nil, false
	}
	return names, true
}

// isServiceKey reports whether a text has the form of a Service's key, NAMESPACE/NAME.
func isServiceKey(text string) bool {
	namespace, name, _ := strings.Cut(text, "/")
	return len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Label(name)) == 0
}

// ofOtherCluster reports whether a tag says that a public IP is another cluster's.
func ofOtherCluster(tags azure.Tags, cluster string) bool {
	name, ok := clusterIn(tags)
	return ok && !sameText(name, cluster)
}

// ofThisCluster reports whether a tag says that a public IP is this cluster's.
func ofThisCluster(tags azure.Tags, cluster string) bool {
	name, ok := clusterIn(tags)
	return ok && sameText(name, cluster)
}

func clusterIn(tags azure.Tags) (string, bool) {
	if name, ok := tags.Get(tagCluster); ok {
		return name, ok
	}
	return tags.Get(legacyTagCluster)
}

// labelOwner is the Service that has named a public IP in DNS, "" for none.
func labelOwner(tags azure.Tags) string {
	name, ok := tags.Get(tagLabel)
	if !ok {
		name, _ = tags.Get(legacyTagLabel)
	}
	return strings.TrimSpace(name)
}

// labelTag is what says that a Service has named a public IP, as it is said already
// if it is.
func labelTag(have azure.Tags, service string) string {
	if text, ok := have.Get(tagLabel); ok && strings.TrimSpace(text) == service {
		return text
	}
	return service
}

// dropLabel is the wanted tags without one that names the owner of a DNS label.
func dropLabel(tags, have azure.Tags) azure.Tags {
	if tags == nil {
		tags = azure.Tags{}
	}
	for _, name := range []string{tagLabel, legacyTagLabel} {
		if _, there := have.Get(name); there {
			tags[name] = azure.DropTag
		}
	}
	return tags
}
