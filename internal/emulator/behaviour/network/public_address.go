package network

import (
	"net/netip"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// Public addresses come from the ranges that are set aside for measurements and
// documentation, so that they are nobody's: single ones from the first half,
// prefixes from the second.
var (
	singleIPv4 = netip.MustParsePrefix("198.18.0.0/16")
	prefixIPv4 = netip.MustParsePrefix("198.19.0.0/16")
	singleIPv6 = netip.MustParsePrefix("2001:db8::/48")
	prefixIPv6 = netip.MustParsePrefix("2001:db8:1::/48")
)

// Lease is the id that stands for a public address. Whoever has the address says
// so by naming the id anywhere in its document, and hides it in Show: the index
// of references is the index of addresses. No two subscriptions have the same one, so
// the lease is of the main subscription, wherever the address is.
func Lease(subscription, address string) azure.ID {
	return azure.SubscriptionID(subscription).Resource(namespace+"publicAddresses", address)
}

// domainLease stands for a name below cloudapp.azure.com, as far as addresses of a family
// have it: one of each can. States that are kept have those of IPv4 without the family.
func domainLease(subscription, fqdn, family string) azure.ID {
	name := strings.ToLower(fqdn)
	if family == IPv6 {
		name += "-ipv6"
	}
	return azure.SubscriptionID(subscription).Resource(namespace+"domainNames", name)
}

// AllocatePublic is a public address of the family that nobody has a [Lease] of.
func AllocatePublic(w behaviour.World, family string) (string, error) {
	from := singleIPv4
	if strings.EqualFold(family, IPv6) {
		from = singleIPv6
	}
	// A few tries find a free one of 65,536 while they are not nearly all taken, and
	// then all are looked through.
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

// allocateFromPrefix is a free address of a public IP prefix.
func allocateFromPrefix(w behaviour.World, prefix azure.ID) (string, error) {
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
	return "", behaviour.Invalid("PublicIpPrefixOutOfIpAddressesForTheGivenZones", "Public IP prefix %s has no free address left: all of %s is allocated.", prefix, r)
}

// allocatePrefix is a free range of the length.
func allocatePrefix(w behaviour.World, family string, bits int) (netip.Prefix, error) {
	from := prefixIPv4
	if strings.EqualFold(family, IPv6) {
		from = prefixIPv6
	}
	var taken []netip.Prefix
	for _, doc := range behaviour.Everywhere(w, namespace+"publicIPPrefixes") {
		if p, err := netip.ParsePrefix(behaviour.Text(doc, "properties.ipPrefix")); err == nil {
			taken = append(taken, p)
		}
	}
	size := uint64(1) << (from.Addr().BitLen() - bits)
	const blocks = 1 << 12
	start := w.Intn(blocks)
	for i := range blocks {
		p := netip.PrefixFrom(plus(from.Addr(), uint64((start+i)%blocks)*size), bits)
		if _, clash := overlapping([]netip.Prefix{p}, taken); !clash && from.Contains(p.Addr()) {
			return p, nil
		}
	}
	return netip.Prefix{}, behaviour.Invalid("PublicIPAddressesExhausted", "There is no free public address range of family %s and length %d.", family, bits)
}
