// Package cidr writes address ranges the way the flags of Kubernetes programs take them. Layer L4.
package cidr

import (
	"net/netip"
	"strings"
)

// Join returns ranges separated by commas.
func Join(ranges []netip.Prefix) string {
	var all []string
	for _, r := range ranges {
		all = append(all, r.String())
	}
	return strings.Join(all, ",")
}
