package dns

import (
	"fmt"
	"strings"

	"github.com/miekg/dns"

	"kaz/internal/localazure/behaviour"
)

// signing is the type of a zone's DNSSEC configuration, which has one of them, "default". It has the keys with the records for the parent
// zone. The name server of the local Azure does not sign its answers. Source: the REST API of Azure DNS 2023-07-01-preview.
func signing() behaviour.Type {
	style := publicZones().Style
	style.EtagHeader = behaviour.OnGetAndPut
	const headers = behaviour.AsyncOperation | behaviour.Location
	style.Long = map[behaviour.Verb]behaviour.Headers{behaviour.Create: headers, behaviour.Update: headers, behaviour.Delete: headers}
	style.Creating = "Creating"
	return behaviour.Type{
		Name: publicZone.fullType + "/dnssecConfigs", Style: style, Latency: publicZone.fullType,
		Own: []string{"properties.signingKeys"},
		Fill: func(c *behaviour.Call) error {
			if name := c.ID.Name(); name != "default" {
				return behaviour.Invalid("BadRequest", "The DNSSEC configuration '%s' is invalid: its name must be 'default'.", name)
			}
			behaviour.Default(c.Doc, "properties.signingKeys", []any{})
			return nil
		},
		Settle: makeKeys,
	}
}

// makeKeys makes the key that signs the zone, and the key that signs keys, of which the parent zone has a digest.
func makeKeys(c *behaviour.Call) error {
	if len(behaviour.Objects(c.Doc, "properties.signingKeys")) > 0 {
		return nil
	}
	zone := dns.Fqdn(strings.ToLower(c.ID.Parent().Name()))
	var keys []any
	for _, flags := range []uint16{dns.ZONE, dns.ZONE | dns.SEP} {
		key := &dns.DNSKEY{
			Hdr:   dns.RR_Header{Name: zone, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 3600},
			Flags: flags, Protocol: 3, Algorithm: dns.ECDSAP256SHA256,
		}
		const bits = 256
		if _, err := key.Generate(bits); err != nil {
			return fmt.Errorf("make a key of the zone %s: %w", zone, err)
		}
		digests := []any{}
		if flags&dns.SEP != 0 {
			ds := key.ToDS(dns.SHA256)
			value := strings.ToUpper(ds.Digest)
			digests = append(digests, behaviour.Object{"digestAlgorithmType": int(ds.DigestType), "digestValue": value,
				"record": fmt.Sprintf("%d %d %d %s", ds.KeyTag, ds.Algorithm, ds.DigestType, value)})
		}
		keys = append(keys, behaviour.Object{"delegationSignerInfo": digests, "flags": int(flags), "keyTag": int(key.KeyTag()),
			"protocol": int(key.Protocol), "publicKey": key.PublicKey, "securityAlgorithmType": int(key.Algorithm)})
	}
	behaviour.Set(c.Doc, "properties.signingKeys", keys)
	return nil
}
