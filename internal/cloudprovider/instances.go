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

// Labels that assign a node to a cluster.
const (
	labelManaged = "kubernetes.azure.com/managed"
	labelGroup   = "kubernetes.azure.com/resource-group"
)

// instances implements InstancesV2 for all kinds of machines: instances of Uniform scale sets, and
// virtual machines alone, in availability sets and in Flexible scale sets. It reads lists, so that a
// thousand nodes cost as many reads as one. It reads single machines if only a few may be gone.
type instances struct {
	subscription string
	group        azure.ID // of nodes without a resource group label
	region       string
	grace        time.Duration
	cache        *machineCache
	events       *machineEvents
}

var _ framework.InstancesV2 = (*instances)(nil)

func newInstances(c Config, client reconcile.Azure) *instances {
	reads := newMachineCache(client)
	reads.always = c.Uncached
	return &instances{
		subscription: c.Subscription, group: azure.GroupID(c.Subscription, c.ResourceGroup),
		region: c.Location, grace: c.NotFoundGrace, cache: reads, events: newMachineEvents(),
	}
}

// InstanceExists reports whether the node's machine is in Azure. It returns true for nodes outside
// Azure, so that they are not deleted.
func (i *instances) InstanceExists(ctx context.Context, node *corev1.Node) (bool, error) {
	if !Managed(node) {
		return true, nil
	}
	there, _, err := i.state(ctx, node)
	if err != nil || there {
		return there, err
	}
	young := i.grace > 0 && !node.CreationTimestamp.IsZero() && time.Since(node.CreationTimestamp.Time) < i.grace
	return young, nil
}

// InstanceShutdown reports whether the node's machine is stopped permanently.
func (i *instances) InstanceShutdown(ctx context.Context, node *corev1.Node) (bool, error) {
	if !Managed(node) {
		return false, nil
	}
	there, off, err := i.state(ctx, node)
	return there && off, err
}

// InstanceMetadata describes the node's machine. It returns nothing for an unmanaged node. A list of
// the last minute is enough, unless it lacks the machine or the machine is not ready.
func (i *instances) InstanceMetadata(ctx context.Context, node *corev1.Node) (*framework.InstanceMetadata, error) {
	if !Managed(node) {
		return &framework.InstanceMetadata{ProviderID: node.Spec.ProviderID}, nil
	}
	m, err := i.describe(ctx, node, freshness{age: time.Minute, wait: longWait})
	if err != nil && !fromAzure(err) {
		m, err = i.describe(ctx, node, freshness{age: recently, after: node.CreationTimestamp.Time, wait: longWait})
	}
	i.events.about(node, err)
	return m, err
}

func (i *instances) describe(ctx context.Context, node *corev1.Node, y freshness) (*framework.InstanceMetadata, error) {
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

// state reports whether the node's machine exists and whether it is off. A missing machine counts
// only in a list that is newer than the node.
func (i *instances) state(ctx context.Context, node *corev1.Node) (there, off bool, err error) {
	y := freshness{age: allowance(node, time.Now()), wait: shortWait}
	there, off, err = i.stateOfNode(ctx, node, y)
	if err == nil && !there {
		y.after = node.CreationTimestamp.Time
		there, off, err = i.stateOfNode(ctx, node, y)
	}
	if _, known := nodes.MachineID(node.Spec.ProviderID); err == nil && !there && !known {
		y.after = time.Now().Add(1) // reads that begin from now on must not find it either
		there, off, err = i.stateOfNode(ctx, node, y)
	}
	if err != nil {
		err = fmt.Errorf("machine of node %s: %w", node.Name, err)
	}
	return there, off, err
}

func (i *instances) stateOfNode(ctx context.Context, node *corev1.Node, y freshness) (there, off bool, err error) {
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

// expect starts to read the machine of a node that became not ready, because the framework asks about
// it soon. It does not wait for the result.
func (i *instances) expect(node *corev1.Node) {
	if machine, known := nodes.MachineID(node.Spec.ProviderID); known && Managed(node) {
		// The result and the error stay in the cache.
		_, _, _ = i.stateOf(context.Background(), machine, freshness{age: recently})
	}
}

// watch returns a handler that calls expect for nodes that become not ready.
func (i *instances) watch() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{UpdateFunc: func(was, is any) {
		before, ok1 := was.(*corev1.Node)
		now, ok2 := is.(*corev1.Node)
		if ok1 && ok2 && isReady(before) && !isReady(now) {
			i.expect(now)
		}
	}}
}

// stateOf reads one machine, or its list if the framework asks about many. A machine counts as gone
// only if two reads lack it: a replica of Azure's that lags behind answers 404 or lists too little.
func (i *instances) stateOf(ctx context.Context, machine azure.ID, y freshness) (there, off bool, err error) {
	list, ok := nodes.ListWith(machine)
	if !ok {
		return false, false, fmt.Errorf("error splitting providerID: %s is no virtual machine", machine)
	}
	view := nodes.ViewOf(machine)
	l, seen := i.cache.cached(list, y), i.cache.cached(view, y)
	if seen != nil {
		there, _ = seen.Runs()
	}
	if l == nil && (seen != nil || i.cache.mayReadAlone(list, machine)) {
		if seen, err = i.cache.get(ctx, view, y); err != nil {
			return false, false, err
		}
		if there, off = seen.Runs(); there {
			return there, off, nil
		}
	}
	twice := y
	if seen == nil || there { // no other read says already that the machine is gone
		twice.lacks = func(l *nodes.Listing) bool { there, _, _ := l.Has(machine); return !there }
	}
	if l, err = i.cache.get(ctx, list, twice); err != nil {
		return false, false, err
	}
	there, off, known := l.Has(machine)
	if !there || known {
		return there, off, nil
	}
	if seen, err = i.cache.get(ctx, view, y); err != nil {
		return false, false, err
	}
	_, off = seen.Runs()
	return true, off, nil
}

// locate returns the machine of a node without a provider id, or nil.
func (i *instances) locate(ctx context.Context, node *corev1.Node, y freshness) (vm *azure.Resource[compute.Instance], err error) {
	ref := nodes.Ref{Name: node.Name, ProviderID: node.Spec.ProviderID}
	err = i.gather(ctx, y, func(known nodes.Known) (unread []azure.Query, err error) {
		vm, unread, err = nodes.Locate(known, i.groupOf(node), ref)
		return unread, err
	})
	return vm, err
}

// gather repeats step until it needs no further reads. The reads of one step run in parallel.
func (i *instances) gather(ctx context.Context, y freshness, step func(known nodes.Known) ([]azure.Query, error)) error {
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
				listings[n], err = i.cache.get(ctx, q, y)
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

// groupOf returns the resource group of a node's machine.
func (i *instances) groupOf(node *corev1.Node) azure.ID {
	if group := node.Labels[labelGroup]; group != "" && !strings.EqualFold(group, i.group.Group()) {
		return azure.GroupID(i.subscription, strings.ToLower(group))
	}
	return i.group
}

// allowance returns the maximum age of an answer. It is short for a node that just became not ready.
// A node that has not been ready for long, or has just started, can wait.
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

// isReady reports whether the node has the condition Ready.
func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Managed reports whether kaz manages the node.
func Managed(node *corev1.Node) bool {
	if strings.EqualFold(node.Labels[labelManaged], "false") {
		return false
	}
	return node.Spec.ProviderID == "" || nodes.Managed(node.Spec.ProviderID)
}

// settledInstances answers questions about ready nodes from the nodes themselves, without reads.
// Changes of a machine show when its node restarts.
type settledInstances struct{ *instances }

// InstanceMetadata implements [framework.InstancesV2].
func (s settledInstances) InstanceMetadata(ctx context.Context, node *corev1.Node) (*framework.InstanceMetadata, error) {
	if !Managed(node) || !settled(node) {
		return s.instances.InstanceMetadata(ctx, node)
	}
	return &framework.InstanceMetadata{
		ProviderID: node.Spec.ProviderID, InstanceType: node.Labels[corev1.LabelInstanceTypeStable],
		NodeAddresses: node.DeepCopy().Status.Addresses,
		Zone:          node.Labels[corev1.LabelTopologyZone], Region: node.Labels[corev1.LabelTopologyRegion],
	}, nil
}

// settled reports whether a node is ready and completely described.
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

// fromAzure reports whether Azure or the caller caused the error, and not the machine.
func fromAzure(err error) bool {
	_, azures := errors.AsType[*azure.Error](err)
	return azures || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
