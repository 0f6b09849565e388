package names

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/miekg/dns"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/zones"
)

// lifetime is the TTL in seconds of records outside of zones. It is short because addresses change.
const lifetime = 5

// Answer returns the reply to a message over TCP, nil for a message without a reply.
func (s *Server) Answer(message []byte) []byte { return s.reply(message, false) }

// reply returns the reply to a message, nil for a message without a reply.
func (s *Server) reply(message []byte, datagram bool) []byte {
	query := new(dns.Msg)
	if err := query.Unpack(message); err != nil || query.Response {
		return nil
	}
	reply := zones.Reply(query, datagram, func(q dns.Question, reply *dns.Msg) {
		if q.Qclass != dns.ClassINET {
			reply.Rcode = dns.RcodeRefused
			return
		}
		s.resolve(q, reply)
	})
	reply.RecursionAvailable = true
	answer, err := reply.Pack()
	if err != nil {
		s.log().Warn("answer of the name server", "error", err)
		return nil
	}
	return answer
}

// longestChain is how many zones the CNAME records of an answer lead through.
const longestChain = 8

// resolve fills in the records of a name, and of the names to which CNAME records lead.
func (s *Server) resolve(q dns.Question, reply *dns.Msg) {
	for range longestChain {
		a := s.step(q)
		reply.Answer, reply.Ns, reply.Rcode = append(reply.Answer, a.Answer...), a.Ns, a.Code
		if !a.Authoritative { // a delegation to name servers that the local Azure does not have
			reply.Ns, reply.Rcode = nil, dns.RcodeServerFailure
		}
		if a.Next == "" {
			return
		}
		q.Name = a.Next
	}
	reply.Rcode = dns.RcodeServerFailure
}

// step answers a question by the first of: a private zone, a name outside of zones, a public zone, Traffic Manager.
func (s *Server) step(q dns.Question) zones.Answer {
	if a, ok := s.private(q); ok {
		return a
	}
	if a, ok := s.outside(q); ok {
		return a
	}
	a := zones.Answer{Authoritative: true, Code: dns.RcodeNameError}
	s.World(func(w behaviour.World) {
		if z, ok := zones.Public(w, q.Name); ok {
			a = z.Answer(w, q)
		} else if zones.IsNameServer(w, q.Name) {
			a = addresses(q, []netip.Addr{s.At})
		} else if found, ok := zones.Traffic(w, q, s.client(w)); ok {
			a = found
		}
	})
	return a
}

// client returns what Traffic Manager knows of the machines of the network.
func (s *Server) client(w behaviour.World) zones.Client {
	network, _ := w.Get(s.Network)
	return zones.Client{Region: behaviour.Text(network, "location")}
}

// private answers a question by the private zone with the name, if one is linked to the network.
func (s *Server) private(q dns.Question) (a zones.Answer, found bool) {
	s.World(func(w behaviour.World) {
		machines := sync.OnceValue(func() map[string][]netip.Addr { return s.registered(w) })
		z, ok := zones.Private(w, s.Network, q.Name, func(host string) []netip.Addr { return machines()[host] })
		if ok {
			a = z.Answer(w, q)
			found = !a.Elsewhere
		}
	})
	return a, found
}

// outside answers a question by a name outside of zones.
func (s *Server) outside(q dns.Question) (zones.Answer, bool) {
	if address, ok := reversed(q.Name); ok {
		host := s.reverse(address)
		if host == "" {
			return zones.Answer{}, false
		}
		a := zones.Answer{Authoritative: true}
		if q.Qtype == dns.TypePTR || q.Qtype == dns.TypeANY {
			h := dns.RR_Header{Name: q.Name, Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: lifetime}
			a.Answer = []dns.RR{&dns.PTR{Hdr: h, Ptr: dns.Fqdn(host)}}
		}
		return a, true
	}
	all, found := s.lookup(q.Name)
	return addresses(q, all), found
}

// addresses returns the answer of a name with addresses.
func addresses(q dns.Question, all []netip.Addr) zones.Answer {
	a := zones.Answer{Authoritative: true}
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		if q.Qtype == kind || q.Qtype == dns.TypeANY {
			h := dns.RR_Header{Name: q.Name, Rrtype: kind, Class: dns.ClassINET, Ttl: lifetime}
			a.Answer = append(a.Answer, zones.Addresses(h, all)...)
		}
	}
	return a
}

// reversed returns the address of a name such as 4.0.240.10.in-addr.arpa.
func reversed(name string) (netip.Addr, bool) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if text, ok := strings.CutSuffix(name, ".in-addr.arpa"); ok {
		parts := strings.Split(text, ".")
		if len(parts) != net.IPv4len {
			return netip.Addr{}, false
		}
		a, err := netip.ParseAddr(parts[3] + "." + parts[2] + "." + parts[1] + "." + parts[0])
		return a, err == nil
	}
	text, ok := strings.CutSuffix(name, ".ip6.arpa")
	digits := strings.Split(text, ".")
	if !ok || len(digits) != 2*net.IPv6len {
		return netip.Addr{}, false
	}
	var a [net.IPv6len]byte
	for i, digit := range digits {
		n, err := strconv.ParseUint(digit, 16, 4)
		if err != nil {
			return netip.Addr{}, false
		}
		a[net.IPv6len-1-i/2] |= byte(n) << (4 * (i % 2))
	}
	return netip.AddrFrom16(a), true
}
