package spec

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
)

// Access is which sources may reach a Service.
type Access struct {
	Open bool                       // there are rules for the Service at all
	From map[v1.IPFamily][][]string // each list is the sources of one rule
	Deny bool                       // everything else, the virtual network too
}

// Opening lets sources in at ports. Its slices are sorted.
type Opening struct {
	Family   v1.IPFamily
	Protocol string
	Sources  []string
	Ports    []string
}

// Name is the name of the opening's security rule.
func (o Opening) Name() string { return naming.AllowRule(o.Family, o.Protocol, o.Sources, o.Ports) }

// internet is Azure's name for the sources outside of the virtual network.
const internet = "Internet"

// access reads who may reach the Service.
func (r *reader) access() (Access, sources) {
	if read(r, key.DisableSecurityRules) {
		return Access{}, sources{}
	}
	asked := r.sources()
	a := Access{Open: true, From: map[v1.IPFamily][][]string{}, Deny: asked.cause != ""}
	for _, family := range address.Families() {
		if some := address.Aggregate(asked.ranges, family); len(some) > 0 {
			a.From[family] = append(a.From[family], some)
		}
		for _, tag := range asked.tags {
			// Azure also takes addresses and ranges for a service tag, and has no rule with both families.
			text, _, _ := strings.Cut(tag, "/")
			if ip, err := netip.ParseAddr(text); err != nil || address.Family(ip) == family {
				a.From[family] = append(a.From[family], []string{tag})
			}
		}
	}
	return a, asked
}

// Openings are the allowed sources and ports of a family: the Service's own ports, or its node ports.
func (s *Spec) Openings(family v1.IPFamily, nodePort bool) []Opening {
	var all []Opening
	for _, o := range s.PortsByProtocol(nodePort) {
		for _, from := range s.Access.From[family] {
			o.Family, o.Sources = family, from
			all = append(all, o)
		}
	}
	return all
}

// Implied are openings to the Internet where the ranges allow all sources of a family. Other controllers
// wrote these, too; they do no harm.
func (s *Spec) Implied(family v1.IPFamily, nodePort bool) (implied []Opening) {
	for _, o := range s.Openings(family, nodePort) {
		if slices.Contains(o.Sources, "0.0.0.0/0") || slices.Contains(o.Sources, "::/0") {
			o.Sources = []string{internet}
			implied = append(implied, o)
		}
	}
	return implied
}

// PortsByProtocol is the Service's own ports, or its node ports, as the packets carry them.
func (s *Spec) PortsByProtocol(nodePort bool) []Opening {
	var out []Opening
	for _, protocol := range []string{"Tcp", "Udp", "*"} {
		var ports []string
		for _, p := range s.Service.Spec.Ports {
			port := p.Port
			if nodePort {
				port = p.NodePort
			}
			if Protocol(p) == protocol && port > 0 {
				ports = append(ports, strconv.Itoa(int(port)))
			}
		}
		if slices.Sort(ports); len(ports) > 0 {
			out = append(out, Opening{Protocol: protocol, Ports: slices.Compact(ports)})
		}
	}
	return out
}

type sources struct {
	ranges []netip.Prefix
	tags   []string // of services
	where  []string // they are named
	reason string   // of a warning about them
	cause  string   // of a denial of all others, "" for none
}

// sources reads the sources that may connect. Ranges that are none are left out with a warning, and all other sources are
// denied, so that a typing error never opens a Service to the Internet.
func (r *reader) sources() sources {
	const inSpec = "spec.loadBalancerSourceRanges"
	asked := sources{reason: problem.AllowedIPRanges}
	allowed := "" // by the spec
	for _, from := range []struct {
		where, reason string
		texts         []string
	}{
		{inSpec, problem.SourceRanges, r.Service.Spec.LoadBalancerSourceRanges},
		{"annotation " + key.AllowedIPRanges.Name, problem.AllowedIPRanges, read(r, key.AllowedIPRanges)},
		{"annotation " + key.SourceRanges.Name, problem.AllowedIPRanges, read(r, key.SourceRanges)},
	} {
		some, wrong := address.ParseRanges(from.texts)
		if len(wrong) > 0 {
			asked.cause = "a range that is left out"
			r.warn(from.reason, "%s: %s left out, allowed are ranges without host bits like 10.0.0.0/8; no other source is allowed",
				from.where, quoted(wrong))
		}
		switch {
		case len(some) == 0:
			continue
		case from.where == inSpec:
			allowed = quoted(from.texts)
		case allowed != "":
			r.refuse(problem.Spec, "%s: %s and %s: %s are both set, allowed is one of them",
				inSpec, allowed, from.where, quoted(from.texts))
		}
		asked.ranges, asked.reason = append(asked.ranges, some...), from.reason
		asked.where = append(asked.where, from.where+": "+fewOf(from.texts))
	}
	if asked.cause == "" && len(asked.ranges) > 0 && read(r, key.DenyAllElse) {
		asked.cause = "annotation " + key.DenyAllElse.Name
	}
	asked.tags = slices.Compact(slices.Sorted(slices.Values(read(r, key.AllowedServiceTags))))
	switch {
	case len(asked.tags) > 0:
		asked.where = append(asked.where, "annotation "+key.AllowedServiceTags.Name+": "+fewOf(asked.tags))
	case asked.where == nil && asked.cause == "" && !r.Internal:
		asked.tags = []string{internet}
	}
	return asked
}

// warnAccess warns of sources that are allowed unexpectedly, and of families without any source: no rule shows that. It also
// warns of denials that are more, or less, than a Service's own address, because packets arrive at the nodes' own addresses.
func (r *reader) warnAccess(asked sources) {
	if len(asked.tags) > 0 && len(r.Service.Spec.LoadBalancerSourceRanges) > 0 {
		r.warn(problem.TwoSources, "spec.loadBalancerSourceRanges and annotation %s are both set: the sources of both are allowed",
			key.AllowedServiceTags.Name)
	}
	var denied []string // where everything else is
	for _, family := range r.Families() {
		reach := "nothing from the Internet"
		if r.Internal {
			reach = "nothing from outside of the virtual network"
		}
		if r.Fixed || r.Floats(family) {
			denied = append(denied, "its "+string(family)+" address")
			if r.Access.Deny {
				reach = "nothing"
			}
		}
		if asked.where != nil && len(r.Access.From[family]) == 0 {
			r.warn(asked.reason,
				"%s: none is of the family %s: %s can reach the Service's %s address, allowed are ranges of each of its families",
				strings.Join(asked.where, " and "), family, reach, family)
		}
	}
	switch {
	case !r.Access.Deny:
		return
	case r.Fixed:
		r.warn(problem.NodesDenied,
			"annotation %s: packets arrive at the nodes' own addresses, and because of %s everything else to the nodes' own "+
				"addresses is denied as well, on all ports: also from other nodes, and Azure's health probes; "+
				"allowed is floating IP, which denies at the Service's address alone", key.DisableFloatingIP.Name, asked.cause)
		return
	case len(denied) == len(r.Families()):
		return
	}
	if len(r.Further) > 0 {
		denied = append(denied, "the addresses of annotation "+key.AdditionalIPs.Name)
	}
	what := "So nothing is denied at all"
	if denied != nil {
		what = "Everything else is denied at " + strings.Join(denied, " and ")
	}
	r.warn(problem.NotDenied,
		"%s: nothing from the virtual network is denied at the IPv6 address: Azure delivers its packets to the nodes' own "+
			"addresses, and the nodes could not reach each other there. %s", asked.cause, what)
}

func fewOf(texts []string) string {
	const few = 5
	if len(texts) > few {
		return quoted(texts[:few]) + ", ..."
	}
	return quoted(texts)
}

func quoted(texts []string) string {
	words := make([]string, len(texts))
	for i, t := range texts {
		words[i] = strconv.Quote(t)
	}
	return strings.Join(words, ", ")
}
