package spec

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/problem"
)

// warnIgnored warns of what a Service says without effect: an annotation that is mistyped, without another one that it needs, or
// about a port or an IP family that the Service does not have. Such Services have always been served.
func (r *reader) warnIgnored(w *Spec) {
	withInternal, withLink := "annotation "+key.Internal.Name+`: "true"`, "annotation "+key.LinkCreate.Name+`: "true"`
	ignored := map[string]bool{}
	for _, rule := range []struct {
		applies bool
		names   []string
		because string // to follow "is ignored"
	}{
		{!w.Internal, []string{key.InternalSubnet.Name}, "without " + withInternal},
		{
			w.Internal, []string{key.PublicIPGroup.Name, key.PublicIPName.Name, key.PublicIPNameIPv6.Name, key.PublicIPPrefix.Name,
				key.PublicIPPrefixIPv6.Name, key.PublicIPTags.Name, key.IPTags.Name, key.DNSLabel.Name},
			"together with " + withInternal + ": an internal Service has no public IP",
		},
		{
			!w.Internal && read(r, key.HAPorts.Read), []string{key.HAPorts.Name},
			"without " + withInternal + "; each port has a rule of its own",
		},
		{w.Link == nil, append(key.LinkOptions(), key.LinkGroup.Name), "without " + withLink},
	} {
		for _, name := range rule.names {
			if value := r.Annotations[name]; value != "" && rule.applies {
				ignored[name] = true
				r.warn(problem.Unheeded, "annotation %s: %q is ignored %s", name, value, rule.because)
			}
		}
	}
	var ports []int32
	for _, p := range r.Spec.Ports {
		ports = append(ports, p.Port)
	}
	for _, doubt := range key.Warnings(r.Annotations, ports) {
		if doubt.Key != key.IPTags.Name && !ignored[doubt.Key] { // IP tags are judged with the public IP
			r.warnDoubt(doubt)
		}
	}
	if probed := r.Spec.HealthCheckNodePort; probed > 0 {
		ports = append(ports, probed)
	}
	for _, s := range key.Unknowns(r.Annotations, ports) {
		why := "no such annotation exists, and none is similar"
		switch {
		case s.Port != "":
			why = fmt.Sprintf("%s is no port of the Service, allowed is one of %v", s.Port, ports)
		case s.Nearest != "":
			why = "no such annotation exists, but " + s.Nearest
		}
		r.warn(problem.Unknown, "annotation %s: %q is ignored: %s", s.Name, s.Value, why)
	}
	r.warnAbsentFamilies()
	r.warnUnknownLoadBalancers()
}

func (r *reader) warnDoubt(doubt *key.Error) {
	r.warn(problem.Annotation, "annotation %v; the Service is not refused for it", doubt)
}

// WarnIPTags warns of a slip in IP tags for which no public IP is lost.
func WarnIPTags(s Service, found *problem.List) {
	r := reader{Service: s}
	if err := key.IPTags.Warning(r.readPairs(key.IPTags)); err != nil {
		r.warnDoubt(&key.Error{Key: key.IPTags.Name, Value: s.Annotations[key.IPTags.Name], Allowed: key.IPTags.Allowed, Cause: err})
	}
	*found = append(*found, r.found...)
}

// warnAbsentFamilies reads what annotations say of addresses of a family that the Service does not have.
func (r *reader) warnAbsentFamilies() {
	for _, family := range address.Families() {
		if slices.Contains(r.Families(), family) {
			continue
		}
		other := reader{Service: r.Service}
		other.pin(family, "")
		for _, p := range other.found {
			r.warn(p.Reason, "%s; the Service has no %s address, so this is ignored", p.Message, family)
		}
	}
}

// warnUnknownLoadBalancers finds names of load balancers that are not configured. Where several
// are configured and the Service names none of them, placement refuses it.
func (r *reader) warnUnknownLoadBalancers() {
	var names, unknown []string
	for _, b := range r.config.Entries() {
		names = append(names, b.Name)
	}
	asked := r.LoadBalancersAsked()
	for _, a := range asked {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, a) }) {
			unknown = append(unknown, a)
		}
	}
	if len(unknown) > 0 && (len(r.config.Balancers) == 0 || len(unknown) < len(asked)) {
		r.warn(problem.Annotation, "annotation %s: %s left out, allowed are configured load balancers: %s", key.Balancers.Name,
			quoted(unknown), strings.Join(names, ", "))
	}
}
