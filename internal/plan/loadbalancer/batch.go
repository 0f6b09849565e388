package loadbalancer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// batch is the Services of a commit that are to be brought about.
type batch struct {
	live []wish
	gone []wish          // of these only service and base count
	base map[string]bool // of both, in lower case
	// holds are the public IPs, by key, that are kept for places that come later.
	holds map[string]bool
	// waits says which places come in a later round, because something has to go
	// before.
	waits []string
}

// readBatch reads the Services in the order of their keys. One with a problem is
// left out, and thereby left as it is. A key may be there twice: a Service that is
// gone and its successor of the same name. Those in refused have been found to be
// more than Azure takes.
func readBatch(f *facts, refused map[string]bool) (batch, problems) {
	b := batch{base: make(map[string]bool, len(f.Services)), holds: map[string]bool{}}
	var found problems
	services := slices.SortedFunc(slices.Values(f.Services), func(a, b Service) int {
		return cmp.Or(strings.Compare(a.Key(), b.Key()), strings.Compare(string(a.UID), string(b.UID)))
	})
	var wishes []wish
	for _, s := range services {
		if _, no := refused[string(s.UID)]; no {
			continue
		}
		if s.Gone {
			w := wish{service: s, base: baseName(s.Service)}
			if f.isReadable(w, &found) {
				b.gone = append(b.gone, w)
			}
			continue
		}
		w, wrong := readWish(s, f.Config)
		f.refuseUnread(w, &wrong)
		f.refuseWithoutGroup(s, &wrong)
		f.refuseSubnets(w, &wrong)
		f.refusePrivate(w, &wrong)
		found = append(found, wrong...)
		if !wrong.blocking() {
			wishes = append(wishes, w)
		}
	}
	b.live = f.findPlaces(wishes, b.gone, &found)
	for _, w := range slices.Concat(b.live, b.gone) {
		b.base[strings.ToLower(w.base)] = true
	}
	f.postpone(&b)
	f.untangle(&b)
	f.makeRoom(&b)
	return b, found
}

func (f *facts) refuseWithoutGroup(s Service, found *problems) {
	switch {
	case f.Config.SecurityGroupName == "":
		found.refuse(s.Key(), ReasonSecurityGroup, "securityGroupName is not configured, allowed is the name of the nodes' network security group")
	case !f.groupExists:
		found.refuse(s.Key(), ReasonSecurityGroup, "network security group %s is not found, allowed is one that is there: make it, or configure another securityGroupName%s",
			f.Config.securityGroup(), f.azureSays(f.Config.securityGroup()))
	}
}

// firstIPv4 names a frontend with IPv4 that comes with the batch, "" for none.
func (b batch) firstIPv4() string {
	for _, w := range b.live {
		for _, p := range w.places {
			if _, exists := p.spot().frontend(); !exists && !p.is6() {
				return "frontend " + p.frontend
			}
		}
	}
	return ""
}

// has reports whether a Service of this key is of the batch.
func (b batch) has(key string) bool {
	is := func(w wish) bool { return w.service.Key() == key }
	return slices.ContainsFunc(b.live, is) || slices.ContainsFunc(b.gone, is)
}

// names is the keys of the batch's Services.
func (b batch) names() []string {
	var names []string
	for _, w := range slices.Concat(b.live, b.gone) {
		names = append(names, w.service.Key())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// summary says for whom something is done: by name as long as they are few.
func summary(names []string) string {
	const few = 3
	switch n := len(names); {
	case n == 0:
		return "nobody"
	case n > few:
		return fmt.Sprintf("%d Services", n)
	}
	return strings.Join(names, ", ")
}
