package loadbalancer

import (
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
)

// namer is a Service that asks for a DNS label at a public IP.
type namer struct {
	service *v1.Service
	label   string
}

// refuseOtherLabel keeps a Service from naming a public IP that somebody made otherwise
// than one that was served there before. No tag says whose the label is that it has.
func (s *search) refuseOtherLabel(w wish, p place, wrong *problems) {
	ip, exists := s.ips[p.ip.Key()]
	if _, managed := servicesIn(ip.Tags); w.label == nil || !exists || managed || ofOtherCluster(ip.Tags, s.Config.ClusterName) {
		return
	}
	at, stands := s.at[p.ip.Key()]
	if !stands {
		return
	}
	there := s.standing(at)
	now := labelOf(ip)
	me := namer{w.service.Service, *w.label}
	for _, other := range s.namers(ip.ID, there) {
		if other.service.UID == me.service.UID || other.label == me.label || there[strings.ToLower(w.base)] && me.goesBefore(other, now) {
			continue
		}
		wrong.refuse(w.service.Key(), ReasonDNSLabel, "annotation %s: %q cannot be set, Service %s asks for %q at public IP %s, allowed is one label for all of them",
			key.DNSLabel.Name, me.label, other.key(), other.label, ip.ID.Name())
		return
	}
}

func (n namer) key() string { return n.service.Namespace + "/" + n.service.Name }

// goesBefore reports whether of two that stand at a public IP a Service is the one to name
// it: its label is there now, or it is the older one.
func (n namer) goesBefore(other namer, now string) bool {
	if sameText(n.label, now) != sameText(other.label, now) {
		return sameText(n.label, now)
	}
	return cmp.Or(n.service.CreationTimestamp.Compare(other.service.CreationTimestamp.Time), strings.Compare(n.key(), other.key())) < 0
}

// standing are the base names of those that stand at a frontend, or have got a place there.
func (s *search) standing(at spot) map[string]bool {
	there := map[string]bool{ownerBase(at.name): true}
	for _, u := range at.side.uses[strings.ToLower(at.name)] {
		there[u.owner] = true
	}
	for _, t := range s.taken[at.key()] {
		there[t.owner] = true
	}
	return there
}

// namers are those of some Services, by their base names, that shall be served at a public
// IP and ask for a label.
func (s *search) namers(id azure.ID, among map[string]bool) []namer {
	all := slices.Clone(s.Others)
	for _, one := range s.Services {
		if !one.Gone {
			all = append(all, one.Service)
		}
	}
	var namers []namer
	for _, one := range all {
		if !hasAnnotation(Service{Service: one}, key.DNSLabel.Name) || !among[strings.ToLower(baseName(one))] {
			continue
		}
		if w, _ := readWish(Service{Service: one}, s.Config); w.label != nil && s.asksFor(w, id) {
			namers = append(namers, namer{one, *w.label})
		}
	}
	return namers
}

// asksFor reports whether a Service shall be served at a public IP.
func (f *facts) asksFor(w wish, id azure.ID) bool {
	var ignored problems
	return !w.internal && slices.ContainsFunc(w.addresses, func(a address) bool {
		want, ok := f.publicIPFor(w, a, &ignored)
		return ok && want.Equal(id)
	})
}

// labelOf is the DNS label that a public IP has, "" for none.
func labelOf(ip publicIP) string {
	if set := ip.Properties.DNSSettings; set != nil {
		return set.DomainNameLabel
	}
	return ""
}

// asksForLabel reports whether a Service, by its key, asks for a DNS label. One that is not
// known may do so.
func (f *facts) asksForLabel(service string) bool {
	for _, s := range f.alive {
		if s.Namespace+"/"+s.Name == service {
			label, _ := key.DNSLabel.Read(s.Annotations)
			return label != ""
		}
	}
	return true
}

// nameLater leaves public IPs without their DNS labels for this round which others have that
// go in it: Azure lets one alone have a label. It says which ones those are.
func (f *facts) nameLater(by map[string]*users, order []azure.ID, kept map[string]bool) (waits []string) {
	for _, id := range order {
		u := by[id.Key()]
		i := slices.IndexFunc(u.claims, func(c claim) bool { return c.label != nil })
		if i < 0 {
			continue
		}
		if from := f.labelComesFrom(u.claims[i], by, kept); from != "" {
			u.unnamed = true
			waits = append(waits, "public IP "+id.Name()+" gets the DNS label of "+from.Name()+", which goes ["+u.claims[i].service.Key()+"]")
		}
	}
	return waits
}

// labelComesFrom is the public IP that a Service leaves, that goes with that, and that has the
// label which the Service asks for at another one, "" for none.
func (f *facts) labelComesFrom(c claim, by map[string]*users, kept map[string]bool) azure.ID {
	if *c.label == "" || sameText(labelOf(f.ips[c.place.ip.Key()]), *c.label) {
		return ""
	}
	for _, id := range f.managedIPsOf(c.wish) {
		ip, u := f.ips[id.Key()], by[id.Key()]
		names, _ := servicesIn(ip.Tags)
		stays := u == nil || len(u.claims) > 0 || kept[id.Key()] || slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(u.leaving, name) })
		if !stays && sameText(labelOf(ip), *c.label) && hasVersion(ip, c.place.family) {
			return id
		}
	}
	return ""
}
