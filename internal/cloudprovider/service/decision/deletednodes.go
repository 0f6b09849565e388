package decision

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/nodes"
)

// DeletedNodes are the machines without a Node: this process saw the Node deleted. They are
// remembered until there is a Node again or the machine is gone, because Azure does not know
// them: to it they are like instances that are just made and will get a Node.
type DeletedNodes struct {
	mu       sync.Mutex
	machines map[string]azure.ID // by id key
}

// deletedAtMost is more machines than a cluster has. While nothing is decided, nothing finds out
// which of them are gone.
const deletedAtMost = 10_000

// Add notes that a Node was deleted.
func (d *DeletedNodes) Add(n *corev1.Node) {
	id, is := nodes.MachineID(n.Spec.ProviderID)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !is || len(d.machines) >= deletedAtMost {
		return
	}
	if d.machines == nil {
		d.machines = map[string]azure.ID{}
	}
	d.machines[id.Key()] = id
}

// among are those that are known, sorted. Those that have one of these Nodes again are
// forgotten.
func (d *DeletedNodes) among(all []*corev1.Node) []azure.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.machines) == 0 {
		return nil
	}
	for _, n := range all {
		if id, is := nodes.MachineID(n.Spec.ProviderID); is {
			delete(d.machines, id.Key())
		}
	}
	return slices.Sorted(maps.Values(d.machines))
}

// ForgetGone forgets those that a decision knew of and did not find in Azure.
func (d *DeletedNodes) ForgetGone(in loadbalancer.Input) error {
	if len(in.DeletedNodes) == 0 {
		return nil
	}
	exists, err := loadbalancer.Machines(in)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range in.DeletedNodes {
		if !exists[id.Key()] {
			delete(d.machines, id.Key())
		}
	}
	return nil
}
