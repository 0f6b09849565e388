package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	framework "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/nodes"
	"kaz/internal/reconcile"
)

// Labels that say how a node belongs to the cluster.
const (
	labelManaged = "kubernetes.azure.com/managed"
	labelGroup   = "kubernetes.azure.com/resource-group"
)

// instances tells Kubernetes of its nodes' machines, of all kinds: instances of
// Uniform scale sets, and virtual machines alone, in availability sets and in
// Flexible scale sets. It reads lists that hold many machines, so that a thousand
// nodes cost as many reads as one; a few that may be gone are read one by one.
type instances struct {
	subscription string
	group        azure.ID // of nodes whose label names no other
	region       string
	grace        time.Duration
	seen         *sightings
	told         *told
}

var _ framework.InstancesV2 = (*instances)(nil)

func newInstances(c Config, door reconcile.Azure) *instances {
	seen := newSightings(door)
	seen.always = c.Uncached
	return &instances{
		subscription: c.Subscription, group: azure.GroupID(c.Subscription, c.ResourceGroup),
		region: c.Location, grace: c.NotFoundGrace, seen: seen, told: newTold(),
	}
}

// InstanceExists reports whether the node's machine is in Azure. Nodes that are
// not Azure's are said to exist: they are not ours to remove.
func (i *instances) InstanceExists(ctx context.Context, node *corev1.Node) (bool, error) {
	if !managed(node) {
		return true, nil
	}
	there, _, err := i.state(ctx, node)
	if err != nil || there {
		return there, err
	}
	young := i.grace > 0 && !node.CreationTimestamp.IsZero() && time.Since(node.CreationTimestamp.Time) < i.grace
	return young, nil
}

// InstanceShutdown reports whether the node's machine is off for good.
func (i *instances) InstanceShutdown(ctx context.Context, node *corev1.Node) (bool, error) {
	if !managed(node) {
		return false, nil
	}
	there, off, err := i.state(ctx, node)
	return there && off, err
}

// InstanceMetadata describes the node's machine; an unmanaged node has nothing to
// be told. What was read within the last minute will do, unless the machine is not
// in it, or not ready.
func (i *instances) InstanceMetadata(ctx context.Context, node *corev1.Node) (*framework.InstanceMetadata, error) {
	if !managed(node) {
		return &framework.InstanceMetadata{ProviderID: node.Spec.ProviderID}, nil
	}
	m, err := i.describe(ctx, node, young{age: time.Minute, wait: patience})
	if err != nil && !fromAzure(err) {
		m, err = i.describe(ctx, node, young{age: recently, after: node.CreationTimestamp.Time, wait: patience})
	}
	i.told.about(node, err)
	return m, err
}

func (i *instances) describe(ctx context.Context, node *corev1.Node, y young) (*framework.InstanceMetadata, error) {
	ref := nodes.Ref{Name: node.Name, ProviderID: node.Spec.ProviderID}
	var m nodes.Machine
	found := false
	err := i.gather(ctx, y, func(known nodes.Known) ([]azure.Query, error) {
		vm, unread, err := nodes.Locate(known, i.groupOf(node), ref)
		if err != nil || len(unread) > 0 {
			return nodes.WithInterfaces(unread), err
		}
		if found = vm != nil; found {
			m, unread = nodes.Complete(known, *vm)
		}
		return unread, nil
	})
	if err == nil && !found {
		err = framework.InstanceNotFound
	}
	var d nodes.Description
	if err == nil {
		d, err = nodes.Describe(m, node.Name, i.region)
	}
	if err != nil {
		return nil, fmt.Errorf("machine of node %s: %w", node.Name, err)
	}
	return &framework.InstanceMetadata{
		ProviderID: d.ProviderID, InstanceType: d.InstanceType, NodeAddresses: d.Addresses,
		Zone: d.Zone, Region: d.Region, AdditionalLabels: m.Labels(),
	}, nil
}

// state is whether the node's machine is there, and whether it is off. That it is not
// there counts only if it was seen since the node is.
func (i *instances) state(ctx context.Context, node *corev1.Node) (there, off bool, err error) {
	y := young{age: allowance(node, time.Now()), wait: glance}
	there, off, err = i.stateAsSeen(ctx, node, y)
	if err == nil && !there {
		y.after = node.CreationTimestamp.Time
		there, off, err = i.stateAsSeen(ctx, node, y)
	}
	if err != nil {
		err = fmt.Errorf("machine of node %s: %w", node.Name, err)
	}
	return there, off, err
}

func (i *instances) stateAsSeen(ctx context.Context, node *corev1.Node, y young) (there, off bool, err error) {
	machine, known := nodes.MachineID(node.Spec.ProviderID)
	if !known {
		vm, err := i.locate(ctx, node, y)
		if err != nil || vm == nil {
			return false, false, err
		}
		machine = vm.ID
	}
	return i.stateOf(ctx, machine, y)
}

// expect begins to look at the machine of a node that just fell silent: who asks
// about it in a moment finds the answer. It does not wait for anything.
func (i *instances) expect(node *corev1.Node) {
	if machine, known := nodes.MachineID(node.Spec.ProviderID); known && managed(node) {
		// The answer, and why there is none, is for who asks.
		_, _, _ = i.stateOf(context.Background(), machine, young{age: recently})
	}
}

// watch hears of nodes that fall silent.
func (i *instances) watch() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{UpdateFunc: func(was, is any) {
		before, ok1 := was.(*corev1.Node)
		now, ok2 := is.(*corev1.Node)
		if ok1 && ok2 && isReady(before) && !isReady(now) {
			i.expect(now)
		}
	}}
}

// stateOf asks about one machine, or about all of its list when many are asked
// about.
func (i *instances) stateOf(ctx context.Context, machine azure.ID, y young) (there, off bool, err error) {
	list, ok := nodes.ListWith(machine)
	if !ok {
		return false, false, fmt.Errorf("error splitting providerID: %s is no virtual machine", machine)
	}
	l := i.seen.kept(list, y)
	if l == nil && i.seen.kept(nodes.ViewOf(machine), y) == nil && !i.seen.mayReadAlone(list, machine) {
		if l, err = i.seen.see(ctx, list, y); err != nil {
			return false, false, err
		}
	}
	if l != nil {
		if there, off, told := l.Has(machine); told {
			return there, off, nil
		}
	}
	view, err := i.seen.see(ctx, nodes.ViewOf(machine), y)
	if err != nil {
		return false, false, err
	}
	there, off = view.Runs()
	return there, off, nil
}

// locate finds the machine of a node that Kubernetes knows by name only, nil for
// none.
func (i *instances) locate(ctx context.Context, node *corev1.Node, y young) (vm *azure.Resource[compute.Instance], err error) {
	ref := nodes.Ref{Name: node.Name, ProviderID: node.Spec.ProviderID}
	err = i.gather(ctx, y, func(known nodes.Known) (unread []azure.Query, err error) {
		vm, unread, err = nodes.Locate(known, i.groupOf(node), ref)
		return unread, err
	})
	return vm, err
}

// gather takes steps until one needs nothing that was not read. Those that are
// needed together are read at once.
func (i *instances) gather(ctx context.Context, y young, step func(known nodes.Known) ([]azure.Query, error)) error {
	read := map[azure.Query]*nodes.Listing{}
	for {
		unread, err := step(func(q azure.Query) *nodes.Listing { return read[q] })
		if err != nil || len(unread) == 0 {
			return err
		}
		listings := make([]*nodes.Listing, len(unread))
		var together errgroup.Group
		for n, q := range unread {
			together.Go(func() (err error) {
				listings[n], err = i.seen.see(ctx, q, y)
				return err
			})
		}
		if err := together.Wait(); err != nil {
			return err
		}
		for n, q := range unread {
			read[q] = listings[n]
		}
	}
}

// groupOf is the resource group in which a node's machine is.
func (i *instances) groupOf(node *corev1.Node) azure.ID {
	if group := node.Labels[labelGroup]; group != "" && !strings.EqualFold(group, i.group.Group()) {
		return azure.GroupID(i.subscription, strings.ToLower(group))
	}
	return i.group
}

// allowance is how old an answer may be: a node that just went silent wants a new
// one, who is silent for long, or has only just started, may wait a little.
func allowance(node *corev1.Node, now time.Time) time.Duration {
	const (
		part, most = 8, 2 * time.Minute
		starting   = time.Minute
	)
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			if c.LastTransitionTime.Sub(node.CreationTimestamp.Time) < starting && now.Sub(node.CreationTimestamp.Time) < starting {
				return starting
			}
			return min(max(now.Sub(c.LastTransitionTime.Time)/part, recently), most)
		}
	}
	return starting
}

// isReady reports whether a node says that it is.
func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// managed reports whether the node's machine is one that we look after.
func managed(node *corev1.Node) bool {
	if strings.EqualFold(node.Labels[labelManaged], "false") {
		return false
	}
	return node.Spec.ProviderID == "" || nodes.Managed(node.Spec.ProviderID)
}

// settledInstances answer for nodes that are at work from what these say of
// themselves: that costs no reads, however many there are. What is new at a machine
// shows when its node starts anew.
type settledInstances struct{ *instances }

// InstanceMetadata implements [framework.InstancesV2].
func (s settledInstances) InstanceMetadata(ctx context.Context, node *corev1.Node) (*framework.InstanceMetadata, error) {
	if !managed(node) || !settled(node) {
		return s.instances.InstanceMetadata(ctx, node)
	}
	return &framework.InstanceMetadata{
		ProviderID: node.Spec.ProviderID, InstanceType: node.Labels[corev1.LabelInstanceTypeStable],
		NodeAddresses: node.DeepCopy().Status.Addresses,
		Zone:          node.Labels[corev1.LabelTopologyZone], Region: node.Labels[corev1.LabelTopologyRegion],
	}, nil
}

// settled reports whether a node is ready and was told all that it is to be told.
func settled(node *corev1.Node) bool {
	inside := slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP })
	for _, t := range node.Spec.Taints {
		if t.Key == api.TaintExternalCloudProvider {
			return false
		}
	}
	return isReady(node) && inside && node.Spec.ProviderID != "" && node.Labels[corev1.LabelInstanceTypeStable] != "" &&
		node.Labels[corev1.LabelTopologyZone] != "" && node.Labels[corev1.LabelTopologyRegion] != ""
}

// fromAzure reports whether an error is Azure's, or of who asked, and none of the
// machine.
func fromAzure(err error) bool {
	_, azures := errors.AsType[*azure.Error](err)
	return azures || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
