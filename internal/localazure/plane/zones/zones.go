// Package zones answers DNS questions from the record sets of public and private DNS zones. Layer L2.
//
// It answers as an authoritative name server: wildcards, aliases, delegations, and the SOA record with an answer that has no records.
// A write is answered at once: the local Azure has no delay between its API and its name servers.
package zones

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

const (
	publicType  = "Microsoft.Network/dnszones"
	privateType = "Microsoft.Network/privateDnsZones"
	linkType    = privateType + "/virtualNetworkLinks"
)

// Zone is a zone that answers questions.
type Zone struct {
	id     azure.ID
	public bool
	// redirect is true for a private zone that leaves a name that it does not have to public DNS.
	redirect bool
	// machines returns the addresses of a machine that the zone registers, nil for a zone without registration.
	machines func(host string) []netip.Addr
}

// Name returns the name of the zone in lower case with a final dot.
func (z Zone) Name() string { return dns.CanonicalName(z.id.Name()) }

// Public returns the public zone that answers a name: that with the longest name. Of zones with one name, the oldest answers.
func Public(w behaviour.World, name string) (Zone, bool) {
	var best Zone
	for id := range behaviour.Everywhere(w, publicType) {
		z := Zone{id: id, public: true}
		if dns.IsSubDomain(z.Name(), name) && (best.id == "" || len(z.Name()) > len(best.Name())) {
			best = z
		}
	}
	return best, best.id != ""
}

// Private returns the private zone that answers a name in a virtual network. The function returns the addresses of a machine of the
// network, for links with registration.
func Private(w behaviour.World, network azure.ID, name string, machines func(host string) []netip.Addr) (Zone, bool) {
	var best Zone
	for id := range behaviour.Everywhere(w, privateType) {
		z := Zone{id: id}
		if !dns.IsSubDomain(z.Name(), name) || best.id != "" && len(z.Name()) <= len(best.Name()) {
			continue
		}
		for _, link := range w.List(id, linkType) {
			if !behaviour.RefID(link, "properties.virtualNetwork").Equal(network) {
				continue
			}
			z.redirect = strings.EqualFold(behaviour.Text(link, "properties.resolutionPolicy"), "NxDomainRedirect")
			if behaviour.Bool(link, "properties.registrationEnabled") {
				z.machines = machines
			}
			best = z
		}
	}
	return best, best.id != ""
}

// IsNameServer reports whether a name is that of a name server of a public zone.
func IsNameServer(w behaviour.World, name string) bool {
	for _, doc := range behaviour.Everywhere(w, publicType) {
		is := func(server string) bool { return dns.CanonicalName(server) == dns.CanonicalName(name) }
		if slices.ContainsFunc(behaviour.Texts(doc, "properties.nameServers"), is) {
			return true
		}
	}
	return false
}

// Answer is the answer of a zone.
type Answer struct {
	Code              int
	Authoritative     bool
	Answer, Ns, Extra []dns.RR
	// Next is the name outside the zone to which the last CNAME record leads, "" for none.
	Next string
	// Elsewhere is true if public DNS answers the name instead.
	Elsewhere bool
}

// longestChain is how many CNAME records a zone follows for a question.
const longestChain = 16

// Answer answers a question for a name in the zone.
func (z Zone) Answer(w behaviour.World, q dns.Question) Answer {
	r := Answer{Authoritative: true}
	name := q.Name
	for range longestChain {
		host := z.host(name)
		if cut := z.delegation(w, host); cut != "" {
			z.refer(w, cut, &r)
			return r
		}
		owner, exists := z.owner(w, host)
		if !exists {
			r.Elsewhere = z.redirect && len(r.Answer) == 0
			r.Code = dns.RcodeNameError
			break
		}
		found := z.records(w, owner, name, q.Qtype)
		if len(found) == 0 && q.Qtype != dns.TypeCNAME {
			found = z.records(w, owner, name, dns.TypeCNAME)
		}
		r.Answer = append(r.Answer, found...)
		target := chained(found, q.Qtype)
		if target == "" {
			break
		}
		if !dns.IsSubDomain(z.Name(), target) {
			r.Next = target
			return r
		}
		if slices.ContainsFunc(r.Answer, func(rr dns.RR) bool { return strings.EqualFold(rr.Header().Name, target) }) { // a loop
			return r
		}
		name = target
	}
	if len(r.Answer) == 0 || r.Code == dns.RcodeNameError {
		r.Ns = z.negative(w)
	}
	return r
}

// chained returns the target of the CNAME record that answers another question, "" for other answers.
func chained(found []dns.RR, asked uint16) string {
	if len(found) != 1 || asked == dns.TypeCNAME || asked == dns.TypeANY {
		return ""
	}
	if c, ok := found[0].(*dns.CNAME); ok {
		return c.Target
	}
	return ""
}

// host returns a name relative to the zone, "@" for the zone's name.
func (z Zone) host(name string) string {
	name = dns.CanonicalName(name)
	if name == z.Name() {
		return "@"
	}
	return strings.TrimSuffix(name, "."+z.Name())
}

// delegation returns the host at or above a host that other name servers answer, "" for none.
func (z Zone) delegation(w behaviour.World, host string) string {
	if !z.public || host == "@" {
		return ""
	}
	labels := strings.Split(host, ".")
	for i := range slices.Backward(labels) {
		cut := strings.Join(labels[i:], ".")
		if doc, ok := w.Get(z.id.Child("NS", cut)); ok && len(behaviour.Objects(doc, "properties.NSRecords")) > 0 {
			return cut
		}
	}
	return ""
}

// refer makes a reply lead to the name servers of a delegation, with their addresses if the zone has them.
func (z Zone) refer(w behaviour.World, cut string, r *Answer) {
	r.Authoritative = len(r.Answer) > 0
	r.Ns = z.records(w, cut, cut+"."+z.Name(), dns.TypeNS)
	for _, rr := range r.Ns {
		ns, ok := rr.(*dns.NS)
		if !ok || !dns.IsSubDomain(z.Name(), ns.Ns) {
			continue
		}
		for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
			r.Extra = append(r.Extra, z.records(w, z.host(ns.Ns), ns.Ns, kind)...)
		}
	}
}

// owner returns the host that has the records of a host: the host, or a wildcard that covers it. A host exists without records if
// there are records below it.
func (z Zone) owner(w behaviour.World, host string) (owner string, exists bool) {
	if z.has(w, host) || host == "@" {
		return host, true
	}
	hosts := z.hosts(w)
	for name := host; ; {
		for _, h := range hosts {
			if h == name || strings.HasSuffix(h, "."+name) {
				return z.covered(w, host, name)
			}
		}
		_, above, found := strings.Cut(name, ".")
		if !found {
			return z.covered(w, host, "@")
		}
		name = above
	}
}

// covered returns the owner of a host with the closest existing ancestor encloser, which may be the host.
func (z Zone) covered(w behaviour.World, host, encloser string) (owner string, exists bool) {
	switch encloser {
	case host:
		return host, true
	case "@":
		return "*", z.has(w, "*")
	}
	return "*." + encloser, z.has(w, "*."+encloser)
}

// has reports whether a host has a record set.
func (z Zone) has(w behaviour.World, host string) bool {
	if z.machines != nil && len(z.machines(host)) > 0 {
		return true
	}
	return slices.ContainsFunc(kinds, func(k kind) bool {
		_, ok := w.Get(z.id.Child(k.name, host))
		return ok
	})
}

// hosts returns the hosts with record sets in lower case, some of them more than once.
func (z Zone) hosts(w behaviour.World) []string {
	full := privateType
	if z.public {
		full = publicType
	}
	var all []string
	for _, k := range kinds {
		for id := range w.List(z.id, full+"/"+k.name) {
			all = append(all, strings.ToLower(id.Name()))
		}
	}
	return all
}

// negative returns the SOA record of an answer without records. Its TTL is how long resolvers keep such an answer.
func (z Zone) negative(w behaviour.World) []dns.RR {
	all := z.records(w, "@", z.Name(), dns.TypeSOA)
	for _, rr := range all {
		if soa, ok := rr.(*dns.SOA); ok {
			soa.Hdr.Ttl = min(soa.Hdr.Ttl, soa.Minttl)
		}
	}
	return all
}
