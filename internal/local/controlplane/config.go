package controlplane

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"kaz/internal/local/process"
)

// Config says how a control plane runs. Processes and Binaries are required.
type Config struct {
	// Processes runs the programs; its directory holds the cluster's keys, state and logs.
	Processes *process.Group
	Binaries  Binaries
	// PodCIDRs are where simulated pods get addresses from: an IPv4 range, and an IPv6 one beside it in a dual-stack
	// cluster; 10.244.0.0/16 when there is none.
	PodCIDRs []netip.Prefix
	// ServiceCIDRs are the ranges of ClusterIPs, of the same families: 10.96.0.0/16 when there is none. A kept cluster
	// must keep them.
	ServiceCIDRs []netip.Prefix
	// AllocateNodeCIDRs lets kube-controller-manager give each node a part of each of the PodCIDRs.
	AllocateNodeCIDRs bool
	// ServiceAccountIssuer is the issuer in service account tokens: the cluster's own DNS name when empty.
	ServiceAccountIssuer string
	// Egress is the Unix socket of an HTTP CONNECT proxy through which the API server reaches kubelets, pods and
	// Services. Without one it reaches none of them.
	Egress string
	// Inside is where nodes and pods reach the API server, by somebody else's doing. Without one they do not.
	Inside netip.AddrPort
	// Without names what is not to be started: [ControllerManager], [Scheduler] or [KWOK].
	Without []string
	// Started is told about each program that has become ready, and how long that took. Calls do not overlap.
	Started func(program string, took time.Duration)
}

// complete checks the configuration and fills what may be left out.
func (c *Config) complete() error {
	if c.Processes == nil {
		return errors.New("no process group given")
	}
	if err := checkNames(c.Without); err != nil {
		return err
	}
	for _, name := range c.Without {
		if name == Etcd || name == APIServer {
			return fmt.Errorf("cannot leave out %s: everything else needs it", name)
		}
	}
	for _, name := range c.wanted() {
		if c.Binaries[name] == "" {
			return fmt.Errorf("no binary of %s given", name)
		}
	}
	if c.ServiceAccountIssuer == "" {
		c.ServiceAccountIssuer = "https://kubernetes.default.svc.cluster.local"
	}
	if c.Started == nil {
		c.Started = func(string, time.Duration) {}
	}
	var err error
	if c.PodCIDRs, err = ranges("pod", c.PodCIDRs, "10.244.0.0/16", "fd00:10:244::/48", 64); err != nil {
		return err
	}
	if c.ServiceCIDRs, err = ranges("service", c.ServiceCIDRs, "10.96.0.0/16", "fd00:10:96::/108", 116); err != nil {
		return err
	}
	if len(c.PodCIDRs) != len(c.ServiceCIDRs) {
		return fmt.Errorf("pod ranges %s, service ranges %s: want the same families", joined(c.PodCIDRs), joined(c.ServiceCIDRs))
	}
	return nil
}

// ranges checks an IPv4 range and, if it is there, the IPv6 one beside it, which has at most so many bits.
func ranges(what string, given []netip.Prefix, ipv4, ipv6 string, bits int) ([]netip.Prefix, error) {
	if len(given) == 0 {
		return []netip.Prefix{netip.MustParsePrefix(ipv4)}, nil
	}
	if len(given) > 2 {
		return nil, fmt.Errorf("%s ranges %s: want one, or one of each family", what, joined(given))
	}
	if r := given[0]; !r.IsValid() || !r.Addr().Is4() || r.Bits() > 24 || r != r.Masked() {
		return nil, fmt.Errorf("%s range %s: want an IPv4 network of /24 or larger, such as %s", what, r, ipv4)
	}
	if len(given) == 1 {
		return given, nil
	}
	if r := given[1]; !r.IsValid() || !r.Addr().Is6() || r.Addr().Is4In6() || r.Bits() > bits || r != r.Masked() {
		return nil, fmt.Errorf("%s range %s: want an IPv6 network of /%d or larger, such as %s", what, r, bits, ipv6)
	}
	return given, nil
}

// joined is how flags of Kubernetes write ranges.
func joined(ranges []netip.Prefix) string {
	var all []string
	for _, r := range ranges {
		all = append(all, r.String())
	}
	return strings.Join(all, ",")
}

// wanted lists what is to be started.
func (c *Config) wanted() []string {
	return slices.DeleteFunc([]string{Etcd, APIServer, ControllerManager, Scheduler, KWOK}, func(name string) bool {
		return slices.Contains(c.Without, name)
	})
}
