package ipam

import (
	"net/netip"
	"testing"
)

func FuzzParsePrefix(f *testing.F) {
	for _, s := range []string{"10.0.0.0/24", "10.0.0.1/24", "fd00::/64", "::ffff:10.0.0.0/112", "10.0.0.0", "x/1", "0.0.0.0/0", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePrefix("/subscriptions/s", text)
		if err != nil {
			return
		}
		if p != p.Masked() || p.Addr().Is4In6() {
			t.Errorf("%q is accepted as %s", text, p)
		}
		last := lastOf(p)
		if !p.Contains(last) || p.Contains(last.Next()) {
			t.Errorf("the last address of %s is not %s", p, last)
		}
		if !IsAddressOrRange(text) {
			t.Errorf("%q is a prefix but no address range for a security rule", text)
		}
	})
}

func TestPlus(t *testing.T) {
	for _, c := range []struct {
		from string
		n    uint64
		want string
	}{{"10.0.0.0", 4, "10.0.0.4"}, {"10.0.0.250", 10, "10.0.1.4"}, {"fd00::ffff", 1, "fd00::1:0"},
		{"198.18.0.0", 65535, "198.18.255.255"}} {
		if got := plus(netip.MustParseAddr(c.from), c.n).String(); got != c.want {
			t.Errorf("%s + %d: %s, want %s", c.from, c.n, got, c.want)
		}
	}
}

func TestServiceTags(t *testing.T) {
	for text, want := range map[string]bool{
		"*": true, "Internet": true, "VIRTUALNETWORK": true, "AzureLoadBalancer": true, "Storage": true, "Storage.WestEurope": true,
		"storage.nowhere": false, "Internet.eastus": false, "Nonsense": false, "10.0.0.0/8": false,
		"AzureFrontDoor.Backend": true, "": false,
	} {
		if got := IsServiceTag(text); got != want {
			t.Errorf("IsServiceTag(%q) = %v", text, got)
		}
	}
}
