package localcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"kaz/internal/host/process"
	"kaz/internal/localcluster/controlplane"
)

// statusFile is the file of the [Status] of a running cluster.
const statusFile = "status.json"

// Status describes a running cluster.
type Status struct {
	Dir          string   `json:"dir"`
	UpPID        int      `json:"upPID"` // process of kaz local up
	Server       string   `json:"server"`
	ARM          string   `json:"arm"`
	DNS          string   `json:"dns,omitempty"` // IP:PORT of the name server of public zones
	Metrics      string   `json:"metrics"`       // of the cloud-controller-manager
	Kubeconfig   string   `json:"kubeconfig"`
	CloudConfig  string   `json:"cloudConfig"`
	Environment  string   `json:"environment"`
	Kubectl      string   `json:"kubectl"`
	ClusterName  string   `json:"clusterName"`
	ScaleSets    []string `json:"scaleSets"`
	Subscription string   `json:"subscription"`
	Without      []string `json:"without,omitempty"`
	NodesKind    string   `json:"nodesKind"`
	Example      string   `json:"example,omitempty"` // the URL at which the example answers
	// networkStatus is the network of a cluster with real nodes.
	networkStatus
	Components []Component `json:"components"`
}

// Component is a process of a cluster.
type Component struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Running bool   `json:"running"`
	Log     string `json:"log,omitempty"`
}

// ErrDown is returned for a directory without a running cluster.
var ErrDown = errors.New("no cluster is up")

// ReadStatus returns the status of the cluster in dir, [ErrDown] if none runs.
func ReadStatus(dir string) (Status, error) {
	var s Status
	owner, running := process.Owner(dir)
	data, err := os.ReadFile(filepath.Join(dir, statusFile))
	if !running || errors.Is(err, os.ErrNotExist) {
		return s, errDown(dir)
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return s, fmt.Errorf("%s cannot be read: %w", filepath.Join(dir, statusFile), err)
	}
	network, err := os.ReadFile(filepath.Join(dir, networkFile))
	if err == nil {
		err = json.Unmarshal(network, &s.networkStatus)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return s, fmt.Errorf("%s cannot be read: %w", filepath.Join(dir, networkFile), err)
	}
	records, err := process.Recorded(dir)
	if err != nil {
		return s, err
	}
	s.Components = []Component{{Name: "kaz local (with the local Azure)", PID: owner.PID, Running: true}}
	for _, r := range records {
		s.Components = append(s.Components, Component{Name: r.Name, PID: r.PID, Running: r.Alive(), Log: r.LogFile})
	}
	return s, nil
}

// errDown returns [ErrDown] with the directory and the command that starts a cluster.
func errDown(dir string) error {
	return fmt.Errorf("%w in %s; start one with: kaz local up --dir %s", ErrDown, dir, dir)
}

// Write prints the status as text.
func (s Status) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"directory", s.Dir},
		{"Kubernetes", s.Server},
		{"Azure", s.ARM},
		{"name server", s.DNS},
		{"metrics", s.Metrics},
		{"kubeconfig", s.Kubeconfig},
		{"azure.json", s.CloudConfig},
		{"environment", s.Environment},
		{"scale sets", strings.Join(s.ScaleSets, ", ")},
		{"nodes", s.NodesKind},
	} {
		if line[1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", line[0], line[1])
		}
	}
	fmt.Fprintf(t, "\nCOMPONENT\tPID\tSTATE\tLOG\n")
	for _, c := range s.Components {
		state := "running"
		if !c.Running {
			state = "ended"
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", c.Name, c.PID, state, c.Log)
	}
	if len(s.Machines) > 0 {
		fmt.Fprintf(t, "\nMACHINE\tSTATE\tADDRESSES\n")
	}
	for _, m := range s.Machines {
		state := "off"
		if m.Running {
			state = "running"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", m.Name, state, joined(m.Addresses))
	}
	if len(s.Balancers) > 0 {
		fmt.Fprintf(t, "\nLOAD BALANCER RULE\tFRONTEND\tHEALTHY BACKENDS\n")
	}
	for _, b := range s.Balancers {
		fmt.Fprintf(t, "%s\t%s %s\t%d of %d: %s\n", b.Rule, strings.ToLower(b.Protocol), b.Frontend, len(b.Healthy), len(b.Backends),
			joined(b.Healthy))
	}
	return t.Flush()
}

// joined returns addresses separated by spaces.
func joined(addresses []netip.Addr) string {
	var words []string
	for _, a := range addresses {
		words = append(words, a.String())
	}
	return strings.Join(words, " ")
}

// status returns the status of the cluster.
func (c *cluster) status(ctx context.Context) (Status, error) {
	s := Status{
		Dir: c.group.Dir(), UpPID: os.Getpid(), ARM: c.azure.Info().ARM, DNS: c.azure.Info().DNS, Subscription: c.azure.Info().Subscription,
		Kubeconfig: c.kubeconfig(), CloudConfig: c.path(cloudConfigFile), Environment: c.path(environmentFile),
		Kubectl: c.binaries[controlplane.Kubectl], Without: c.Without, NodesKind: c.NodesKind, Example: c.example,
	}
	err := c.nodes.describe(ctx, &s)
	return s, err
}

// describeSite adds the cluster beside a control plane of this machine to a status.
func (c *cluster) describeSite(s *Status) {
	s.Server, s.Metrics = c.controlPlane.Server, "https://"+c.record.Health+"/metrics"
	s.ClusterName, s.ScaleSets = c.record.Site.ClusterName, c.record.Site.ScaleSets
}

// describeMachines adds the machines to a status.
func (c *cluster) describeMachines(ctx context.Context, s *Status) error {
	machines, err := c.machines(ctx)
	s.networkStatus = newNetworkStatus(machines, nil)
	return err
}
