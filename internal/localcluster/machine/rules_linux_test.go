package machine

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRules: each family leaves with the machine's address of that family, unless it
// goes to where pods are known. Pods can answer IPv6 probes.
func TestRules(t *testing.T) {
	prefixes := func(texts ...string) []netip.Prefix {
		var all []netip.Prefix
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	got := rules(Spec{
		PodRanges:     prefixes("10.244.0.0/16", "fd00:10:244::/48"),
		ServiceRanges: prefixes("10.96.0.0/16", "fd00:10:96::/108"),
		Network:       prefixes("10.240.0.0/16", "fd00:10:240::/48"),
	})
	want := `table ip kaz {
  chain postrouting {
    type nat hook postrouting priority srcnat + 10;
    ip saddr 10.244.0.0/16 ip daddr != { 10.244.0.0/16,10.96.0.0/16,10.240.0.0/16 } oifname "eth*" masquerade
  }
}
table ip6 kaz {
  chain postrouting {
    type nat hook postrouting priority srcnat + 10;
    ip6 saddr fd00:10:244::/48 ip6 daddr != { fd00:10:244::/48,fd00:10:96::/108,fd00:10:240::/48 } oifname "eth*" masquerade
  }
  chain arrive {
    type filter hook prerouting priority raw;
    iifname "eth*" ip6 saddr fe80::1234:5678:9abc ip6 saddr set fd00:168:63:129::16
  }
  chain answer {
    type filter hook postrouting priority raw;
    oifname "eth*" ip6 daddr fd00:168:63:129::16 ip6 daddr set fe80::1234:5678:9abc
  }
}
`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
