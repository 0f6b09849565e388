package machine

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMasqueradeRules: each family leaves with the machine's address of that family,
// unless it goes to where pods are known.
func TestMasqueradeRules(t *testing.T) {
	prefixes := func(texts ...string) []netip.Prefix {
		var all []netip.Prefix
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	got := masqueradeRules(Spec{
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
}
`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
