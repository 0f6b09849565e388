// Package ipam gives each node a range of the cluster's pod addresses: the
// node-ipam-controller of the cloud-controller-manager. Layer L3: plan and
// Kubernetes libraries.
package ipam

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
)

// The types of allocator.
const (
	RangeAllocator = "RangeAllocator" // blocks of one size
	CloudAllocator = "CloudAllocator" // blocks of the size that tags in Azure say
)

// Sizes of blocks where nobody says another one.
const (
	usualIPv4 = 24
	usualIPv6 = 64
)

// Flags are the command line's words. [Flags.Read] makes sense of them.
type Flags struct {
	AllocatorType         string // --cidr-allocator-type
	ClusterCIDR           string // --cluster-cidr
	ServiceClusterIPRange string // --service-cluster-ip-range
	MaskSize              int    // --node-cidr-mask-size, which has no effect
	MaskSizeIPv4          int    // --node-cidr-mask-size-ipv4, 0 for 24
	MaskSizeIPv6          int    // --node-cidr-mask-size-ipv6, 0 for 64
}

// Config is what the controller works by.
type Config struct {
	// Ranges are the cluster's, one of each family at most; nodes get their blocks in
	// this order.
	Ranges []netip.Prefix
	// Reserved are ranges that no node gets, though they are the cluster's.
	Reserved []netip.Prefix
	// Bits of a node's block in each of the ranges, where no tag says otherwise.
	Bits []int
	// Tagged says that tags in Azure decide the sizes.
	Tagged bool
}

// Read makes a configuration of flags, or says all that is wrong with them.
func (f Flags) Read() (Config, error) {
	var c Config
	var problems []error
	wrong := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	switch f.AllocatorType {
	case RangeAllocator:
	case CloudAllocator:
		c.Tagged = true
	default:
		wrong(fmt.Errorf("--cidr-allocator-type %q: want %s or %s", f.AllocatorType, RangeAllocator, CloudAllocator))
	}
	if f.MaskSize != 0 && f.MaskSize != usualIPv4 {
		slog.Warn("--node-cidr-mask-size has no effect: see --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6", "value", f.MaskSize)
	}
	var err error
	c.Ranges, err = ClusterCIDR(f.ClusterCIDR, "--allocate-node-cidrs")
	wrong(err)
	c.Reserved, err = ranges("--service-cluster-ip-range", f.ServiceClusterIPRange)
	wrong(err)
	for _, r := range c.Ranges {
		bits, err := f.bits(r)
		wrong(err)
		c.Bits = append(c.Bits, bits)
	}
	return c, errors.Join(problems...)
}

// ClusterCIDR reads the flag of that name, which another flag wants.
func ClusterCIDR(text, wantedBy string) ([]netip.Prefix, error) {
	all, err := ranges("--cluster-cidr", text)
	if err == nil && len(all) == 0 {
		return nil, fmt.Errorf("--cluster-cidr is missing: %s wants the range of the pods, such as 10.244.0.0/16", wantedBy)
	}
	return all, err
}

// ranges reads one range, or two of two families.
func ranges(flag, text string) ([]netip.Prefix, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var all []netip.Prefix
	for word := range strings.SplitSeq(text, ",") {
		r, err := netip.ParsePrefix(strings.TrimSpace(word))
		if err != nil {
			return nil, fmt.Errorf("%s %q: %q is not a range such as 10.244.0.0/16", flag, text, word)
		}
		all = append(all, r.Masked())
	}
	if len(all) > 2 {
		return nil, fmt.Errorf("%s %q: %d ranges, want one, or two of which one is IPv6", flag, text, len(all))
	}
	if len(all) == 2 && all[0].Addr().Is4() == all[1].Addr().Is4() {
		return nil, fmt.Errorf("%s %q: two ranges of one family are not dual stack, want one IPv4 and one IPv6", flag, text)
	}
	return all, nil
}

// tooFine is how many bits longer than an IPv6 range its blocks may be at most.
const tooFine = 16

func (f Flags) bits(r netip.Prefix) (int, error) {
	flag, bits, usual := "--node-cidr-mask-size-ipv4", f.MaskSizeIPv4, usualIPv4
	if r.Addr().Is6() {
		flag, bits, usual = "--node-cidr-mask-size-ipv6", f.MaskSizeIPv6, usualIPv6
	}
	if bits == 0 {
		bits = usual
	}
	most := r.Addr().BitLen()
	if r.Addr().Is6() {
		most = min(most, r.Bits()+tooFine)
	}
	if bits < r.Bits() || bits > most {
		return bits, fmt.Errorf("%s %d: a node's block in --cluster-cidr %s is /%d to /%d", flag, bits, r, r.Bits(), most)
	}
	return bits, nil
}
