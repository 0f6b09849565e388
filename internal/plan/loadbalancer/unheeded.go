package loadbalancer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/key"
)

// A Service may say what nobody heeds: an annotation that is mistyped, or about a port or an
// IP family that it does not have. Such Services have always been served, so they are, and
// their owners are warned.

func warnUnheeded(w wish, c Config, found *problems) {
	s := w.service
	var ports []int32
	for _, p := range s.Spec.Ports {
		ports = append(ports, p.Port)
	}
	unheeded := map[string]bool{}
	for _, one := range inCompany {
		for _, name := range one.names {
			if value := s.Annotations[name]; value != "" && !one.heeded(s) {
				unheeded[name] = true
				found.warn(s.Key(), ReasonUnheeded, "annotation %s: %q is not heeded %s", name, value, one.without)
			}
		}
	}
	for _, doubt := range key.Doubts(s.Annotations, ports) {
		if doubt.Key != key.IPTags.Name && !unheeded[doubt.Key] { // of those its public IP decides
			warnDoubt(s, doubt, found)
		}
	}
	if probed := s.Spec.HealthCheckNodePort; probed > 0 {
		ports = append(ports, probed)
	}
	for _, one := range key.Strangers(s.Annotations, ports) {
		found.warn(s.Key(), ReasonUnknown, "annotation %s: %q %s", one.Name, one.Value, whyUnheeded(one, ports))
	}
	warnAbsentFamilies(s, found)
	warnUnknownBalancers(s, c, found)
}

// inCompany are annotations that say something beside others only.
var inCompany = []struct {
	names   []string
	heeded  func(Service) bool
	without string // to follow "is not heeded"
}{
	{
		[]string{key.InternalSubnet.Name}, isOn(key.Internal, true),
		"without annotation " + key.Internal.Name + `: "true"`,
	},
	{
		[]string{key.PublicIPGroup.Name, key.PublicIPName.Name, key.PublicIPNameIPv6.Name, key.PublicIPPrefix.Name, key.PublicIPPrefixIPv6.Name, key.PublicIPTags.Name, key.IPTags.Name, key.DNSLabel.Name},
		isOn(key.Internal, false), "beside annotation " + key.Internal.Name + `: "true", with which there is no public IP`,
	},
	{
		[]string{key.HAPorts.Name}, func(s Service) bool { return isOn(key.HAPorts, false)(s) || isOn(key.Internal, true)(s) },
		"without annotation " + key.Internal.Name + `: "true"; each port has a rule of its own`,
	},
	{
		append(key.LinkOptions(), key.LinkGroup.Name), isOn(key.LinkCreate, true), "without annotation " + key.LinkCreate.Name + `: "true"`,
	},
}

// isOn finds Services whose switch is in a position.
func isOn(switched key.Annotation[bool], position bool) func(Service) bool {
	return func(s Service) bool {
		on, _ := switched.Read(s.Annotations)
		return on == position
	}
}

func warnDoubt(s Service, doubt *key.Error, found *problems) {
	found.warn(s.Key(), ReasonAnnotation, "annotation %v; the Service is not refused for it", doubt)
}

// warnKinds tells of a slip in IP tags that no public IP is lost for.
func warnKinds(s Service, found *problems) {
	kinds, _, _ := key.IPTags.Lookup(s.Annotations)
	warnSkipped(s, key.IPTags, kinds, found)
	if err := key.IPTags.Doubt(kinds); err != nil {
		warnDoubt(s, &key.Error{Key: key.IPTags.Name, Value: s.Annotations[key.IPTags.Name], Allowed: key.IPTags.Allowed, Cause: err}, found)
	}
}

func whyUnheeded(one key.Stranger, ports []int32) string {
	const unheeded = "is not heeded: "
	switch {
	case one.Port != "":
		return unheeded + fmt.Sprintf("%s is no port of the Service, allowed is one of %v", one.Port, ports)
	case one.Nearest != "":
		return unheeded + "there is no such annotation, but " + one.Nearest
	}
	return unheeded + "there is no such annotation, nor one that is much like it"
}

// warnAbsentFamilies reads what annotations say of addresses of a family that the Service
// does not have. spec.loadBalancerIP is of one that it has, or of none.
func warnAbsentFamilies(s Service, found *problems) {
	bare := *s.Service
	bare.Spec.LoadBalancerIP = ""
	for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
		if slices.Contains(familiesOf(s), family) {
			continue
		}
		var wrong problems
		readPin(Service{Service: &bare}, family, &wrong)
		for _, p := range wrong {
			found.warn(p.Object, p.Reason, "%s; the Service has no %s address, so this is not heeded", p.Message, family)
		}
	}
}

// warnUnknownBalancers finds names of load balancers that are not configured. Where there are
// several and none of them is named, the Service is refused.
func warnUnknownBalancers(s Service, c Config, found *problems) {
	var names []string
	for _, b := range c.entries() {
		names = append(names, b.Name)
	}
	isNone := func(asked string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return sameText(name, asked) })
	}
	asked := balancersAsked(s)
	unknown := slices.DeleteFunc(slices.Clone(asked), func(one string) bool { return !isNone(one) })
	if len(unknown) == 0 || len(c.Balancers) > 0 && len(unknown) == len(asked) {
		return
	}
	found.warn(s.Key(), ReasonAnnotation, "annotation %s: %s left out, allowed are configured load balancers: %s", key.Balancers.Name, quoted(unknown), strings.Join(names, ", "))
}

// warnFurther tells of further addresses that are another Service's. Packets for this one come
// there only by a rule for all ports, or by one of somebody's own.
func (s *search) warnFurther(w wish, places []place, found *problems) {
	for _, ip := range w.further {
		at, stands := s.spotOf(ip)
		other := s.alive[ownerBase(at.name)]
		if !stands || other == nil || other.UID == w.service.UID || slices.ContainsFunc(places, func(p place) bool { return p.spot() == at }) {
			continue
		}
		if i := slices.IndexFunc(w.service.Spec.Ports, func(p v1.ServicePort) bool { return !s.isBrought(p, at) }); i >= 0 {
			p := w.service.Spec.Ports[i]
			found.warn(w.service.Key(), ReasonAddress, "annotation %s: %q is the address of Service %s/%s, where nothing brings the packets of port %d/%s to this one, allowed are addresses for which somebody else does",
				key.AdditionalIPs.Name, ip, other.Namespace, other.Name, p.Port, protocolOf(p))
		}
	}
}

// spotOf is where an address stands.
func (s *search) spotOf(ip netip.Addr) (at spot, stands bool) {
	keys := []string{ip.String()}
	for _, id := range s.ipsAt[ip.String()] {
		keys = append(keys, id.Key())
	}
	for _, one := range keys {
		if at, stands = s.at[one]; stands {
			return at, true
		}
	}
	return at, false
}

// isBrought reports whether something at a frontend that is not one Service's alone takes the
// packets of a port.
func (s *search) isBrought(p v1.ServicePort, at spot) bool {
	brings := func(u use) bool {
		return (u.owner == "" || u.first == 0) && u.takes(protocols[protocolOf(p)], p.Port)
	}
	return slices.ContainsFunc(at.side.uses[strings.ToLower(at.name)], brings) ||
		slices.ContainsFunc(s.taken[at.key()], func(t taking) bool { return brings(t.use) })
}
