package controlplane

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"kaz/internal/host/process"
	"kaz/internal/localcluster/cidr"
)

// Config configures a control plane. Processes and Binaries are required.
type Config struct {
	// Processes runs the programs. Its directory holds the cluster's keys, state and logs.
	Processes *process.Group
	Binaries  Binaries
	// PodCIDRs are the ranges of simulated pods: an IPv4 range, and an IPv6 range in a dual-stack cluster; 10.244.0.0/16 if
	// empty.
	PodCIDRs []netip.Prefix
	// ServiceCIDRs are the ranges of ClusterIPs, of the same families; 10.96.0.0/16 if empty. An existing cluster cannot
	// change them.
	ServiceCIDRs []netip.Prefix
	// AllocateNodeCIDRs makes kube-controller-manager assign each node a part of each of the PodCIDRs.
	AllocateNodeCIDRs bool
	// ServiceAccountIssuer is the issuer in service account tokens, the cluster's DNS name if empty.
	ServiceAccountIssuer string
	// Egress is the Unix socket of an HTTP CONNECT proxy by which the API server reaches kubelets, pods and Services. Without
	// it the API server reaches none of them.
	Egress string
	// Inside is the address by which nodes and pods reach the API server, if the caller relays it.
	Inside netip.AddrPort
	// Without names programs to leave out: [ControllerManager], [Scheduler] or [KWOK].
	Without []string
	// Started is called for each ready program with the duration of its start. Calls do not overlap.
	Started func(program string, took time.Duration)
}

// complete validates the configuration and sets the defaults.
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
		return fmt.Errorf("pod ranges %s, service ranges %s: want the same families", cidr.Join(c.PodCIDRs), cidr.Join(c.ServiceCIDRs))
	}
	return nil
}

// ranges validates an IPv4 range and an optional IPv6 range with at most the given number of prefix bits. An empty list
// is the default IPv4 range.
func ranges(what string, given []netip.Prefix, ipv4, ipv6 string, bits int) ([]netip.Prefix, error) {
	if len(given) == 0 {
		return []netip.Prefix{netip.MustParsePrefix(ipv4)}, nil
	}
	if len(given) > 2 {
		return nil, fmt.Errorf("%s ranges %s: want one, or one of each family", what, cidr.Join(given))
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

// wanted returns the programs to start.
func (c *Config) wanted() []string {
	return slices.DeleteFunc([]string{Etcd, APIServer, ControllerManager, Scheduler, KWOK}, func(name string) bool {
		return slices.Contains(c.Without, name)
	})
}
