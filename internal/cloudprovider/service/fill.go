package service

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/reconcile"
)

// isMachine reports whether a node of a graph is about who is in a pool of network
// interfaces.
func isMachine(n plan.Node) bool {
	return slices.ContainsFunc([]string{compute.ScaleSets, compute.ScaleSetInstances, network.Interfaces}, func(t string) bool { return sameType(n.ID, t) })
}

// fill is the machines' coming into the pools and leaving them, beside the commits: it
// takes minutes where there are many machines, and no Service needs to wait for all of
// them. Who fills an empty pool waits for the first.
type fill struct {
	first chan struct{} // closed when a machine is in, or nobody will be
	// into are the load balancers in whose pools nobody was when it was asked for, by
	// id key.
	into map[string]bool
	err  error // why nobody is; to be read when first is closed
	// wrote says that a machine came or left.
	wrote atomic.Bool

	once sync.Once
}

func (f *fill) begin(err error) {
	f.once.Do(func() {
		f.err = err
		close(f.first)
	})
}

// wait waits for the first machine. Nobody waits for no fill.
func (f *fill) wait(ctx context.Context) error {
	if f == nil {
		return nil
	}
	select {
	case <-f.first:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fills runs one fill after the other. What is asked for during one is done by the
// next, though who waits for the first machine of a pool that is being filled waits for
// the one under way.
type fills struct {
	cluster
	azure     reconcile.Azure
	failed    func(services []loadbalancer.Service, err error, failures int, said bool)
	recovered func(services []loadbalancer.Service)
	ran       func(services []loadbalancer.Service) // machines have come or left
	shut      shut

	work     sync.WaitGroup
	failures int  // in a row; the running one's
	hush     hush // its, too
	told     bool // of one of them

	mu      sync.Mutex    // guards what follows; never held while waiting
	ended   chan struct{} // nil when none is under way
	current *fill         // that is under way
	next    *fill         // nil when none is asked for
	whose   map[types.UID]loadbalancer.Service
}

// want has the pools filled as a decision about these Services asks for. It returns the
// fill that brings the first machine to a load balancer.
func (f *fills) want(ctx context.Context, services []loadbalancer.Service, deserted map[string]bool) func(lb string) *fill {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		f.next = &fill{first: make(chan struct{}), into: map[string]bool{}}
		f.whose = make(map[types.UID]loadbalancer.Service, len(services))
	}
	maps.Copy(f.next.into, deserted)
	for _, s := range services { // who is gone, too: a decision about nobody decides nothing
		f.whose[s.UID] = s
	}
	current, next := f.current, f.next
	if f.ended == nil {
		f.ended = make(chan struct{})
		f.work.Go(func() { f.run(ctx) })
	}
	return func(lb string) *fill {
		if current != nil && current.into[lb] {
			return current
		}
		return next
	}
}

// running is closed when no fill is under way, nil when none is.
func (f *fills) running() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

func (f *fills) run(ctx context.Context) {
	for {
		one, services := f.take()
		if one == nil {
			return
		}
		err := f.converge(ctx, one, services)
		one.begin(err)
		if err == nil {
			if f.told {
				f.recovered(services)
			}
			if one.wrote.Load() {
				f.ran(services)
			}
			f.failures, f.hush, f.told = 0, hush{}, false
		} else if ctx.Err() == nil {
			said := f.hush.breaks(err)
			f.failures, f.told = f.failures+1, f.told || said
			f.failed(services, err, f.failures, said)
		}
	}
}

// take is the fill to do and the Services that it is for, nil when there is none.
func (f *fills) take() (*fill, []loadbalancer.Service) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current, f.next = f.next, nil
	if f.current == nil {
		close(f.ended)
		f.ended = nil
		return nil, nil
	}
	return f.current, slices.Collect(maps.Values(f.whose))
}

func (f *fills) converge(ctx context.Context, one *fill, services []loadbalancer.Service) error {
	t, err := f.target(ctx, services)
	if err != nil {
		return err
	}
	return reconcile.Achieve(ctx, watchedDoor{f.azure, one, &f.shut}, &arrival{t})
}

// arrival is a target's machines alone.
type arrival struct{ *target }

// Desired implements [reconcile.Target].
func (a *arrival) Desired(have plan.Snapshot) (plan.Graph, error) {
	graph, err := a.target.Desired(have)
	if err != nil {
		return graph, err
	}
	var machines plan.Graph
	for _, n := range graph.Nodes() {
		if _, exists := have.Get(n.ID); sameType(n.ID, network.LoadBalancers) && (n.Want() == nil || !exists) {
			return plan.Graph{}, nil // it comes or goes: the commit that does that sees to the machines
		}
		if isMachine(n) {
			if err := machines.Add(n); err != nil {
				return graph, err
			}
		}
	}
	return machines, nil
}

// watchedDoor tells a fill of the first machine that is written, and commits which load
// balancers are shut meanwhile.
type watchedDoor struct {
	reconcile.Azure
	fill *fill
	shut *shut
}

func (d watchedDoor) Put(ctx context.Context, w azure.Write) (azure.Document, error) {
	return d.watch(w, func() (azure.Document, error) { return d.Azure.Put(ctx, w) })
}

func (d watchedDoor) Patch(ctx context.Context, w azure.Write) (azure.Document, error) {
	return d.watch(w, func() (azure.Document, error) { return d.Azure.Patch(ctx, w) })
}

func (d watchedDoor) watch(w azure.Write, write func() (azure.Document, error)) (azure.Document, error) {
	if sameType(w.ID, compute.ScaleSets) {
		return d.shut.during(w.Body, write)
	}
	doc, err := write()
	if err == nil {
		d.fill.wrote.Store(true)
		d.fill.begin(nil)
	}
	return doc, err
}

// deserted are the load balancers with pools of which nobody is in one, by id key, each
// with the names of its rules in lower case.
func deserted(have plan.Snapshot, c loadbalancer.Config) (map[string][]string, error) {
	found := map[string][]string{}
	for _, d := range have.List(c.LoadBalancer().Parent(), network.LoadBalancers) {
		lb, err := azure.Decode[network.LoadBalancer](d)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(lb.Properties.BackendAddressPools, func(p azure.Child[network.BackendAddressPool]) bool {
			return len(p.Properties.BackendIPConfigurations)+len(p.Properties.LoadBalancerBackendAddresses) > 0
		}) {
			continue
		}
		var rules []string
		for _, r := range lb.Properties.LoadBalancingRules {
			rules = append(rules, strings.ToLower(r.Name))
		}
		found[lb.ID.Key()] = rules
	}
	return found, nil
}

// fillFailed has Services tried again whose machines could not all be let in. Where those are
// gone by now, the others have the pools.
func (c *Controller) fillFailed(services []loadbalancer.Service, err error, failures int, said bool) {
	wait := delay(err, failures)
	slog.Warn("backend pools not as they shall be", "error", err, "again_in", wait)
	var concerned []*corev1.Service
	for _, s := range services {
		if !s.Gone {
			concerned = append(concerned, s.Service)
		}
	}
	if len(concerned) == 0 {
		concerned, _ = c.ours() // a lister knows no error
	}
	for _, s := range concerned {
		it := itemOf(s)
		if said {
			c.events.Eventf(s, corev1.EventTypeWarning, reasonUpdateFailed, "Error updating load balancer with new hosts: %v", err)
		}
		c.dirt.add(it, why{told: said, since: time.Now()})
		c.queue.AddAfter(it, wait)
	}
}

// fillRan has Services looked at again whose packets arrive at the nodes' own addresses: the
// security group lets nodes that leave have them until they have left.
func (c *Controller) fillRan(services []loadbalancer.Service) {
	for _, s := range services {
		if !s.Gone && loadbalancer.AtNodes(s.Service) {
			c.mark(itemOf(s.Service), why{since: time.Now()})
		}
	}
}

// nodesRearranged has those Services looked at again whose packets arrive at the nodes' own
// addresses: their node ports are to be open where their load balancer has nodes by now.
func (c *Controller) nodesRearranged(others []*corev1.Service) {
	for _, s := range others {
		if loadbalancer.AtNodes(s) {
			c.mark(itemOf(s), why{})
		}
	}
}

// fillRecovered tells Services that were told of machines that could not come or leave.
func (c *Controller) fillRecovered(services []loadbalancer.Service) {
	for _, s := range services {
		if !s.Gone {
			c.tellUpdated(s.Service)
		}
	}
}
