package spec

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/problem"
)

// warnIgnored warns of what a Service says without effect: an annotation that is mistyped, or about
// a port or an IP family that the Service does not have. Such Services have always been served.
func (r *reader) warnIgnored() {
	var ports []int32
	for _, p := range r.Spec.Ports {
		ports = append(ports, p.Port)
	}
	ignored := map[string]bool{}
	for _, d := range dependent() {
		for _, name := range d.names {
			if value := r.Annotations[name]; value != "" && !d.heeded(r.Service) {
				ignored[name] = true
				r.warn(problem.Unheeded, "annotation %s: %q is ignored %s", name, value, d.without)
			}
		}
	}
	for _, doubt := range key.Warnings(r.Annotations, ports) {
		if doubt.Key != key.IPTags.Name && !ignored[doubt.Key] { // IP tags are judged with the public IP
			warnDoubt(r.Service, doubt, r.found)
		}
	}
	if probed := r.Spec.HealthCheckNodePort; probed > 0 {
		ports = append(ports, probed)
	}
	for _, s := range key.Unknowns(r.Annotations, ports) {
		r.warn(problem.Unknown, "annotation %s: %q %s", s.Name, s.Value, whyIgnored(s, ports))
	}
	r.warnAbsentFamilies()
	r.warnUnknownLoadBalancers()
}

// dependency is annotations that have an effect only together with others.
type dependency struct {
	names   []string
	heeded  func(Service) bool
	without string // to follow "is ignored"
}

func dependent() []dependency {
	return []dependency{
		{
			[]string{key.InternalSubnet.Name}, isOn(key.Internal, true),
			"without annotation " + key.Internal.Name + `: "true"`,
		},
		{
			[]string{key.PublicIPGroup.Name, key.PublicIPName.Name, key.PublicIPNameIPv6.Name, key.PublicIPPrefix.Name,
				key.PublicIPPrefixIPv6.Name, key.PublicIPTags.Name, key.IPTags.Name, key.DNSLabel.Name},
			isOn(key.Internal, false), "together with annotation " + key.Internal.Name + `: "true": an internal Service has no public IP`,
		},
		{
			[]string{key.HAPorts.Name}, func(s Service) bool { return isOn(key.HAPorts, false)(s) || isOn(key.Internal, true)(s) },
			"without annotation " + key.Internal.Name + `: "true"; each port has a rule of its own`,
		},
		{
			append(key.LinkOptions(), key.LinkGroup.Name), isOn(key.LinkCreate, true), "without annotation " + key.LinkCreate.Name +
				`: "true"`,
		},
	}
}

// isOn finds Services that have a switch in a position.
func isOn(switched key.Annotation[bool], position bool) func(Service) bool {
	return func(s Service) bool {
		on, _ := switched.Read(s.Annotations)
		return on == position
	}
}

func warnDoubt(s Service, doubt *key.Error, found *problem.List) {
	found.Warn(s.Key(), problem.Annotation, "annotation %v; the Service is not refused for it", doubt)
}

// WarnIPTags warns of a slip in IP tags for which no public IP is lost.
func WarnIPTags(s Service, found *problem.List) {
	pairs, _, _ := key.IPTags.Lookup(s.Annotations)
	warnSkipped(s, key.IPTags, pairs, found)
	if err := key.IPTags.Warning(pairs); err != nil {
		warnDoubt(s,
			&key.Error{Key: key.IPTags.Name, Value: s.Annotations[key.IPTags.Name], Allowed: key.IPTags.Allowed, Cause: err}, found)
	}
}

func whyIgnored(s key.Unknown, ports []int32) string {
	const ignored = "is ignored: "
	switch {
	case s.Port != "":
		return ignored + fmt.Sprintf("%s is no port of the Service, allowed is one of %v", s.Port, ports)
	case s.Nearest != "":
		return ignored + "no such annotation exists, but " + s.Nearest
	}
	return ignored + "no such annotation exists, and none is similar"
}

// warnAbsentFamilies reads what annotations say of addresses of a family that the Service
// does not have. spec.loadBalancerIP is of a family that it has, or of none.
func (r *reader) warnAbsentFamilies() {
	bare := *r.Service.Service
	bare.Spec.LoadBalancerIP = ""
	for _, family := range r.absentFamilies() {
		other := newReader(Service{Service: &bare})
		other.pin(family)
		for _, p := range *other.found {
			r.warn(p.Reason, "%s; the Service has no %s address, so this is ignored", p.Message, family)
		}
	}
}

// warnUnknownLoadBalancers finds names of load balancers that are not configured. Where several
// are configured and the Service names none of them, placement refuses it.
func (r *reader) warnUnknownLoadBalancers() {
	var names []string
	for _, b := range r.config.Entries() {
		names = append(names, b.Name)
	}
	asked := r.LoadBalancersAsked()
	unknown := slices.DeleteFunc(slices.Clone(asked), func(a string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, a) })
	})
	if len(unknown) == 0 || len(r.config.Balancers) > 0 && len(unknown) == len(asked) {
		return
	}
	r.warn(problem.Annotation, "annotation %s: %s left out, allowed are configured load balancers: %s", key.Balancers.Name,
		quoted(unknown), strings.Join(names, ", "))
}
