package service

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/nodes"
)

// nodeless are the machines whose Node this process saw deleted, until one is there again
// or the machine is gone. Azure does not know them: to it they are like instances that are
// just made, whose Node is still to come.
type nodeless struct {
	mu       sync.Mutex
	machines map[string]azure.ID // by id key
}

// mostNodeless is more machines than a cluster has. While nothing is decided, nobody finds
// out which of them are gone.
const mostNodeless = 10_000

// lost notes that a Node was deleted.
func (l *nodeless) lost(object any) {
	id, is := machineIn(object)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !is || len(l.machines) >= mostNodeless {
		return
	}
	if l.machines == nil {
		l.machines = map[string]azure.ID{}
	}
	l.machines[id.Key()] = id
}

func machineIn(object any) (azure.ID, bool) {
	n, ok := subject[*corev1.Node](object)
	if !ok {
		return "", false
	}
	return nodes.MachineID(n.Spec.ProviderID)
}

// among are those that are known, in an order that does not change. Those that have one of
// these Nodes again are forgotten.
func (l *nodeless) among(all []*corev1.Node) []azure.ID {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.machines) == 0 {
		return nil
	}
	for _, n := range all {
		if id, is := machineIn(n); is {
			delete(l.machines, id.Key())
		}
	}
	return slices.Sorted(maps.Values(l.machines))
}

// forgetGone forgets those that a decision knew of and did not find in Azure.
func (l *nodeless) forgetGone(in loadbalancer.Input) error {
	if len(in.Nodeless) == 0 {
		return nil
	}
	there, err := loadbalancer.Machines(in)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range in.Nodeless {
		if !there[id.Key()] {
			delete(l.machines, id.Key())
		}
	}
	return nil
}
