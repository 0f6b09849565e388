package routes

import (
	"net/netip"
	"strings"
)

// separator is between the node's name and the digits of the range in a route's name.
const separator = "____"

// Name returns the name of the route to a node's range: "node1____102444024" for 10.244.4.0/24. It
// must not change, because existing clusters have such routes.
func Name(node, cidr string) string {
	return node + separator + strings.NewReplacer(":", "", ".", "", "/", "").Replace(cidr)
}

// nodeOf returns the node of a route with this name, and false for names that [Name] does not return.
func nodeOf(name string) (string, bool) {
	node, digits, ok := strings.Cut(name, separator)
	hex := strings.IndexFunc(digits, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) }) < 0
	return node, ok && hex && node != "" && digits != ""
}

// prefix returns the canonical form of a range. Destinations of routes can also be service tags,
// which it returns unchanged.
func prefix(text string) string {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked().String()
	}
	return strings.ToLower(text)
}
