package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/local/controlplane"
	"kaz/internal/local/process"
)

// Status is what there is to know of a cluster that is up.
type Status struct {
	Dir          string   `json:"dir"`
	UpPID        int      `json:"upPID"` // of the kaz local up that runs it
	Server       string   `json:"server"`
	ARM          string   `json:"arm"`
	Metrics      string   `json:"metrics"` // of the cloud-controller-manager
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
	// networkStatus is that of a cluster with real nodes.
	networkStatus
	Components []Component `json:"components"`
}

// Component is one process of a cluster.
type Component struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Running bool   `json:"running"`
	Log     string `json:"log,omitempty"`
}

// ErrDown says that there is no running cluster in a directory.
var ErrDown = errors.New("no cluster is up")

// ReadStatus tells of the cluster that is up in dir; [ErrDown] when none is.
func ReadStatus(dir string) (Status, error) {
	var s Status
	owner, running := process.Owner(dir)
	data, err := os.ReadFile(filepath.Join(dir, statusFile))
	if !running || errors.Is(err, os.ErrNotExist) {
		return s, fmt.Errorf("%w in %s; start one with: kaz local up --dir %s", ErrDown, dir, dir)
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
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

// Write prints the status for a person.
func (s Status) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"directory", s.Dir},
		{"Kubernetes", s.Server},
		{"Azure", s.ARM},
		{"metrics", s.Metrics},
		{"kubeconfig", s.Kubeconfig},
		{"azure.json", s.CloudConfig},
		{"environment", s.Environment},
		{"scale sets", strings.Join(s.ScaleSets, ", ")},
		{"nodes", s.NodesKind},
	} {
		fmt.Fprintf(t, "%s\t%s\n", line[0], line[1])
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
		fmt.Fprintf(t, "%s\t%s\t%s\n", m.Name, state, listed(m.Addresses))
	}
	if len(s.Balancers) > 0 {
		fmt.Fprintf(t, "\nLOAD BALANCER RULE\tFRONTEND\tHEALTHY BACKENDS\n")
	}
	for _, b := range s.Balancers {
		fmt.Fprintf(t, "%s\t%s %s\t%d of %d: %s\n", b.Rule, strings.ToLower(b.Protocol), b.Frontend, len(b.Healthy), len(b.Backends), listed(b.Healthy))
	}
	return t.Flush()
}

func listed(addresses []netip.Addr) string {
	var words []string
	for _, a := range addresses {
		words = append(words, a.String())
	}
	return strings.Join(words, " ")
}

// status describes the cluster as it is now.
func (c *cluster) status(ctx context.Context, binaries controlplane.Binaries) Status {
	s := Status{
		Dir: c.group.Dir(), UpPID: os.Getpid(), Server: c.plane.Server, ARM: c.azure.Info().ARM,
		Metrics:    "https://" + c.memory.Health + "/metrics",
		Kubeconfig: c.path(kubeconfigFile), CloudConfig: c.path(cloudConfigFile), Environment: c.path(environmentFile),
		Kubectl: binaries[controlplane.Kubectl], ClusterName: c.memory.Site.ClusterName, ScaleSets: c.memory.Site.ScaleSets, Subscription: c.memory.Site.Subscription,
		Without: c.Without, NodesKind: c.NodesKind, Example: c.greeting,
	}
	if c.real() {
		s.networkStatus = c.networkStatus(ctx, nil)
	}
	return s
}

// nodesWithin bounds the wait for so many nodes: what is not ready by then is a
// reason to look into the logs.
func nodesWithin(nodes int) time.Duration {
	return 2*time.Minute + time.Duration(nodes)*200*time.Millisecond
}

// awaitNodes waits until each running machine has a Node that can take pods. Where
// a component that makes them so was left out, there is nothing to wait for.
func (c *cluster) awaitNodes(ctx context.Context) error {
	if len(c.Without) > 0 {
		return nil
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	machines, err := c.azure.machines(ctx)
	if err != nil {
		return err
	}
	within := nodesWithin(len(machines))
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not ready within %s; the reason is in %s", within, c.path("logs")))
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err == nil {
			machines, err := c.azure.machines(ctx)
			if err != nil {
				return err
			}
			if allUsable(machines, nodes.Items) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case p := <-c.group.Failed():
			if !isMachine(p) {
				return fmt.Errorf("%s has ended: %w", p.Name(), p.Err())
			}
		case <-tick.C:
		}
	}
}

// allUsable reports whether each running machine has a Node that is Ready and that
// the cloud provider has initialized.
func allUsable(machines []machine, nodes []corev1.Node) bool {
	usable := map[string]bool{}
	for _, n := range nodes {
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		fresh := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == uninitialized.Key })
		usable[n.Name] = ready && !fresh
	}
	return !slices.ContainsFunc(machines, func(m machine) bool { return m.Running && !usable[m.Name] })
}
