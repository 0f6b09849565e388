package zones

import (
	"net"
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/trafficmanager"
)

// Client is what a name server knows of a client. The zero value is an unknown client.
type Client struct {
	Address netip.Addr
	// Region is the client's Azure region.
	Region string
}

// query returns the query of a client for records of a type.
func (c Client) query(kind uint16) trafficmanager.Query {
	all := kind == dns.TypeANY
	return trafficmanager.Query{Client: c.Address, Region: c.Region, IPv4: all || kind == dns.TypeA, IPv6: all || kind == dns.TypeAAAA}
}

// clientOf returns the client of a query: the subnet that the query names, else the sender.
func clientOf(query *dns.Msg, sender net.Addr) Client {
	if opt := query.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if s, ok := o.(*dns.EDNS0_SUBNET); ok {
				if a, ok := netip.AddrFromSlice(s.Address); ok {
					return Client{Address: a.Unmap()}
				}
			}
		}
	}
	if at, err := netip.ParseAddrPort(sender.String()); err == nil {
		return Client{Address: at.Addr().Unmap()}
	}
	return Client{}
}

// Traffic answers a question for a name of Traffic Manager. It returns false for other names.
func Traffic(w behaviour.World, q dns.Question, from Client) (Answer, bool) {
	const domain = trafficmanager.Domain + "."
	if !dns.IsSubDomain(domain, q.Name) {
		return Answer{}, false
	}
	a := Answer{Authoritative: true, Code: dns.RcodeNameError}
	relative := strings.TrimSuffix(strings.TrimSuffix(dns.CanonicalName(q.Name), domain), ".")
	if id, _, ok := trafficmanager.Find(w, relative); ok && relative != "" {
		if found := trafficmanager.Resolve(w, id, from.query(q.Qtype)); found.Exists {
			a.Code = dns.RcodeSuccess
			a.Answer = recordsOf(found.Targets, dns.RR_Header{Name: q.Name, Class: dns.ClassINET, Ttl: uint32(found.TTL)}, q.Qtype)
		}
	} else if relative == "" {
		a.Code = dns.RcodeSuccess
	}
	if a.Next = chained(a.Answer, q.Qtype); len(a.Answer) == 0 {
		const negative = 30 // seconds for which resolvers keep an answer without records
		a.Ns = []dns.RR{&dns.SOA{Hdr: dns.RR_Header{Name: domain, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: negative},
			Ns: "tm1." + domain, Mbox: "hostmaster." + domain, Serial: 1, Refresh: 900, Retry: 300, Expire: 2419200, Minttl: negative}}
	}
	return a, true
}

// recordsOf returns the records of targets for a question: a CNAME record of a name, or addresses of the family that is asked for.
func recordsOf(targets []string, h dns.RR_Header, asked uint16) []dns.RR {
	var all []dns.RR
	for _, target := range targets {
		a, err := netip.ParseAddr(target)
		if err != nil {
			h.Rrtype = dns.TypeCNAME
			return []dns.RR{&dns.CNAME{Hdr: h, Target: dns.Fqdn(target)}}
		}
		for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
			if asked == kind || asked == dns.TypeANY {
				h.Rrtype = kind
				all = append(all, Addresses(h, []netip.Addr{a})...)
			}
		}
	}
	return all
}
