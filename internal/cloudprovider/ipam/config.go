// Package ipam assigns pod address ranges to nodes. It is the node-ipam-controller of the
// cloud-controller-manager. Layer L3: plan and Kubernetes libraries.
package ipam

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
)

// The allocator types.
const (
	RangeAllocator = "RangeAllocator" // all blocks have the same size
	CloudAllocator = "CloudAllocator" // tags in Azure determine the block sizes
)

// Default block sizes.
const (
	usualIPv4 = 24
	usualIPv6 = 64
)

// Flags are the values of the command line flags. [Flags.Read] validates them.
type Flags struct {
	AllocatorType         string // --cidr-allocator-type
	ClusterCIDR           string // --cluster-cidr
	ServiceClusterIPRange string // --service-cluster-ip-range
	MaskSize              int    // --node-cidr-mask-size, which has no effect
	MaskSizeIPv4          int    // --node-cidr-mask-size-ipv4, 0 for 24
	MaskSizeIPv6          int    // --node-cidr-mask-size-ipv6, 0 for 64
}

// Config is the configuration of the controller.
type Config struct {
	// Ranges are the cluster's ranges, at most one for each IP family. Nodes have their blocks in
	// this order.
	Ranges []netip.Prefix
	// Reserved are parts of the ranges that no node gets.
	Reserved []netip.Prefix
	// Bits are the prefix lengths of a node's blocks in each range, unless a tag overrides them.
	Bits []int
	// Tagged enables tags that override the sizes.
	Tagged bool
}

// Read returns the configuration of the flags, or all problems.
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

// ClusterCIDR parses --cluster-cidr, which the flag wantedBy requires.
func ClusterCIDR(text, wantedBy string) ([]netip.Prefix, error) {
	all, err := ranges("--cluster-cidr", text)
	if err == nil && len(all) == 0 {
		return nil, fmt.Errorf("--cluster-cidr is missing: %s wants the range of the pods, such as 10.244.0.0/16", wantedBy)
	}
	return all, err
}

// ranges parses one range, or two of different families.
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

// tooFine is how much longer the prefix of a block may be than that of its IPv6 range.
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
