package localcluster

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"

	"kaz/internal/host/atomicfile"
	"kaz/internal/localazure/inventory"
	"kaz/internal/localazure/plane/fabric/wiring"
	"kaz/internal/localcluster/realnodes"
)

// MachineStatus is a virtual machine of the local Azure.
type MachineStatus struct {
	Name      string       `json:"name"`
	ID        string       `json:"id"`
	Running   bool         `json:"running"`
	Addresses []netip.Addr `json:"addresses"`
}

// BalancerStatus is a rule of a load balancer and its backends.
type BalancerStatus struct {
	Rule     string       `json:"rule"`
	Frontend string       `json:"frontend"`
	Protocol string       `json:"protocol"`
	Backends []netip.Addr `json:"backends"`
	Healthy  []netip.Addr `json:"healthy"`
}

// networkStatus describes the network of a cluster with real nodes.
type networkStatus struct {
	Machines  []MachineStatus  `json:"machines,omitempty"`
	Balancers []BalancerStatus `json:"balancers,omitempty"`
}

// networkFile is the file of the [networkStatus] of a running cluster.
const networkFile = "network.json"

// writeNetworkStatus updates the file after each change of the network, until ctx is done.
func (c *cluster) writeNetworkStatus(ctx context.Context, network *realnodes.Nodes) error {
	var written []byte
	for {
		err := network.WaitBalancers(ctx, func(all []wiring.Balancer) bool {
			machines, err := c.machines(ctx)
			if err != nil {
				return false
			}
			text, err := json.Marshal(newNetworkStatus(machines, all))
			if err != nil || slices.Equal(text, written) {
				return false
			}
			written = text
			return true
		})
		if err != nil {
			return nil // ctx is done
		}
		if err := atomicfile.Write(c.path(networkFile), written, 0o600); err != nil {
			return err
		}
	}
}

// newNetworkStatus returns the status of machines and of load balancer rules.
func newNetworkStatus(machines []inventory.Machine, balancers []wiring.Balancer) networkStatus {
	var s networkStatus
	for _, m := range machines {
		s.Machines = append(s.Machines, MachineStatus{m.Name, string(m.ID), m.Running, m.Addresses})
	}
	for _, b := range balancers {
		frontend := b.Frontend.String()
		if b.Port > 0 {
			frontend = netip.AddrPortFrom(b.Frontend, uint16(b.Port)).String()
		}
		s.Balancers = append(s.Balancers, BalancerStatus{b.Rule.Name(), frontend, b.Protocol, b.Backends, b.Healthy})
	}
	return s
}
