package cidr

import (
	"net/netip"
	"testing"
)

func TestJoin(t *testing.T) {
	both := []netip.Prefix{netip.MustParsePrefix("10.244.0.0/14"), netip.MustParsePrefix("fd00:10:244::/48")}
	if got := Join(both); got != "10.244.0.0/14,fd00:10:244::/48" {
		t.Errorf("Join(%v): %q", both, got)
	}
	if got := Join(nil); got != "" {
		t.Errorf("Join(nil): %q", got)
	}
}
