package loadbalancer

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
)

// Nobody is the namespace of Services of which no name is known. No namespace can be
// called that, and nothing in Azure.
const Nobody = "(deleted)"

// Leftovers are Services that the cluster does not have and of which Azure has
// something all the same: nobody else would take it away any more. They are to be
// served as others that are gone. Who they were is known by as much as names and tags
// tell: the UID is as long as a base name has it.
//
// all are all Services of the cluster that may have something in Azure, whoever serves
// them; they have to be read after the snapshot, or one that has come in between is
// taken for one that is gone.
func Leftovers(c Config, have plan.Snapshot, all []*v1.Service) ([]Service, error) {
	f, err := readFacts(Input{Config: c, Have: have})
	if err != nil {
		return nil, err
	}
	l := leftovers{facts: f, bases: map[string]bool{}, keys: map[string][]*v1.Service{}, named: map[string]bool{}, found: map[string]Service{}}
	for _, s := range all {
		l.bases[strings.ToLower(baseName(s))] = true
		l.keys[s.Namespace+"/"+s.Name] = append(l.keys[s.Namespace+"/"+s.Name], s)
	}
	for _, ip := range f.ips {
		l.publicIP(ip)
	}
	for _, link := range f.linksByID {
		l.link(link)
	}
	for _, s := range f.sides {
		l.side(s)
	}
	managed := false
	for _, r := range f.group.Properties.SecurityRules {
		managed = managed || isManagedRule(r)
		if isLegacyRule(r) {
			l.base(ownerBase(r.Name))
		}
	}
	if managed && len(l.found) == 0 {
		// Where these rules lead to is compared with what there is whoever is served.
		l.add(Nobody, "security-rules", "")
	}
	return slices.SortedFunc(maps.Values(l.found), func(a, b Service) int { return strings.Compare(a.Key()+string(a.UID), b.Key()+string(b.UID)) }), nil
}

// leftovers collects them.
type leftovers struct {
	*facts
	bases map[string]bool          // of the Services that there are
	keys  map[string][]*v1.Service // those by their keys
	named map[string]bool          // bases of leftovers of which a name is known
	found map[string]Service
}

func (l *leftovers) add(namespace, name, base string) {
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(strings.TrimPrefix(base, "a"))}}
	l.found[namespace+"/"+name+"/"+base] = Service{Service: s, Gone: true}
}

// isLeft reports whether a base name is one of a Service that is not there.
func (l *leftovers) isLeft(base string) bool { return looksOwned(base) && !l.bases[base] }

// base notes a base name that is left. Its Service has no name but this.
func (l *leftovers) base(base string) {
	if l.isLeft(base) && !l.named[base] {
		l.add(Nobody, base, base)
	}
}

// serves reports whether a Service that is there has a rule at a frontend: whatever it is
// called, it is that one's.
func (l *leftovers) serves(s *side, frontend string) bool {
	return slices.ContainsFunc(s.uses[strings.ToLower(frontend)], func(u use) bool { return l.bases[u.owner] })
}

func (l *leftovers) side(s *side) {
	for base, frontends := range s.byOwner {
		idle := slices.DeleteFunc(slices.Clone(frontends), func(fe azure.Child[network.FrontendIPConfiguration]) bool { return l.serves(s, fe.Name) })
		// A frontend with an address of another cluster's is that one's.
		if len(idle) > 0 && !slices.ContainsFunc(idle, func(fe azure.Child[network.FrontendIPConfiguration]) bool {
			return l.isOthers(fe.Properties.PublicIPAddress)
		}) {
			l.base(base)
		}
	}
	for base, rules := range s.ruled {
		others := false
		for _, r := range rules {
			if r.FrontendIPConfiguration != nil {
				fe := s.known[strings.ToLower(r.FrontendIPConfiguration.ID.Name())]
				others = others || l.isOthers(fe.Properties.PublicIPAddress)
			}
		}
		if !others {
			l.base(base)
		}
	}
}

func (l *leftovers) isOthers(ip *azure.Reference) bool {
	return ip != nil && ofOtherCluster(l.ips[ip.ID.Key()].Tags, l.Config.ClusterName)
}

// publicIP notes whom a public IP of this cluster serves that is not there. One that
// several had stays for those that are.
func (l *leftovers) publicIP(ip publicIP) {
	names, managed := servicesIn(ip.Tags)
	base := l.baseOf(ip.ID.Name())
	if !managed || base == "" || !ofThisCluster(ip.Tags, l.Config.ClusterName) {
		return
	}
	for _, key := range names {
		namespace, name, ok := strings.Cut(key, "/")
		switch {
		case !ok:
		case l.isLeft(base) && (l.keys[key] == nil || len(names) == 1 && !l.isOf(ip, key)):
			l.named[base] = true
			l.add(namespace, name, base)
		case l.keys[key] == nil: // it was a guest
			l.add(namespace, name, "")
		}
	}
}

// isOf reports whether a public IP that was made for a Service which is gone is one of
// those of a key that are there, and not of one before with the same name: it serves or
// asks for it.
func (l *leftovers) isOf(ip publicIP, key string) bool {
	if at := ip.Properties.IPConfiguration; at != nil {
		if s := l.sideWith(at.ID.Parent()); s != nil && l.serves(s, at.ID.Name()) {
			return true
		}
	}
	return slices.ContainsFunc(l.keys[key], func(s *v1.Service) bool {
		w, _ := readWish(Service{Service: s}, l.Config)
		return l.asksFor(w, ip.ID)
	})
}

// link notes whose a private link service is that stands at a frontend of a Service which
// is not there, or whose Service is not there.
func (l *leftovers) link(link privateLink) {
	owner, _ := link.Tags.Get(tagLinkOwner)
	namespace, name, ok := strings.Cut(owner, "/")
	if !ok || !l.Config.isManagedLink(link) {
		return
	}
	for _, ref := range link.Properties.LoadBalancerFrontendIPConfigurations {
		at, base := l.sideWith(ref.ID.Parent()), ownerBase(ref.ID.Name())
		handed := at != nil && l.keys[owner] != nil && l.serves(at, ref.ID.Name())
		switch {
		case at == nil || handed:
		case l.isLeft(base):
			l.named[base] = true
			l.add(namespace, name, base)
		case l.keys[owner] == nil: // it was a guest
			l.add(namespace, name, "")
		}
	}
}

// baseOf is the base name in the name of a public IP that was made for a Service, ""
// for the name of another one.
func (f *facts) baseOf(name string) string {
	prefix := strings.ToLower(f.Config.ClusterName) + "-"
	rest, ok := strings.CutPrefix(strings.ToLower(name), prefix)
	if !ok || !looksOwned(rest) {
		return ""
	}
	return ownerBase(rest)
}

// Absent are the UIDs of those Services of a commit that shall be served and of which
// no load balancer has anything: they are new, or somebody took them away.
func Absent(in Input) (map[types.UID]bool, error) {
	absent := map[types.UID]bool{}
	byBase := map[string]types.UID{}
	for _, s := range in.Services {
		if !s.Gone {
			absent[s.UID] = true
			byBase[strings.ToLower(baseName(s.Service))] = s.UID
		}
	}
	for _, id := range balancersOf(in) {
		view, _, err := plan.View[links](in.Have, id)
		if err != nil {
			return nil, err
		}
		for _, fe := range view.Properties.FrontendIPConfigurations {
			delete(absent, byBase[ownerBase(fe.Name)])
		}
		for _, r := range view.Properties.LoadBalancingRules {
			delete(absent, byBase[ownerBase(r.Name)])
		}
	}
	return absent, nil
}
