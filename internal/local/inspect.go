package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"kaz/internal/emulator/plane/fabric/wiring"
	vm "kaz/internal/local/machine"
)

// MachineStatus is a machine as its Azure has it.
type MachineStatus struct {
	Name      string       `json:"name"`
	ID        string       `json:"id"`
	Running   bool         `json:"running"`
	Addresses []netip.Addr `json:"addresses"`
}

// BalancerStatus is a rule of a load balancer and its receivers.
type BalancerStatus struct {
	Rule     string       `json:"rule"`
	Frontend string       `json:"frontend"`
	Protocol string       `json:"protocol"`
	Backends []netip.Addr `json:"backends"`
	Healthy  []netip.Addr `json:"healthy"`
}

// networkStatus is what a running cluster with real nodes tells of its network.
type networkStatus struct {
	Machines  []MachineStatus  `json:"machines,omitempty"`
	Balancers []BalancerStatus `json:"balancers,omitempty"`
}

// networkFile is where it does.
const networkFile = "network.json"

// tellNetwork keeps the file in step with the network until ctx is done.
func (c *cluster) tellNetwork(ctx context.Context) error {
	var told []byte
	for {
		err := c.reality.network.Wait(ctx, func(all []wiring.Balancer) bool {
			text, err := json.Marshal(c.networkStatus(ctx, all))
			if err != nil || slices.Equal(text, told) {
				return false
			}
			told = text
			return true
		})
		if err != nil {
			return nil // it has ended
		}
		if err := writeFile(c.path(networkFile), told); err != nil {
			return err
		}
	}
}

func (c *cluster) networkStatus(ctx context.Context, all []wiring.Balancer) networkStatus {
	var s networkStatus
	machines, err := c.azure.machines(ctx)
	if err != nil {
		return s
	}
	for _, m := range machines {
		s.Machines = append(s.Machines, MachineStatus{m.Name, string(m.ID), m.Running, m.Addresses})
	}
	for _, b := range all {
		frontend := b.Frontend.String()
		if b.Port > 0 {
			frontend = netip.AddrPortFrom(b.Frontend, uint16(b.Port)).String()
		}
		s.Balancers = append(s.Balancers, BalancerStatus{b.Rule.Name(), frontend, b.Protocol, b.Backends, b.Healthy})
	}
	return s
}

// Shell is the command that runs another one, or a shell, in the machine of a node.
func Shell(ctx context.Context, dir, node string, command ...string) (*exec.Cmd, error) {
	if _, err := ReadStatus(dir); err != nil {
		return nil, err
	}
	disks, err := disksIn(dir)
	if err != nil {
		return nil, err
	}
	if len(disks) == 0 {
		return nil, fmt.Errorf("machine %q: there is none in %s; only a cluster with real nodes has machines", node, dir)
	}
	if !slices.Contains(disks, node) {
		return nil, noSuch("machine", node, disks, dir)
	}
	if len(command) == 0 {
		command = []string{"/bin/sh", "-i"}
	}
	return vm.Enter(ctx, filepath.Join(dir, machinesDir, node), command...)
}

// machinesDir has the disks of real nodes.
const machinesDir = "machines"

// disksIn are the names of the machines that have a disk.
func disksIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, machinesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func noSuch(what, name string, there []string, dir string) error {
	if len(there) == 0 {
		return fmt.Errorf("%s %q: there is none in %s", what, name, dir)
	}
	return fmt.Errorf("%s %q: want one of %s", what, name, strings.Join(there, ", "))
}

// Logs are the files that a component, or a node's programs, log to.
func Logs(dir, name string) ([]string, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("%w in %s; start one with: kaz local up --dir %s", ErrDown, dir, dir)
	}
	components, err := filepath.Glob(filepath.Join(dir, "logs", "*.log"))
	if err != nil {
		return nil, err
	}
	var there []string
	for _, file := range components {
		component := strings.TrimSuffix(filepath.Base(file), ".log")
		if component == name {
			return []string{file}, nil
		}
		if !strings.HasPrefix(component, machinePrefix) {
			there = append(there, component)
		}
	}
	disks, err := disksIn(dir)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(disks, name) {
		return nil, noSuch("log", name, slices.Concat(there, disks), dir)
	}
	return filepath.Glob(filepath.Join(dir, machinesDir, name, "var/log", "*.log"))
}
