package controlplane

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"kaz/internal/local/process"
)

// Config says how a control plane runs. Processes and Binaries are required.
type Config struct {
	// Processes runs the programs; its directory holds the cluster's keys, state and logs.
	Processes *process.Group
	Binaries  Binaries
	// PodCIDR is where simulated pods get addresses from: 10.244.0.0/16 when zero.
	PodCIDR netip.Prefix
	// ServiceCIDR is the range of ClusterIPs: 10.96.0.0/16 when zero. A kept cluster must keep it.
	ServiceCIDR netip.Prefix
	// AllocateNodeCIDRs lets kube-controller-manager give each node a part of PodCIDR.
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
	if c.PodCIDR, err = ipv4Range("pod", c.PodCIDR, "10.244.0.0/16"); err != nil {
		return err
	}
	c.ServiceCIDR, err = ipv4Range("service", c.ServiceCIDR, "10.96.0.0/16")
	return err
}

func ipv4Range(what string, given netip.Prefix, otherwise string) (netip.Prefix, error) {
	if given == (netip.Prefix{}) {
		return netip.MustParsePrefix(otherwise), nil
	}
	if !given.IsValid() || !given.Addr().Is4() || given.Bits() > 24 || given != given.Masked() {
		return given, fmt.Errorf("%s range %s: want an IPv4 network of /24 or larger, such as %s", what, given, otherwise)
	}
	return given, nil
}

// wanted lists what is to be started.
func (c *Config) wanted() []string {
	return slices.DeleteFunc([]string{Etcd, APIServer, ControllerManager, Scheduler, KWOK}, func(name string) bool {
		return slices.Contains(c.Without, name)
	})
}
