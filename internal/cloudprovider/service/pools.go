package service

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/controller"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/spec"
	"kaz/internal/reconcile"
)

// poolWriter owns the members of the pools of network interfaces.
//
// It writes them beside the commits. That takes minutes for many machines, and no Service needs to wait for all of them. A
// Service at a load balancer without a member waits for the first. A commit takes the turn only if members have to leave
// before its own writes.
//
// One write runs after the other. A request that comes during a write is carried out by the next write. But if an empty
// pool is being filled, a Service waits for the first member that the current write brings.
type poolWriter struct {
	*Controller
	lock writeLock
	turn *semaphore.Weighted

	work     sync.WaitGroup
	failures int                   // in a row; it belongs to the running write
	busy     controller.BusyFilter // of these failures, too
	reported atomic.Bool           // one of these failures was reported

	mu      sync.Mutex // guards what follows; never held while waiting
	current *poolWrite // the write under way, nil for none
	next    *poolWrite // the write that is asked for meanwhile, nil for none
}

func newPoolWriter(c *Controller) *poolWriter {
	return &poolWriter{Controller: c, lock: writeLock{writes: map[string]int{}}, turn: semaphore.NewWeighted(1)}
}

// take waits for the turn to write members. The returned client may write members until release is called.
func (p *poolWriter) take(ctx context.Context, w *poolWrite) (client guardedClient, release func(), err error) {
	err = p.turn.Acquire(ctx, 1)
	return guardedClient{p.azure, &p.lock, w}, func() { p.turn.Release(1) }, err
}

// poolWrite is one write of the members of all pools.
type poolWrite struct {
	begun    chan struct{}                      // closed when a member has joined, or none will
	empty    map[string]bool                    // load balancers that had no member when it was asked for, by id key
	services map[types.UID]loadbalancer.Service // of the commits that asked for it
	err      error                              // why no member has joined; to be read when begun is closed
	wrote    atomic.Bool                        // a member has joined or left
	gone     sync.Map                           // instances that Azure did not find, by id key
	once     sync.Once
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

// wait waits for the first member. It returns at once if there is no write.
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

// start has the pools written as a decision about these Services says. The load balancers in empty have no member yet. The
// returned function tells which write brings the first member to a load balancer.
func (p *poolWriter) start(ctx context.Context, services []loadbalancer.Service, empty map[string]bool) func(lb string) *poolWrite {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = newPoolWrite()
	}
	current, next := p.current, p.next
	maps.Copy(next.empty, empty)
	for _, s := range services { // deleted ones, too: a decision about no Service decides nothing
		next.services[s.UID] = s
	}
	if current == nil {
		p.current, p.next = next, nil
		p.work.Go(func() {
			for w := next; w != nil; w = p.goOn() {
				p.write(ctx, w)
			}
		})
	}
	return func(lb string) *poolWrite {
		if current != nil && current.empty[lb] {
			return current
		}
		return next
	}
}

// goOn makes the next write the current one.
func (p *poolWriter) goOn() *poolWrite {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current, p.next = p.next, nil
	return p.current
}

// write writes the pools, and has Services tried again when members of their pools could not all join.
func (p *poolWriter) write(ctx context.Context, write *poolWrite) {
	services := slices.Collect(maps.Values(write.services))
	client, release, err := p.take(ctx, write)
	if err == nil {
		err = reconcile.Achieve(ctx, client, membersAlone{p.cluster.Target(ctx, services)})
		release()
	}
	write.begin(err)
	present := loadbalancer.Input{Services: services}.Staying()
	if err == nil {
		recovered := p.reported.Swap(false)
		for _, s := range present {
			if recovered {
				p.normal(s, eventUpdated, "")
			}
			// The security group lets packets through to leaving nodes' own addresses until the nodes have left.
			if write.wrote.Load() && spec.AtNodes(s) {
				p.queue.Mark(itemOf(s), reasons{since: time.Now()})
			}
		}
		p.failures, p.busy = 0, controller.BusyFilter{}
		return
	}
	if ctx.Err() != nil {
		return
	}
	p.failures++
	wait := controller.Delay(err, p.failures)
	slog.Warn("members of backend pools not written", "error", err, "again_in", wait)
	report := p.busy.Passes(err)
	if report {
		p.reported.Store(true)
	}
	if len(present) == 0 {
		present = p.ours() // they have the pools by now
	}
	for _, s := range present {
		if report {
			p.warn(s, eventUpdateFailed, err.Error())
		}
		p.queue.MarkAfter(itemOf(s), reasons{since: time.Now()}, wait)
	}
}

// membersAlone is a decision about the members of the pools, and nothing else.
type membersAlone struct{ decision.Target }

// Decide implements [reconcile.Target].
func (m membersAlone) Decide(have plan.Snapshot) (reconcile.Decision, error) {
	d, err := m.Target.Decide(have)
	if err != nil {
		return d, err
	}
	if slices.ContainsFunc(d.Graph.Nodes(), func(n plan.Node) bool {
		_, exists := have.Get(n.ID)
		return n.ID.Is(network.LoadBalancers) && (n.Want() == nil || !exists)
	}) {
		return reconcile.Decision{}, nil // the commit that makes or removes the load balancer writes the members
	}
	return reconcile.Decision{Graph: d.Graph.Only(func(n plan.Node) bool { return decision.IsMember(n.ID) })}, nil
}

// guardedClient is the ARM client of commits, and of the holder of the turn. Without the turn, it refuses to write members
// of pools, and returns a busy error for a locked load balancer. With the turn, it tells the pool write when a member is
// written. It locks load balancers while a scale set in their pools is written.
type guardedClient struct {
	reconcile.Azure
	lock  *writeLock
	write *poolWrite // nil without the turn
}

// Begin implements [azure.Writer].
func (g guardedClient) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	switch isMember := decision.IsMember(r.ID); {
	case g.write == nil && isMember:
		return nil, &azure.Error{Kind: azure.Internal, Op: r.Op(), ID: r.ID, Message: "a commit writes members of pools in its turn only"}
	case g.write == nil && r.Verb == azure.Put && g.lock.has(r.ID):
		return nil, &azure.Error{Kind: azure.Busy, Op: r.Op(), ID: r.ID, Message: "a scale set in its backend pools is being written"}
	case !isMember:
		return g.Azure.Begin(ctx, r)
	}
	op, err := azure.Around(g.Azure, func(context.Context, azure.Request) (leave func(azure.Document, error), err error) {
		if r.ID.Is(compute.ScaleSets) {
			return g.lock.lock(r.Body), nil
		}
		return func(_ azure.Document, err error) {
			if err == nil {
				g.write.wrote.Store(true)
				g.write.begin(nil)
			}
		}, nil
	}).Begin(ctx, r)
	if azure.IsNotFound(err) && r.ID.Is(compute.ScaleSetInstances) {
		// The first failure is not left out, because a fresh read tells whether the instance exists. A list
		// may show the instance for a while after it was deleted.
		if _, again := g.write.gone.LoadOrStore(r.ID.Key(), true); again {
			slog.InfoContext(ctx, "instance is gone, its membership is left out", "instance", r.ID)
			return azure.Done(nil), nil
		}
	}
	return op, err
}

// writeLock locks the load balancers that Azure does not let be written now. The reason is that kaz writes a scale set that
// has machines in their pools, or will have.
type writeLock struct {
	mu      sync.Mutex     // never held while waiting
	writes  map[string]int // how many such writes are under way, by id key of the load balancer
	waiting []func()       // called when there are none
}

// lock locks the load balancers that a scale set's model refers to, until unlock is called. Its form is that of
// [azure.Around].
func (l *writeLock) lock(scaleSet azure.Document) (unlock func(azure.Document, error)) {
	references := controller.ReferencesOf[compute.ScaleSet](scaleSet)
	count := func(more int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, id := range references {
			if lb := id.Parent(); lb.Is(network.LoadBalancers) {
				if l.writes[lb.Key()] += more; l.writes[lb.Key()] == 0 {
					delete(l.writes, lb.Key())
				}
			}
		}
		if len(l.writes) == 0 {
			for _, do := range l.waiting {
				do()
			}
			l.waiting = nil
		}
	}
	count(1)
	return func(azure.Document, error) { count(-1) }
}

func (l *writeLock) has(lb azure.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes[lb.Key()] > 0
}

// after calls do as soon as no load balancer is locked, and reports whether a load balancer is locked. If none is, it does
// not call do.
func (l *writeLock) after(do func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.writes) == 0 {
		return false
	}
	l.waiting = append(l.waiting, do)
	return true
}
