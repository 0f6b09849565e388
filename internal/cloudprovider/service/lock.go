package service

import (
	"context"
	"slices"
	"sync"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/reconcile"
)

// writeLock is on the load balancers that Azure does not let be written now, because kaz writes a
// scale set that has machines in their pools, or will have.
type writeLock struct {
	mu      sync.Mutex     // never held while waiting
	writes  map[string]int // how many such writes are under way, by id key of the load balancer
	waiting []func()       // what is done when there are none
}

// lock locks the load balancers of a scale set while it is written, until unlock.
func (l *writeLock) lock(scaleSet azure.Document) (unlock func()) {
	balancers := balancersOf(scaleSet)
	l.count(balancers, 1)
	return func() {
		for _, do := range l.count(balancers, -1) {
			do()
		}
	}
}

// count counts writes, and returns what waits no more.
func (l *writeLock) count(balancers []string, more int) (then []func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writes == nil {
		l.writes = map[string]int{}
	}
	for _, lb := range balancers {
		if l.writes[lb] += more; l.writes[lb] == 0 {
			delete(l.writes, lb)
		}
	}
	if len(l.writes) == 0 {
		then, l.waiting = l.waiting, nil
	}
	return then
}

func (l *writeLock) has(lb azure.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes[lb.Key()] > 0
}

// after has something done as soon as no load balancer is locked, and reports whether one is.
func (l *writeLock) after(do func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.writes) == 0 {
		return false
	}
	l.waiting = append(l.waiting, do)
	return true
}

// commitClient is the ARM client of commits. It writes no members of pools, and answers for Azure
// that a locked load balancer is busy.
type commitClient struct {
	reconcile.Azure
	lock *writeLock
}

// Begin implements [azure.Writer].
func (g commitClient) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	if decision.IsMember(r.ID) {
		return nil, &azure.Error{Kind: azure.Internal, Op: r.Op(), ID: r.ID, Message: "a commit writes members of pools in its turn only"}
	}
	if r.Verb == azure.Put && g.lock.has(r.ID) {
		return nil, &azure.Error{Kind: azure.Busy, Op: r.Op(), ID: r.ID, Message: "a scale set in its backend pools is being written"}
	}
	return g.Azure.Begin(ctx, r)
}

// balancersOf are the load balancers with pools that a scale set's model is in, by id key.
func balancersOf(scaleSet azure.Document) []string {
	r, err := azure.Decode[compute.ScaleSet](scaleSet)
	if err != nil {
		return nil // the planner has made it
	}
	var keys []string
	for _, id := range azure.References(r.Properties) {
		if lb := id.Parent(); lb.Is(network.LoadBalancers) && !slices.Contains(keys, lb.Key()) {
			keys = append(keys, lb.Key())
		}
	}
	return keys
}
