// Package hollow registers a Node for each running virtual machine of a local Azure and lets KWOK simulate its kubelet.
// Layer L4.
package hollow

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	cloudprovider "k8s.io/cloud-provider/api"

	"kaz/internal/azure"
	"kaz/internal/localazure/inventory"
	"kaz/internal/localcluster/controlplane"
)

// Registrar registers a Node for each running machine, as the kubelet of the machine would. It labels the Node for KWOK,
// which renews its lease and runs its pods, as long as the machine runs.
type Registrar struct {
	Client   kubernetes.Interface
	Group    azure.ID // resource group of the cluster
	Machines func(context.Context) ([]inventory.Machine, error)
	Changed  <-chan struct{} // receives a value after changes of machines
	// Listed is called with all machines in each round.
	Listed func([]inventory.Machine) error
	Log    *slog.Logger
}

// resyncInterval is the interval of rounds without a change. It repairs manual changes of Nodes.
const resyncInterval = 10 * time.Second

// Run registers Nodes until ctx is done.
func (r Registrar) Run(ctx context.Context) error {
	tick := time.NewTicker(resyncInterval)
	defer tick.Stop()
	for {
		if err := r.sync(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("nodes differ from machines", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-r.Changed:
		}
	}
}

func (r Registrar) sync(ctx context.Context) error {
	machines, err := r.Machines(ctx)
	if err != nil {
		return fmt.Errorf("list machines: %w", err)
	}
	if err := r.Listed(machines); err != nil {
		return err
	}
	nodes, err := r.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	register, simulate := compare(machines, nodes.Items)
	for _, m := range register {
		_, err := r.Client.CoreV1().Nodes().Create(ctx, newNode(m, r.Group), metav1.CreateOptions{})
		switch {
		case apierrors.IsAlreadyExists(err): // the list was stale
		case err != nil:
			return fmt.Errorf("register node %s: %w", m.Name, err)
		default:
			r.Log.Info("node registered", "node", m.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(simulate)) {
		if err := r.mark(ctx, name, simulate[name]); err != nil {
			return err
		}
		r.Log.Info("machine of a node changed", "node", name, "running", simulate[name])
	}
	return nil
}

// compare returns the machines that need a Node, and the Nodes of which the simulation must start (true) or end (false). The
// cloud provider, not this function, removes a Node without a machine.
func compare(machines []inventory.Machine, nodes []corev1.Node) (register []inventory.Machine, simulate map[string]bool) {
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

// registeredBy is the annotation of Nodes that this package registered. It leaves all other Nodes unchanged.
const registeredBy = "kaz.dev/registered-by"

// newNode returns the Node that a kubelet with an external cloud provider would register.
func newNode(m inventory.Machine, cluster azure.ID) *corev1.Node {
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
	maps.Copy(labels, m.NodeLabels(cluster))
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        m.Name,
			Annotations: map[string]string{registeredBy: "kaz local"},
			Labels:      labels,
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{
			{Key: cloudprovider.TaintExternalCloudProvider, Value: "true", Effect: corev1.TaintEffectNoSchedule},
		}},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: m.Name}},
		},
	}
}

// mark sets or removes the label by which KWOK simulates a Node.
func (r Registrar) mark(ctx context.Context, name string, simulated bool) error {
	value := "null"
	if simulated {
		value = `"true"`
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, controlplane.SimulatedLabel, value)
	_, err := r.Client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("mark node %s: %w", name, err)
	}
	return nil
}
