package local

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"kaz/internal/azure"
	"kaz/internal/local/controlplane"
)

// machine is a virtual machine as far as a kubelet in it would matter.
type machine struct {
	ID      azure.ID
	Name    string // of its Node: the computer name in lower case
	Running bool
	// Since changes with every start of the machine.
	Since string
	// Abrupt is set where the machine lost its power without being told to shut down.
	Abrupt bool
	// NICs are its network interfaces, the primary one first, and Addresses those of the
	// primary one, the primary one of each family first.
	NICs      []azure.ID
	Addresses []netip.Addr
	VCPUs     int
	Memory    int64 // bytes
}

// uninitialized is the taint that a kubelet with an external cloud provider
// registers with, and that the cloud provider takes off.
var uninitialized = corev1.Taint{
	Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule,
}

// registrar stands in for the kubelets of machines without one: it registers a
// Node for each running machine, and marks the Node for KWOK, which keeps its
// lease and its pods, as long as the machine runs.
type registrar struct {
	client   kubernetes.Interface
	group    azure.ID // of the cluster
	machines func(context.Context) ([]machine, error)
	changed  <-chan struct{}       // something happened to machines
	listed   func([]machine) error // is told of the machines each time
	log      *slog.Logger
}

// recheck is how often the Nodes are compared with the machines when nothing was
// heard of: it repairs what somebody did to the Nodes.
const recheck = 10 * time.Second

// Run registers Nodes until ctx is done.
func (r registrar) Run(ctx context.Context) error {
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	for {
		if err := r.sync(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("nodes not in step with their machines", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-r.changed:
		}
	}
}

func (r registrar) sync(ctx context.Context) error {
	machines, err := r.machines(ctx)
	if err != nil {
		return fmt.Errorf("list machines: %w", err)
	}
	if err := r.listed(machines); err != nil {
		return err
	}
	nodes, err := r.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	register, simulate := compare(machines, nodes.Items)
	for _, m := range register {
		_, err := r.client.CoreV1().Nodes().Create(ctx, newNode(m, r.group), metav1.CreateOptions{})
		switch {
		case apierrors.IsAlreadyExists(err): // the list was a little old
		case err != nil:
			return fmt.Errorf("register node %s: %w", m.Name, err)
		default:
			r.log.Info("node registered", "node", m.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(simulate)) {
		if err := r.mark(ctx, name, simulate[name]); err != nil {
			return err
		}
		r.log.Info("machine of a node changed", "node", name, "running", simulate[name])
	}
	return nil
}

// compare says which machines need a Node, and for which Nodes the simulation has
// to start (true) or end (false). A Node without a machine is left alone but for
// its simulation: removing it is the cloud provider's part.
func compare(machines []machine, nodes []corev1.Node) (register []machine, simulate map[string]bool) {
	simulate = map[string]bool{}
	running := map[string]bool{}
	known := map[string]bool{}
	for _, n := range nodes {
		known[n.Name] = true
	}
	for _, m := range machines {
		running[m.Name] = m.Running
		if m.Running && !known[m.Name] {
			register = append(register, m)
		}
	}
	for _, n := range nodes {
		_, marked := n.Labels[controlplane.SimulatedLabel]
		_, ours := n.Annotations[registeredBy]
		if ours && marked != running[n.Name] {
			simulate[n.Name] = running[n.Name]
		}
	}
	return register, simulate
}

// registeredBy marks the Nodes that this package registered: a real kubelet's
// Node is nobody else's business.
const registeredBy = "kaz.dev/registered-by"

// groupLabel says of a Node that its machine is in another resource group than the
// cluster. Who installs such a machine has its kubelet say so.
const groupLabel = "kubernetes.azure.com/resource-group"

// labels are those that the machine's kubelet is told to give its Node.
func (m machine) labels(cluster azure.ID) map[string]string {
	if group := m.ID.Group(); !strings.EqualFold(group, cluster.Group()) {
		return map[string]string{groupLabel: strings.ToLower(group)}
	}
	return nil
}

func newNode(m machine, cluster azure.ID) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(m.VCPUs), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(m.Memory, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(110, resource.DecimalSI),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
	labels := map[string]string{
		controlplane.SimulatedLabel: "true",
		corev1.LabelHostname:        m.Name,
		corev1.LabelOSStable:        "linux",
		corev1.LabelArchStable:      "amd64",
	}
	maps.Copy(labels, m.labels(cluster))
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        m.Name,
			Annotations: map[string]string{registeredBy: "kaz local"},
			Labels:      labels,
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{uninitialized}},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: m.Name}},
		},
	}
}

func (r registrar) mark(ctx context.Context, name string, simulated bool) error {
	value := "null"
	if simulated {
		value = `"true"`
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, controlplane.SimulatedLabel, value)
	_, err := r.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("mark node %s: %w", name, err)
	}
	return nil
}
