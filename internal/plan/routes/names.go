package routes

import (
	"net/netip"
	"strings"
)

// separator stands between a node's name and the digits of its range in the name of
// a route.
const separator = "____"

// Name is the name of the route to a node's range: "node1____102444024" for
// 10.244.4.0/24. Clusters have such routes already, so it must not change.
func Name(node, cidr string) string {
	return node + separator + strings.NewReplacer(":", "", ".", "", "/", "").Replace(cidr)
}

// nodeOf is the node that a route of this name leads to, false where the name is
// not one that [Name] makes.
func nodeOf(name string) (string, bool) {
	node, digits, ok := strings.Cut(name, separator)
	hex := strings.IndexFunc(digits, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) }) < 0
	return node, ok && hex && node != "" && digits != ""
}

// prefix is a range in the one form in which equal ranges are the same text.
// Azure also has routes to service tags, which are their own text.
func prefix(text string) string {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked().String()
	}
	return strings.ToLower(text)
}
