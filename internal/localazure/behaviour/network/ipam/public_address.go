package ipam

import (
	"fmt"
	"net/netip"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

// Public addresses come from the ranges that are reserved for benchmarks and documentation. Single addresses are from
// the first half, prefixes from the second.
var (
	singleIPv4 = netip.MustParsePrefix("198.18.0.0/16")
	prefixIPv4 = netip.MustParsePrefix("198.19.0.0/16")
	singleIPv6 = netip.MustParsePrefix("2001:db8::/48")
	prefixIPv6 = netip.MustParsePrefix("2001:db8:1::/48")
)

// Lease returns the id that stands for a public address. A resource with the address refers to the id anywhere in its
// document, and hides it in Show. The index of references is therefore also the index of addresses. All subscriptions share
// the addresses, so the lease is always of the main subscription.
func Lease(subscription, address string) azure.ID {
	return azure.SubscriptionID(subscription).Resource(schema.Namespace+"publicAddresses", address)
}

// DomainLease returns the id that stands for a name below cloudapp.azure.com and an address family. One address of each
// family can have the name. Saved states have leases of IPv4 without the family.
func DomainLease(subscription, fqdn, family string) azure.ID {
	name := strings.ToLower(fqdn)
	if family == IPv6 {
		name += "-ipv6"
	}
	return azure.SubscriptionID(subscription).Resource(schema.Namespace+"domainNames", name)
}

// AllocatePublic returns a public address of the family without a [Lease].
func AllocatePublic(w behaviour.World, family string) (string, error) {
	from := singleIPv4
	if strings.EqualFold(family, IPv6) {
		from = singleIPv6
	}
	// Random tries find a free address of 65,536 unless nearly all are taken. Then the search goes through all.
	const places, tries = 1 << 16, 64
	start := 0
	for range tries {
		start = w.Intn(places-8) + 4
		if a := plus(from.Addr(), uint64(start)).String(); len(w.Referrers(Lease(w.Subscription(), a))) == 0 {
			return a, nil
		}
	}
	for i := range places {
		a := plus(from.Addr(), uint64((start+i)%places)).String()
		if len(w.Referrers(Lease(w.Subscription(), a))) == 0 {
			return a, nil
		}
	}
	return "", behaviour.Invalid("PublicIPAddressesExhausted", "There is no free public address of family %s.", family)
}

// AllocateFromPrefix returns a free address of a public IP prefix.
func AllocateFromPrefix(w behaviour.World, prefix azure.ID) (string, error) {
	doc, ok := w.Get(prefix)
	if !ok {
		return "", behaviour.Invalid("InvalidResourceReference", "Resource %s was not found.", prefix)
	}
	r, err := netip.ParsePrefix(behaviour.Text(doc, "properties.ipPrefix"))
	if err != nil {
		return "", behaviour.Refusal(429, "RetryableError", "A retryable error occurred.").
			With("ReferencedResourceNotProvisioned", "Cannot proceed with operation because resource %s is not in Succeeded state.", prefix)
	}
	for a := r.Addr(); r.Contains(a); a = a.Next() {
		if len(w.Referrers(Lease(w.Subscription(), a.String()))) == 0 {
			return a.String(), nil
		}
	}
	return "", behaviour.Invalid("PublicIpPrefixOutOfIpAddressesForTheGivenZones",
		"Public IP prefix %s has no free address left: all of %s is allocated.", prefix, r)
}

// AllocatePrefix returns a free range with a prefix length.
func AllocatePrefix(w behaviour.World, family string, bits int) (netip.Prefix, error) {
	from := prefixIPv4
	if strings.EqualFold(family, IPv6) {
		from = prefixIPv6
	}
	var taken []netip.Prefix
	for _, doc := range behaviour.Everywhere(w, schema.Namespace+"publicIPPrefixes") {
		if p, err := netip.ParsePrefix(behaviour.Text(doc, "properties.ipPrefix")); err == nil {
			taken = append(taken, p)
		}
	}
	size := uint64(1) << (from.Addr().BitLen() - bits)
	const blocks = 1 << 12
	start := w.Intn(blocks)
	for i := range blocks {
		p := netip.PrefixFrom(plus(from.Addr(), uint64((start+i)%blocks)*size), bits)
		if _, clash := Overlapping([]netip.Prefix{p}, taken); !clash && from.Contains(p.Addr()) {
			return p, nil
		}
	}
	return netip.Prefix{},
		behaviour.Invalid("PublicIPAddressesExhausted", "There is no free public address range of family %s and length %d.", family, bits)
}

// MACAddress returns a new hardware address from Azure's range.
func MACAddress(w behaviour.World) string {
	return fmt.Sprintf("00-0D-3A-%02X-%02X-%02X", w.Intn(256), w.Intn(256), w.Intn(256))
}
