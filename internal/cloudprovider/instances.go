package cloudprovider

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/nodes"
	"kaz/internal/reconcile"
)

// instances tells Kubernetes of its nodes' machines. It reads whole scale sets, so
// that a thousand nodes cost as many reads as one.
type instances struct {
	group  azure.ID
	region string
	grace  time.Duration
	door   reconcile.Azure

	mu    sync.Mutex
	fresh map[string]time.Time // when a scope was last read past the cache
}

var _ framework.InstancesV2 = (*instances)(nil)

func newInstances(c Config, door reconcile.Azure) *instances {
	return &instances{
		group:  azure.GroupID(c.Subscription, c.ResourceGroup),
		region: c.Location, grace: c.NotFoundGrace, door: door,
		fresh: map[string]time.Time{},
	}
}

// recently is how old a reading may be on which it is decided that a machine is
// gone or off. It bounds the reads of a scale set's list however many of its nodes
// are asked about.
const recently = 4 * time.Second

// InstanceExists reports whether the node's machine is in Azure. Nodes that are
// not Azure's are said to exist: they are not ours to remove.
func (i *instances) InstanceExists(ctx context.Context, node *corev1.Node) (bool, error) {
	if !managed(node) {
		return true, nil
	}
	_, found, err := i.find(ctx, node, i.readerFor(node))
	if err != nil || found {
		return found, err
	}
	young := i.grace > 0 && !node.CreationTimestamp.IsZero() && time.Since(node.CreationTimestamp.Time) < i.grace
	return young, nil
}

// InstanceShutdown reports whether the node's machine is off.
func (i *instances) InstanceShutdown(ctx context.Context, node *corev1.Node) (bool, error) {
	if !managed(node) {
		return false, nil
	}
	m, found, err := i.find(ctx, node, i.readerFor(node))
	return found && m.Off(), err
}

// InstanceMetadata describes the node's machine; an unmanaged node has nothing to
// be told.
func (i *instances) InstanceMetadata(ctx context.Context, node *corev1.Node) (*framework.InstanceMetadata, error) {
	if !managed(node) {
		return &framework.InstanceMetadata{ProviderID: node.Spec.ProviderID}, nil
	}
	m, found, err := i.find(ctx, node, i.door)
	if err == nil && !found {
		m, found, err = i.find(ctx, node, i.readerFor(node))
	}
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("machine of node %s: %w", node.Name, framework.InstanceNotFound)
	}
	d, err := nodes.Describe(m, node.Name, i.region)
	if err != nil {
		return nil, fmt.Errorf("machine of node %s: %w", node.Name, err)
	}
	return &framework.InstanceMetadata{
		ProviderID: d.ProviderID, InstanceType: d.InstanceType, NodeAddresses: d.Addresses,
		Zone: d.Zone, Region: d.Region,
	}, nil
}

func (i *instances) find(ctx context.Context, node *corev1.Node, r azure.Reader) (nodes.Machine, bool, error) {
	ref := nodes.Ref{Name: node.Name, ProviderID: node.Spec.ProviderID}
	have, err := reconcile.Gather(ctx, r, func(have plan.Snapshot) reconcile.Needs {
		ids, lists := nodes.Needs(have, i.group, ref)
		return reconcile.Needs{Resources: ids, Lists: lists}
	})
	if err != nil {
		return nodes.Machine{}, false, fmt.Errorf("machine of node %s: %w", node.Name, err)
	}
	return nodes.Find(have, i.group, ref)
}

// readerFor reads past the cache, unless that was done for the same scale set just
// now: then the cache holds what was read.
func (i *instances) readerFor(node *corev1.Node) azure.Reader {
	scope := string(i.group)
	if id, ok := nodes.MachineID(node.Spec.ProviderID); ok {
		scope = id.TopLevel().Key()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	if now.Sub(i.fresh[scope]) < recently {
		return i.door
	}
	i.fresh[scope] = now
	return i.door.Fresh()
}

// managed reports whether the node's machine is one that we look after.
func managed(node *corev1.Node) bool {
	if strings.EqualFold(node.Labels["kubernetes.azure.com/managed"], "false") {
		return false
	}
	return node.Spec.ProviderID == "" || nodes.Managed(node.Spec.ProviderID)
}
