package ipam_test

import (
	"strings"
	"testing"

	"kaz/internal/cloudprovider/ipam"
)

func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		flags ipam.Flags
		wrong []string // parts of the error, none for a valid configuration
	}{
		"one range": {ipam.Flags{AllocatorType: "RangeAllocator", ClusterCIDR: "10.244.0.0/16"}, nil},
		"dual stack": {ipam.Flags{AllocatorType: "CloudAllocator", ClusterCIDR: "10.244.0.0/16, fd00::/48",
			ServiceClusterIPRange: "fd01::/108,10.0.0.0/16"}, nil},
		"no range": {ipam.Flags{AllocatorType: "RangeAllocator"}, []string{"--cluster-cidr is missing"}},
		"no dual stack": {ipam.Flags{AllocatorType: "RangeAllocator", ClusterCIDR: "10.0.0.0/16,10.1.0.0/16"},
			[]string{"not dual stack"}},
		"three": {ipam.Flags{AllocatorType: "RangeAllocator", ClusterCIDR: "10.0.0.0/16,fd00::/48,10.1.0.0/16"},
			[]string{"3 ranges"}},
		"too fine for IPv6": {ipam.Flags{AllocatorType: "RangeAllocator", ClusterCIDR: "fd00::/32"},
			[]string{"--node-cidr-mask-size-ipv6 64", "/32 to /48"}},
		"larger than its range": {ipam.Flags{AllocatorType: "RangeAllocator", ClusterCIDR: "10.0.0.0/16", MaskSizeIPv4: 15},
			[]string{"--node-cidr-mask-size-ipv4 15", "/16 to /32"}},
		"everything wrong": {ipam.Flags{AllocatorType: "IPAMFromCloud", ClusterCIDR: "pods", ServiceClusterIPRange: "10.0.0.0"},
			[]string{"--cidr-allocator-type \"IPAMFromCloud\": want RangeAllocator or CloudAllocator", "--cluster-cidr \"pods\"",
				"--service-cluster-ip-range \"10.0.0.0\""}},
		"two ranges of Services": {ipam.Flags{AllocatorType: "RangeAllocator", ClusterCIDR: "10.0.0.0/16",
			ServiceClusterIPRange: "10.1.0.0/16,10.2.0.0/16"}, []string{"--service-cluster-ip-range", "not dual stack"}},
	} {
		c, err := test.flags.Read()
		if (err == nil) != (test.wrong == nil) || err == nil && len(c.Bits) != len(c.Ranges) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		for _, text := range test.wrong {
			if err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v does not say %q", name, err, text)
			}
		}
	}
}
