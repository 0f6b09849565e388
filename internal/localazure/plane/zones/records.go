package zones

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/trafficmanager"
)

// kind is a type of record sets.
type kind struct {
	name            string
	number          uint16
	public, private string // the property with the records; "" if the kind of zones has none
	// record returns the DNS record of an element of the property, nil if it is invalid.
	record func(h dns.RR_Header, o behaviour.Object) dns.RR
}

var kinds = []kind{
	{"A", dns.TypeA, "ARecords", "aRecords", func(h dns.RR_Header, o behaviour.Object) dns.RR {
		return addressRecord(h, behaviour.Text(o, "ipv4Address"))
	}},
	{"AAAA", dns.TypeAAAA, "AAAARecords", "aaaaRecords", func(h dns.RR_Header, o behaviour.Object) dns.RR {
		return addressRecord(h, behaviour.Text(o, "ipv6Address"))
	}},
	{"CNAME", dns.TypeCNAME, "CNAMERecord", "cnameRecord", func(h dns.RR_Header, o behaviour.Object) dns.RR {
		return &dns.CNAME{Hdr: h, Target: full(o, "cname")}
	}},
	{"MX", dns.TypeMX, "MXRecords", "mxRecords", func(h dns.RR_Header, o behaviour.Object) dns.RR {
		return &dns.MX{Hdr: h, Preference: uint16(number(o, "preference")), Mx: full(o, "exchange")}
	}},
	{"PTR", dns.TypePTR, "PTRRecords", "ptrRecords", func(h dns.RR_Header, o behaviour.Object) dns.RR {
		return &dns.PTR{Hdr: h, Ptr: full(o, "ptrdname")}
	}},
	{"SOA", dns.TypeSOA, "SOARecord", "soaRecord", soaRecord},
	{"SRV", dns.TypeSRV, "SRVRecords", "srvRecords", func(h dns.RR_Header, o behaviour.Object) dns.RR {
		return &dns.SRV{Hdr: h, Priority: uint16(number(o, "priority")), Weight: uint16(number(o, "weight")),
			Port: uint16(number(o, "port")), Target: full(o, "target")}
	}},
	{"TXT", dns.TypeTXT, "TXTRecords", "txtRecords", textRecord},
	{"NS", dns.TypeNS, "NSRecords", "", func(h dns.RR_Header, o behaviour.Object) dns.RR {
		return &dns.NS{Hdr: h, Ns: full(o, "nsdname")}
	}},
	{"CAA", dns.TypeCAA, "caaRecords", "", func(h dns.RR_Header, o behaviour.Object) dns.RR {
		return &dns.CAA{Hdr: h, Flag: uint8(number(o, "flags")), Tag: behaviour.Text(o, "tag"), Value: behaviour.Text(o, "value")}
	}},
	{"DS", dns.TypeDS, "DSRecords", "", func(h dns.RR_Header, o behaviour.Object) dns.RR {
		return &dns.DS{Hdr: h, KeyTag: uint16(number(o, "keyTag")), Algorithm: uint8(number(o, "algorithm")),
			DigestType: uint8(number(o, "digest.algorithmType")), Digest: behaviour.Text(o, "digest.value")}
	}},
	{"NAPTR", dns.TypeNAPTR, "NAPTRRecords", "", func(h dns.RR_Header, o behaviour.Object) dns.RR {
		return &dns.NAPTR{Hdr: h, Order: uint16(number(o, "order")), Preference: uint16(number(o, "preference")),
			Flags: behaviour.Text(o, "flags"), Service: behaviour.Text(o, "services"),
			Regexp: strings.ReplaceAll(behaviour.Text(o, "regexp"), `\`, `\\`), Replacement: full(o, "replacement")}
	}},
	{"TLSA", dns.TypeTLSA, "TLSARecords", "", func(h dns.RR_Header, o behaviour.Object) dns.RR {
		return &dns.TLSA{Hdr: h, Usage: uint8(number(o, "usage")), Selector: uint8(number(o, "selector")),
			MatchingType: uint8(number(o, "matchingType")), Certificate: behaviour.Text(o, "certAssociationData")}
	}},
}

// full returns a name with a final dot.
func full(o behaviour.Object, field string) string { return dns.Fqdn(behaviour.Text(o, field)) }

func number(o behaviour.Object, field string) int {
	n, _ := behaviour.Int(o, field)
	return n
}

// addressRecord returns the A or AAAA record of an address, nil for an address of the other family.
func addressRecord(h dns.RR_Header, text string) dns.RR {
	a, err := netip.ParseAddr(text)
	switch {
	case err == nil && a.Is4() && h.Rrtype == dns.TypeA:
		return &dns.A{Hdr: h, A: net.IP(a.AsSlice())}
	case err == nil && a.Is6() && h.Rrtype == dns.TypeAAAA:
		return &dns.AAAA{Hdr: h, AAAA: net.IP(a.AsSlice())}
	}
	return nil
}

func soaRecord(h dns.RR_Header, o behaviour.Object) dns.RR {
	least := number(o, "minimumTTL")
	if behaviour.At(o, "minimumTtl") != nil {
		least = number(o, "minimumTtl")
	}
	return &dns.SOA{Hdr: h, Ns: full(o, "host"), Mbox: full(o, "email"), Serial: uint32(number(o, "serialNumber")),
		Refresh: uint32(number(o, "refreshTime")), Retry: uint32(number(o, "retryTime")), Expire: uint32(number(o, "expireTime")),
		Minttl: uint32(least)}
}

// textRecord returns a TXT record. A string of DNS has at most 255 bytes; a string of Azure that has more, because of letters of
// several bytes, becomes more strings.
func textRecord(h dns.RR_Header, o behaviour.Object) dns.RR {
	const longest = 255
	txt := &dns.TXT{Hdr: h}
	for _, text := range behaviour.Texts(o, "value") {
		for part := range slices.Chunk([]byte(text), longest) {
			txt.Txt = append(txt.Txt, strings.ReplaceAll(string(part), `\`, `\\`))
		}
		if text == "" {
			txt.Txt = append(txt.Txt, "")
		}
	}
	return txt
}

// registeredTTL is the TTL of the records of machines in seconds.
const registeredTTL = 10

// records returns the records of a host with the owner name, of one type or of all for ANY.
func (z Zone) records(w behaviour.World, host, name string, asked uint16) []dns.RR {
	var all []dns.RR
	for _, k := range kinds {
		if asked != k.number && asked != dns.TypeANY {
			continue
		}
		h := dns.RR_Header{Name: name, Rrtype: k.number, Class: dns.ClassINET}
		set := z.set(w, k, z.id.Child(k.name, host), h)
		if len(set) == 0 && z.machines != nil {
			h.Ttl = registeredTTL
			set = Addresses(h, z.machines(host))
		}
		all = append(all, set...)
	}
	return all
}

// Addresses returns the A or AAAA records of addresses, as the header says.
func Addresses(h dns.RR_Header, addresses []netip.Addr) []dns.RR {
	var all []dns.RR
	for _, a := range addresses {
		if rr := addressRecord(h, a.String()); rr != nil {
			all = append(all, rr)
		}
	}
	return all
}

// set returns the records of a record set. An alias has the records of its target, with its own TTL.
func (z Zone) set(w behaviour.World, k kind, id azure.ID, h dns.RR_Header) []dns.RR {
	doc, ok := w.Get(id)
	if !ok {
		return nil
	}
	property, ttl := k.private, "properties.ttl"
	if z.public {
		property, ttl = k.public, "properties.TTL"
	}
	h.Ttl = uint32(number(doc, ttl))
	if target := behaviour.RefID(doc, "properties.targetResource"); target != "" {
		return z.alias(w, k, target, h)
	}
	return listed(k, doc, property, h)
}

// listed returns the records that a document lists.
func listed(k kind, doc behaviour.Object, property string, h dns.RR_Header) []dns.RR {
	elements := behaviour.Objects(doc, "properties."+property)
	if one, ok := behaviour.At(doc, "properties."+property).(behaviour.Object); ok {
		elements = []behaviour.Object{one}
	}
	var all []dns.RR
	for _, o := range elements {
		if rr := k.record(h, o); rr != nil {
			all = append(all, rr)
		}
	}
	return all
}

// alias returns the records of the target of an alias: a public address, a profile of Traffic Manager, or a record set of the same zone
// and type. The alias of a deleted resource is empty. A CNAME record of a profile has the profile's name.
func (z Zone) alias(w behaviour.World, k kind, target azure.ID, h dns.RR_Header) []dns.RR {
	doc, ok := w.Get(target)
	switch {
	case !ok:
		return nil
	case strings.EqualFold(target.Type(), "Microsoft.Network/publicIPAddresses"):
		if rr := addressRecord(h, behaviour.Text(doc, "properties.ipAddress")); rr != nil {
			return []dns.RR{rr}
		}
	case strings.EqualFold(target.Type(), trafficmanager.Type):
		targets := trafficmanager.Resolve(w, target, Client{}.query(k.number)).Targets
		if k.number == dns.TypeCNAME {
			targets = []string{behaviour.Text(doc, "properties.dnsConfig.fqdn")}
		}
		return slices.DeleteFunc(recordsOf(targets, h, k.number), func(rr dns.RR) bool { return rr.Header().Rrtype != k.number })
	case target.Parent().Equal(z.id) && strings.EqualFold(target.Type(), publicType+"/"+k.name):
		return listed(k, doc, k.public, h)
	}
	return nil
}
