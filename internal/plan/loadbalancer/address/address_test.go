package address_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"kaz/internal/plan/loadbalancer/address"
)

func TestAggregate(t *testing.T) {
	for _, test := range []struct{ ranges, want string }{
		{"", ""},
		{"10.0.0.0/8", "10.0.0.0/8"},
		{"10.0.0.0/8 10.1.0.0/16 10.0.0.0/8", "10.0.0.0/8"},
		{"10.1.0.0/16 10.0.0.0/16", "10.0.0.0/15"},
		{"10.2.0.0/16 10.1.0.0/16", "10.1.0.0/16 10.2.0.0/16"}, // neighbors, not halves of one range
		{"0.0.0.0/1 128.0.0.0/1", "0.0.0.0/0"},
		{"10.0.0.0/32 10.0.0.1/32 10.0.0.2/31 10.0.0.4/30", "10.0.0.0/29"},
		{"2001:db8::/32 10.0.0.0/8", "10.0.0.0/8"},
		{"0.0.0.0/0 1.1.1.1/32", "0.0.0.0/0"},
	} {
		ranges, wrong := address.ParseRanges(strings.Fields(test.ranges))
		if got := strings.Join(address.Aggregate(ranges, v1.IPv4Protocol), " "); got != test.want || len(wrong) > 0 {
			t.Errorf("%s: %s, want %s (%v)", test.ranges, got, test.want, wrong)
		}
	}
	_, wrong := address.ParseRanges([]string{"10.0.0.1/8", " 10.0.0.0/8 ", "10.0.0.1", "", "x", "10.0.0.0/33", "::ffff:10.0.0.0/104"})
	if d := cmp.Diff([]string{"10.0.0.1/8", "10.0.0.1", "", "x", "10.0.0.0/33", "::ffff:10.0.0.0/104"}, wrong); d != "" {
		t.Error(d)
	}
}

// TestAggregateKeepsTheSameAddresses checks that aggregation allows the same addresses and leaves nothing to merge.
func TestAggregateKeepsTheSameAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := rapid.Custom(func(t *rapid.T) netip.Addr {
			return netip.AddrFrom4([4]byte{10, rapid.Byte().Draw(t, "b") & 3, 0, rapid.Byte().Draw(t, "d") & 7})
		})
		var ranges []netip.Prefix
		for _, a := range rapid.SliceOf(drawn).Draw(t, "addresses") {
			ranges = append(ranges, netip.PrefixFrom(a, rapid.SampledFrom([]int{8, 15, 16, 29, 30, 31, 32}).Draw(t, "bits")).Masked())
		}
		holds := func(all []netip.Prefix, a netip.Addr) bool {
			for _, p := range all {
				if p.Contains(a) {
					return true
				}
			}
			return false
		}
		merged, wrong := address.ParseRanges(address.Aggregate(ranges, v1.IPv4Protocol))
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		for range 20 {
			if a := drawn.Draw(t, "probe"); holds(ranges, a) != holds(merged, a) {
				t.Fatalf("%s in %v is not in %v, or the other way round", a, ranges, merged)
			}
		}
		if again := address.Aggregate(merged, v1.IPv4Protocol); len(again) != len(merged) {
			t.Fatalf("%v can still be merged to %v", merged, again)
		}
	})
}

func FuzzRanges(f *testing.F) {
	for _, seed := range []string{"10.0.0.0/8", "::/0", "10.0.0.1/8", "::ffff:10.0.0.0/104", "0.0.0.0/0", " ", "fe80::%eth0/64"} {
		f.Add(seed, "10.0.0.0/9")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		ranges, wrong := address.ParseRanges([]string{a, b})
		if len(ranges)+len(wrong) != 2 {
			t.Fatalf("%q and %q: %v %v", a, b, ranges, wrong)
		}
		for _, text := range address.Aggregate(ranges, v1.IPv4Protocol) {
			if p, err := netip.ParsePrefix(text); err != nil || !p.Addr().Is4() || p != p.Masked() {
				t.Errorf("%q and %q: %s", a, b, text)
			}
		}
	})
}
