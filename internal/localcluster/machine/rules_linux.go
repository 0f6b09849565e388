package machine

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/localcluster/cidr"
)

// rules returns an nftables table for each family of the pods. Packets of pods to addresses outside the virtual network,
// and to the platform, leave with the machine's address. No route leads from there back to pods.
func rules(s Spec) string {
	var b strings.Builder
	for _, pods := range s.PodRanges {
		inner := []netip.Prefix{}
		for _, p := range slices.Concat(s.PodRanges, s.ServiceRanges, s.Network) {
			if p.Addr().Is4() == pods.Addr().Is4() {
				inner = append(inner, p)
			}
		}
		family, more := "ip", ""
		if pods.Addr().Is6() {
			family, more = "ip6", probeRules
		}
		fmt.Fprintf(&b, `table %[1]s kaz {
  chain postrouting {
    type nat hook postrouting priority srcnat + 10;
    %[1]s saddr %[2]s %[1]s daddr != { %[3]s } oifname "eth*" masquerade
  }
%[4]s}
`, family, pods, cidr.Join(inner), more)
	}
	return b.String()
}

// probeRules translate the source address of IPv6 probes of load balancers inside the machine. The source is a link-local
// address, and the kernel forwards no packet from such an address, not even to pods on the machine.
// Source: https://learn.microsoft.com/azure/aks/configure-dual-stack
const probeRules = `  chain arrive {
    type filter hook prerouting priority raw;
    iifname "eth*" ip6 saddr fe80::1234:5678:9abc ip6 saddr set fd00:168:63:129::16
  }
  chain answer {
    type filter hook postrouting priority raw;
    oifname "eth*" ip6 daddr fd00:168:63:129::16 ip6 daddr set fe80::1234:5678:9abc
  }
`
