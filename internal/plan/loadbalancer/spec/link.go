package spec

import (
	"net/netip"
	"slices"

	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/problem"
)

// Link is the private link service that a Service asks for.
type Link struct {
	Name       string // "" for one after the frontend
	Group      string // resource group, "" for the configured one
	Subnet     string // "" for the configured one
	Count      int    // of addresses
	Static     []string
	FQDNs      []string
	Proxy      bool
	Visibility []string
	Approval   []string
	Option     string // an annotation that only the owner may have, "" for none
}

// link reads the private link service that a Service asks for, nil for none.
func (r *reader) link(w *Spec) *Link {
	if !read(r, key.LinkCreate.Read) {
		return nil
	}
	if !w.Internal && !w.Fixed {
		r.refuse(problem.Annotation,
			"annotation %s: a private link service needs an internal address, or one without floating IP, allowed is it with %s or %s",
			key.LinkCreate.Name, key.Internal.Name, key.DisableFloatingIP.Name)
	}
	if w.IsIPv6Only() {
		r.refuse(problem.Annotation,
			"annotation %s: a private link service needs an IPv4 address, allowed is a Service that has one",
			key.LinkCreate.Name)
	}
	l := &Link{
		Name: read(r, key.LinkName.Read), Group: read(r, key.LinkGroup.Read),
		Subnet: firstOf(read(r, key.LinkSubnet.Read), w.Subnet), Count: int(read(r, key.LinkAddressCount.Read)),
		FQDNs: read(r, key.LinkFQDNs.Read), Proxy: read(r, key.LinkProxyProtocol.Read),
		Visibility: read(r, key.LinkVisibility.Read), Approval: read(r, key.LinkAutoApproval.Read),
	}
	l.Option, _, _ = key.FirstLinkOption(r.Annotations)
	if slices.Contains(l.Visibility, "*") {
		l.Visibility = []string{"*"}
	}
	for _, text := range read(r, key.LinkAddresses.Read) {
		ip, err := netip.ParseAddr(text)
		if err != nil || !ip.Is4() {
			r.refuse(problem.Annotation, "annotation %s: %q is not allowed, allowed is %s", key.LinkAddresses.Name, text,
				key.LinkAddresses.Allowed)
			continue
		}
		if !slices.Contains(l.Static, ip.String()) {
			l.Static = append(l.Static, ip.String())
		}
	}
	if len(l.Static) > l.Count {
		r.refuse(problem.Annotation, "annotation %s: %d is less than the %d static addresses, allowed is %s",
			key.LinkAddressCount.Name, l.Count, len(l.Static), key.LinkAddressCount.Allowed)
	}
	return l
}
