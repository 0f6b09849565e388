// Package leftover finds what Azure has for Services that the cluster does not have. Layer L1.
package leftover

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
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/security"
	"kaz/internal/plan/loadbalancer/spec"
)

// Find finds Services that the cluster does not have and for which Azure has something. They are decided like other
// Services that are gone. Names and tags show which Services they were. A UID is as long as a base name has it.
//
// The argument all holds all Services of the cluster that may have something in Azure, whatever serves them. They must be
// read after the snapshot, or Find takes a new Service for one that is gone.
func Find(c cluster.Config, have plan.Snapshot, all []*v1.Service) ([]spec.Service, error) {
	x, err := index.Read(index.Input{Config: c, Have: have})
	if err != nil {
		return nil, err
	}
	f := finder{Index: x, owners: map[string]bool{}, keys: map[string][]*v1.Service{}, named: map[string]bool{},
		found: map[string]spec.Service{}}
	for _, s := range all {
		f.owners[naming.OwnerOf(s)] = true
		f.keys[spec.KeyOf(s)] = append(f.keys[spec.KeyOf(s)], s)
	}
	for _, ip := range x.PublicIPs {
		f.publicIP(ip)
	}
	for _, l := range x.Links {
		for _, at := range x.FrontendsBehind(l) {
			f.service(l.Owner, at.Owner(), func() bool { return f.serves(at) }) // or it was handed over
		}
	}
	for _, lb := range x.LoadBalancers {
		f.loadBalancer(lb)
	}
	rules := x.SecurityGroup.Properties.SecurityRules
	for _, r := range rules {
		if security.IsLegacyRule(r) {
			f.owner(naming.Owner(r.Name))
		}
	}
	if len(f.found) == 0 && slices.ContainsFunc(rules, security.IsManagedRule) {
		// The destinations of these rules are compared with what exists whichever Service is decided.
		f.add(naming.UnknownNamespace+"/security-rules", "")
	}
	return slices.SortedFunc(maps.Values(f.found),
		func(a, b spec.Service) int { return strings.Compare(a.Key()+string(a.UID), b.Key()+string(b.UID)) }), nil
}

type finder struct {
	*index.Index
	owners map[string]bool          // of the Services that exist
	keys   map[string][]*v1.Service // those by their keys
	named  map[string]bool          // owners that are gone and of which a name is known
	found  map[string]spec.Service
}

// add notes a Service that is gone. The argument owner is "" for a Service that shared a resource of another Service.
func (f *finder) add(key, owner string) {
	namespace, name, _ := strings.Cut(key, "/")
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(strings.TrimPrefix(owner, "a"))}}
	f.found[key+"/"+owner] = spec.Service{Service: s, Gone: true}
	f.named[owner] = true
}

// isGone reports whether an owner is a Service that does not exist.
func (f *finder) isGone(owner string) bool { return naming.IsOwned(owner) && !f.owners[owner] }

// owner notes an owner if it is gone. Its Service is known by this name alone.
func (f *finder) owner(owner string) {
	if f.isGone(owner) && !f.named[owner] {
		f.add(naming.UnknownNamespace+"/"+owner, owner)
	}
}

// service notes the Service that a tag names, by its key, if it does not exist. The argument owner is the one in the name
// of the tagged resource, or of its frontend. If that one is gone, an existing Service of the key may be a successor:
// serves reports whether it is served there.
func (f *finder) service(key, owner string, serves func() bool) {
	if !f.isGone(owner) {
		owner = ""
	}
	if strings.Contains(key, "/") && (f.keys[key] == nil || owner != "" && !serves()) {
		f.add(key, owner)
	}
}

// serves reports whether an existing Service has a rule at a frontend. Then the frontend is in use, whatever its name.
func (f *finder) serves(at index.Frontend) bool {
	return slices.ContainsFunc(at.Uses(), func(u index.Use) bool { return f.owners[u.Owner] })
}

// loadBalancer notes the owners of frontends and rules. Frontends with a public IP of another cluster are that cluster's.
func (f *finder) loadBalancer(lb *index.LoadBalancer) {
	isOfOther := func(at index.Frontend) bool {
		return naming.IsOfOther(f.PublicIPOf(at.State()).Tags, f.Config.ClusterName)
	}
	for owner, frontends := range lb.Owned {
		idle := slices.DeleteFunc(slices.Clone(frontends), f.serves)
		if len(idle) > 0 && !slices.ContainsFunc(idle, isOfOther) {
			f.owner(owner)
		}
	}
	for owner, rules := range lb.RulesOf {
		if !slices.ContainsFunc(rules, func(r network.LoadBalancingRule) bool {
			return isOfOther(index.Frontend{LB: lb, Name: r.FrontendIPConfiguration.To().Name()})
		}) {
			f.owner(owner)
		}
	}
}

// publicIP notes which Services of a public IP do not exist. A shared public IP stays for the others.
func (f *finder) publicIP(ip *index.PublicIP) {
	owner := naming.PublicIPOwner(f.Config.ClusterName, ip.ID.Name())
	if _, named := naming.ClusterIn(ip.Tags); !ip.Managed || !named || owner == "" {
		return
	}
	at, known := f.FrontendAt(ip.Properties.IPConfiguration.To())
	for _, key := range ip.Services {
		// It may serve an existing Service of the same name, or be what that one asks for.
		f.service(key, owner, func() bool {
			return len(ip.Services) > 1 || known && f.serves(at) || slices.ContainsFunc(f.keys[key], func(service *v1.Service) bool {
				s, _ := spec.Read(spec.Service{Service: service}, f.Config)
				return publicip.AsksFor(f.Index, s, ip.ID)
			})
		})
	}
}

// Absent are the UIDs of Services of which no load balancer has anything: they are new, or something
// removed what they had. If a load balancer cannot be read, which the decision reports, none is known to be absent.
func Absent(in index.Input) map[types.UID]bool {
	all, err := index.Balancers(in)
	if err != nil {
		return nil
	}
	absent := map[types.UID]bool{}
	for _, s := range in.Services {
		owner := naming.OwnerOf(s.Service)
		if !slices.ContainsFunc(all, func(lb *index.LoadBalancer) bool { return lb.Has(owner) }) {
			absent[s.UID] = true
		}
	}
	return absent
}

// OtherName is the name of a cluster under which the addresses of this one's Services were made.
type OtherName struct {
	Name      string
	Addresses int      // how many there are
	PublicIP  azure.ID // one of them
	Address   string
	Service   string
}

// FindOtherName looks for public IPs that were made for Services of this cluster under another cluster's
// name, where none was made under its own. Then the configured name is probably wrong, and each of these
// Services would get a new address. A public IP that its Service names does not count.
func FindOtherName(in index.Input) (other OtherName, found bool) {
	services := map[string]*v1.Service{}
	for _, s := range in.All() {
		services[spec.KeyOf(s)] = s
	}
	ips, _ := plan.Views[network.PublicIPAddress](in.Have, "", network.PublicIPAddresses) // everywhere; the decision reports an error
	for _, ip := range ips {
		name, ok := naming.ClusterIn(ip.Tags)
		keys := naming.ServicesIn(ip.Tags)
		i := slices.IndexFunc(keys, func(key string) bool { // of a Service for which it was made under this name of a cluster
			s := services[key]
			return s != nil && cluster.HasPrefix(ip.ID.Name(), naming.PublicIP(name, naming.Base(s), "", ""))
		})
		switch {
		case !ok, i < 0, ip.Properties.IPConfiguration == nil:
		case strings.EqualFold(name, in.Config.ClusterName):
			return OtherName{}, false
		case asksFor(services[keys[i]], ip):
		default:
			if other.Addresses == 0 {
				other = OtherName{Name: name, PublicIP: ip.ID, Address: ip.Properties.IPAddress, Service: keys[i]}
			}
			other.Addresses++
		}
	}
	return other, other.Addresses > 0
}

// asksFor reports whether a Service asks for a public IP by its name or address.
func asksFor(s *v1.Service, ip azure.Resource[network.PublicIPAddress]) bool {
	said := append(slices.Collect(maps.Values(s.Annotations)), s.Spec.LoadBalancerIP)
	return slices.ContainsFunc(said, func(value string) bool {
		value = strings.TrimSpace(value)
		return value != "" && (strings.EqualFold(value, ip.ID.Name()) || value == ip.Properties.IPAddress)
	})
}
