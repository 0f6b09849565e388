package netns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"

	"kaz/internal/localazure/plane/fabric/wiring"
)

// Check returns an error for everything that this machine needs and does not have, and says what to do. It leaves
// nothing behind.
func Check(ctx context.Context, instance, outside string) error {
	if os.Geteuid() != 0 {
		return errors.New("real networks need root: no other user can create network namespaces")
	}
	var problems []error
	for program, pkg := range map[string]string{"ip": "iproute2", "nft": "nftables"} {
		if _, err := exec.LookPath(program); err != nil {
			problems = append(problems, fmt.Errorf("real networks need the program %s: install the package %s", program, pkg))
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	return errors.Join(checkKernel(ctx, instance), checkRanges(ctx, outside))
}

// features is a ruleset with every feature that rulesets of package wiring use.
const features = `table inet kaz {
  map addresses { type ipv4_addr : ipv4_addr ; }
  map frontends { typeof ip6 daddr . meta l4proto . th dport : verdict ; }
  chain a { type nat hook prerouting priority dstnat ; dnat ip to ip daddr map @addresses ; }
  chain b { type nat hook postrouting priority srcnat ; snat ip to ip saddr map @addresses ; }
  chain c { type filter hook prerouting priority mangle ;
    ct state new ct mark set jhash ip saddr . ip daddr . th sport . th dport . meta l4proto mod 2 map { 0 : 1, 1 : 2 } ;
    ip6 daddr . meta l4proto . th dport vmap @frontends ; meta mark set ct mark ; }
}
`

func checkKernel(ctx context.Context, instance string) (err error) {
	name := wiring.Prefix(instance) + "-check"
	if err := Create(name); err != nil {
		return fmt.Errorf("this kernel or container cannot create network namespaces: %w", err)
	}
	defer func() { err = errors.Join(err, Remove(name)) }()
	if _, err := Run(ctx, name, features, "nft", "-f", "-"); err != nil {
		return fmt.Errorf("this kernel's nftables cannot do what load balancers need (hashes, marks, address translation): %w", err)
	}
	failures, err := batch(ctx, name, []string{"rule add fwmark 0xa000004 lookup 167772164"})
	if err == nil && len(failures) > 0 {
		err = failures[0]
	}
	if err != nil {
		return fmt.Errorf("this kernel has no policy routing: %w", err)
	}
	return nil
}

// checkRanges returns an error for each foreign route to public addresses of the local Azure.
func checkRanges(ctx context.Context, outside string) error {
	var problems []error
	for _, options := range []string{"-4", "-6"} {
		text, err := Run(ctx, outside, "", "ip", options, "-json", "route", "show")
		if err != nil {
			return fmt.Errorf("routes of this machine: %w", err)
		}
		var routes []struct{ Dst, Dev string }
		if err := json.Unmarshal([]byte(text), &routes); err != nil && text != "" {
			return fmt.Errorf("routes of this machine: %w", err)
		}
		for _, r := range routes {
			p, err := netip.ParsePrefix(r.Dst)
			if a, single := netip.ParseAddr(r.Dst); err != nil && single == nil {
				p, err = netip.PrefixFrom(a, a.BitLen()), nil
			}
			if err != nil {
				continue // "default" is no prefix
			}
			for _, ours := range wiring.PublicRanges() {
				if ours.Overlaps(p) && p.Bits() > 0 {
					problems = append(problems,
						fmt.Errorf("the addresses %s of the local Azure are in use on this machine: it has a route to %s by %s; "+
							"remove it, or end the kaz that made it", ours, p, r.Dev))
				}
			}
		}
	}
	return errors.Join(problems...)
}
