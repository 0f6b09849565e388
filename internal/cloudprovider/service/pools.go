package service

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/controller"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/reconcile"
)

// poolWriter owns the members of the pools of network interfaces. Whoever writes them takes its turn
// and gets a client for that; no other client writes members.
//
// They are written beside the commits: it takes minutes where there are many machines, and no
// Service needs to wait for all of them. A Service at a load balancer without a member waits for
// the first. A commit takes the turn only where a load balancer goes, because its members leave
// first.
//
// One write runs after the other. What is asked for during a write is done by the next, though a
// Service that waits for the first member of a pool that is being filled waits for the write
// under way.
type poolWriter struct {
	decision.Cluster
	azure    reconcile.Azure
	listener poolListener
	lock     writeLock
	turn     *semaphore.Weighted

	work     sync.WaitGroup
	failures int                   // in a row; it belongs to the running write
	busy     controller.BusyFilter // of these failures, too
	reported atomic.Bool           // one of these failures was reported

	mu      sync.Mutex // guards what follows; never held while waiting
	running bool
	current *poolWrite // that is under way
	next    *poolWrite // nil when none is asked for
}

func newPoolWriter(c decision.Cluster, client reconcile.Azure, l poolListener) *poolWriter {
	return &poolWriter{Cluster: c, azure: client, listener: l, turn: semaphore.NewWeighted(1)}
}

// take waits for the turn to write members. The client writes them until release.
func (p *poolWriter) take(ctx context.Context, w *poolWrite) (client memberClient, release func(), err error) {
	err = p.turn.Acquire(ctx, 1)
	return memberClient{p.azure, w, &p.lock}, func() { p.turn.Release(1) }, err
}

// poolListener gets the results of pool writes.
type poolListener interface {
	poolsFailed(services []loadbalancer.Service, err error, failures int, report bool)
	poolsRecovered(services []loadbalancer.Service)
	poolsWritten(services []loadbalancer.Service)
}

// poolWrite is one write of the members of all pools.
type poolWrite struct {
	begun chan struct{} // closed when a member has joined, or none will
	// empty are the load balancers that had no member when the write was asked for, by id
	// key.
	empty    map[string]bool
	services map[types.UID]loadbalancer.Service // of the commits that asked for it
	err      error                              // why no member has joined; to be read when begun is closed
	wrote    atomic.Bool                        // a member has joined or left
	gone     sync.Map                           // instances that Azure did not find, by id key

	once sync.Once
}

func newPoolWrite() *poolWrite {
	return &poolWrite{begun: make(chan struct{}), empty: map[string]bool{}, services: map[types.UID]loadbalancer.Service{}}
}

func (w *poolWrite) begin(err error) {
	w.once.Do(func() {
		w.err = err
		close(w.begun)
	})
}

// wait waits for the first member. Where there is no write there is nothing to wait for.
func (w *poolWrite) wait(ctx context.Context) error {
	if w == nil {
		return nil
	}
	select {
	case <-w.begun:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start has the pools written as a decision about these Services says. It returns the write that
// brings the first member to a load balancer.
func (p *poolWriter) start(ctx context.Context, services []loadbalancer.Service, empty emptyPools) func(lb string) *poolWrite {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = newPoolWrite()
	}
	for lb := range empty {
		p.next.empty[lb] = true
	}
	for _, s := range services { // deleted ones, too: a decision about no Service decides nothing
		p.next.services[s.UID] = s
	}
	current, next := p.current, p.next
	if !p.running {
		p.running = true
		p.work.Go(func() { p.run(ctx) })
	}
	return func(lb string) *poolWrite {
		if current != nil && current.empty[lb] {
			return current
		}
		return next
	}
}

// run does what is asked for until nothing is.
func (p *poolWriter) run(ctx context.Context) {
	for write := p.begin(); write != nil; write = p.begin() {
		services := slices.Collect(maps.Values(write.services))
		err := p.converge(ctx, write, services)
		write.begin(err)
		switch {
		case err == nil:
			if p.reported.Swap(false) {
				p.listener.poolsRecovered(services)
			}
			if write.wrote.Load() {
				p.listener.poolsWritten(services)
			}
			p.failures, p.busy = 0, controller.BusyFilter{}
		case ctx.Err() == nil:
			report := p.busy.Passes(err)
			p.failures++
			if report {
				p.reported.Store(true)
			}
			p.listener.poolsFailed(services, err, p.failures, report)
		}
	}
}

// begin is the write to do, nil when there is none.
func (p *poolWriter) begin() *poolWrite {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current, p.next = p.next, nil
	p.running = p.current != nil
	return p.current
}

func (p *poolWriter) converge(ctx context.Context, write *poolWrite, services []loadbalancer.Service) error {
	client, release, err := p.take(ctx, write)
	if err != nil {
		return err
	}
	defer release()
	return reconcile.Achieve(ctx, client, membersAlone{p.Target(ctx, services)})
}

// membersAlone is a decision about the members of the pools, and nothing else.
type membersAlone struct{ decision.Target }

// Decide implements [reconcile.Target].
func (m membersAlone) Decide(have plan.Snapshot) (reconcile.Decision, error) {
	d, err := m.Target.Decide(have)
	if err != nil || d.Ask != nil {
		return d, err
	}
	if slices.ContainsFunc(d.Graph.Nodes(), func(n plan.Node) bool {
		_, exists := have.Get(n.ID)
		return n.ID.Is(network.LoadBalancers) && (n.Want() == nil || !exists)
	}) {
		return reconcile.Decision{}, nil // the commit that makes or removes it sees to the members
	}
	return reconcile.Decision{Graph: d.Graph.Only(func(n plan.Node) bool { return decision.IsMember(n.ID) })}, nil
}

// memberClient is the client of the holder of the turn. It tells a pool write of the first member
// that is written, and commits which load balancers are locked meanwhile.
type memberClient struct {
	reconcile.Azure
	write *poolWrite
	lock  *writeLock
}

// Begin implements [azure.Writer].
func (m memberClient) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	if !decision.IsMember(r.ID) {
		return m.Azure.Begin(ctx, r)
	}
	op, err := azure.Around(m.Azure, m.enter).Begin(ctx, r)
	if m.skips(r, err) {
		slog.InfoContext(ctx, "instance is gone, its membership is left out", "instance", r.ID)
		return azure.Done(nil), nil
	}
	return op, err
}

// skips reports whether a failed write is left out: its instance is gone. The first failure is
// none of these, because a fresh read tells whether the instance exists. A list may show the
// instance for a while after it was deleted.
func (m memberClient) skips(r azure.Request, err error) bool {
	if !azure.IsNotFound(err) || !r.ID.Is(compute.ScaleSetInstances) {
		return false
	}
	_, again := m.write.gone.LoadOrStore(r.ID.Key(), true)
	return again
}

func (m memberClient) enter(_ context.Context, r azure.Request) (leave func(azure.Document, error), err error) {
	if r.ID.Is(compute.ScaleSets) {
		unlock := m.lock.lock(r.Body)
		return func(azure.Document, error) { unlock() }, nil
	}
	return func(_ azure.Document, err error) {
		if err == nil {
			m.write.wrote.Store(true)
			m.write.begin(nil)
		}
	}, nil
}

// emptyPools are load balancers without a member in their pools, by id key, each with the names of its
// rules in lower case.
type emptyPools map[string][]string

// of is the load balancer without a member that has rules of a Service, "" for none.
func (e emptyPools) of(s loadbalancer.Service) (found string) {
	base := framework.DefaultLoadBalancerName(s.Service)
	for lb, rules := range e {
		if slices.ContainsFunc(rules, func(name string) bool { return strings.HasPrefix(name, base) }) {
			found = max(found, lb)
		}
	}
	return found
}

func emptyBalancers(in loadbalancer.Input) emptyPools {
	empty := emptyPools{}
	// The decision has read these documents without an error.
	balancers, _ := plan.Views[network.LoadBalancer](in.Have, in.Config.NetworkGroup(), network.LoadBalancers)
	for _, lb := range balancers {
		if slices.ContainsFunc(lb.Properties.BackendAddressPools, func(p azure.Child[network.BackendAddressPool]) bool {
			return len(p.Properties.BackendIPConfigurations)+len(p.Properties.LoadBalancerBackendAddresses) > 0
		}) {
			continue
		}
		var rules []string
		for _, r := range lb.Properties.LoadBalancingRules {
			rules = append(rules, strings.ToLower(r.Name))
		}
		empty[lb.ID.Key()] = rules
	}
	return empty
}
