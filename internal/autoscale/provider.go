package autoscale

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/nodegroup"
	"kaz/internal/plan/nodes"
)

// Azure is what the provider needs of Azure. Reads return the resource itself, not a cached one.
type Azure interface {
	azure.Reader
	azure.Writer
}

// Config is the configuration of a provider.
type Config struct {
	Azure Azure
	// ResourceGroup has the scale sets. Location is its region, for the quotas of the subscription.
	ResourceGroup azure.ID
	Location      string
	Selection     nodegroup.Selection
	// ForceDelete deletes machines without waiting for their shutdown, where Azure can.
	ForceDelete bool
	// Prices has the prices of machines. Without it there are none.
	Prices PriceSource
	// SetsEvery is the age at which the list of scale sets is read again; 0 means a minute. InstancesEvery is the age at
	// which a list of instances is read again if nothing shows that it changed; 0 means an hour.
	SetsEvery, InstancesEvery time.Duration
	Metrics                   *Metrics
	Log                       *slog.Logger
}

// Provider has the node groups. Its methods can be called at the same time.
type Provider struct {
	Config
	catalogue *catalogue
	prices    *prices
	writes    *writes
	stop      context.CancelFunc
	wake      chan struct{}
	// first is closed when the groups and their instances were read once.
	first     chan struct{}
	firstOnce sync.Once

	mu     sync.Mutex // guards what follows
	groups map[string]*group
	// absent counts the lists in a row in which a group was missing.
	absent  map[string]int
	listed  time.Time
	ignored map[string]string // why scale sets are no node groups, by their names
	nodes   map[string]seenNode
	loop    int       // of cluster-autoscaler
	began   time.Time // when the loop began
}

// seenNode is a node by the key of its machine's id.
type seenNode struct {
	providerID, name string
	loop             int // in which cluster-autoscaler asked for it, -1: a watch shows it
}

// New returns a provider. It knows nothing until Run has read Azure. Close it when done.
func New(c Config) *Provider {
	if c.SetsEvery == 0 {
		c.SetsEvery = time.Minute
	}
	if c.InstancesEvery == 0 {
		c.InstancesEvery = time.Hour
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Provider{
		Config: c, catalogue: newCatalogue(c.Azure, c.ResourceGroup.Subscription(), c.Location),
		prices: newPrices(c.Prices, c.Location, c.Log),
		stop:   stop, wake: make(chan struct{}, 1), first: make(chan struct{}),
		groups: map[string]*group{}, absent: map[string]int{}, ignored: map[string]string{}, nodes: map[string]seenNode{},
	}
	p.writes = newWrites(ctx, p)
	return p
}

// Close cancels what is under way and waits until it has ended. Azure finishes the requests that it accepted.
func (p *Provider) Close() {
	p.stop()
	p.writes.close()
	p.prices.tasks.Wait()
}

// Ready reports whether all scale sets were read.
func (p *Provider) Ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.listed.IsZero()
}

// group returns a group by its id, nil if there is none.
func (p *Provider) group(id string) *group {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.groups[strings.ToLower(id)]
}

// all returns the groups in the order of their names.
func (p *Provider) all() []*group {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*group, 0, len(p.groups))
	for _, key := range slices.Sorted(maps.Keys(p.groups)) {
		all = append(all, p.groups[key])
	}
	return all
}

// Ignored returns why scale sets of the resource group are no node groups, by their names.
func (p *Provider) Ignored() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.ignored)
}

// groupOf returns the group with a machine, nil if it is in none.
func (p *Provider) groupOf(machine azure.ID) *group {
	if set := machine.Parent(); set.Is(compute.ScaleSets) {
		if g := p.group(set.Name()); g != nil && g.set.Equal(set) {
			return g
		}
		return nil
	}
	for _, g := range p.all() {
		if g.lists(machine) {
			return g
		}
	}
	return nil
}

// note remembers a node, with the spelling of its provider id.
func (p *Provider) note(machine azure.ID, node seenNode) (isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := machine.Key()
	have, known := p.nodes[key]
	if known && have.loop == -1 {
		node.loop = -1
	}
	p.nodes[key] = node
	return !known
}

// Observe records a node that a watch shows. The next machine of its group will be like the node.
func (p *Provider) Observe(node *corev1.Node) {
	machine, ok := nodes.MachineID(node.Spec.ProviderID)
	if !ok {
		return
	}
	if p.note(machine, seenNode{node.Spec.ProviderID, node.Name, -1}) {
		p.poke()
	}
	if g := p.groupOf(machine); g != nil {
		g.observe(machine, node)
	}
}

// Forget removes a node that is gone, and has the instances of its group read again.
func (p *Provider) Forget(node *corev1.Node) {
	machine, ok := nodes.MachineID(node.Spec.ProviderID)
	if !ok {
		return
	}
	p.mu.Lock()
	delete(p.nodes, machine.Key())
	p.mu.Unlock()
	if g := p.groupOf(machine); g != nil {
		g.doubt()
		p.poke()
	}
}

// isNode reports whether there is a node at a machine. The caller holds the lock.
func (p *Provider) isNode(machine azure.ID) bool {
	_, is := p.nodes[machine.Key()]
	return is
}

// nodesNow returns a function that reports whether there is a node at a machine, as of now. It needs no lock: the lock of a
// provider is never taken while that of a group is held.
func (p *Provider) nodesNow() func(azure.ID) bool {
	nodes := p.seen()
	return func(machine azure.ID) bool {
		_, is := nodes[machine.Key()]
		return is
	}
}

// nextLoop begins a loop of cluster-autoscaler. Nodes that it did not ask for in the last loops are gone.
func (p *Provider) nextLoop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loop++
	p.began = time.Now()
	const remembered = 3
	maps.DeleteFunc(p.nodes, func(_ string, n seenNode) bool { return n.loop >= 0 && n.loop < p.loop-remembered })
}

// poke wakes the loop, which reads what is due.
func (p *Provider) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
