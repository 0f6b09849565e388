package autoscale

import (
	"context"
	"log/slog"
	"maps"
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

	roster guarded[roster]
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
		roster: guarded[roster]{state: newRoster()},
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
func (p *Provider) Ready() bool { return !p.listed().IsZero() }

// listed returns when the scale sets were read, zero if they never were.
func (p *Provider) listed() time.Time {
	return ask(&p.roster, func(r *roster) time.Time { return r.listed })
}

// group returns a group by its id, nil if there is none.
func (p *Provider) group(id string) *group {
	return ask(&p.roster, func(r *roster) *group { return r.group(id) })
}

// all returns the groups in the order of their names.
func (p *Provider) all() []*group { return ask(&p.roster, (*roster).all) }

// seen returns the nodes by the keys of their machines.
func (p *Provider) seen() map[string]seenNode { return ask(&p.roster, (*roster).seen) }

// Ignored returns why scale sets of the resource group are no node groups, by their names.
func (p *Provider) Ignored() map[string]string {
	return ask(&p.roster, func(r *roster) map[string]string { return maps.Clone(r.ignored) })
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
		if g.instance(machine).listed {
			return g
		}
	}
	return nil
}

// Observe records a node that a watch shows. The next machine of its group will be like the node.
func (p *Provider) Observe(node *corev1.Node) {
	machine, ok := nodes.MachineID(node.Spec.ProviderID)
	if !ok {
		return
	}
	if ask(&p.roster, func(r *roster) bool { return r.note(machine, seenNode{node.Spec.ProviderID, node.Name, -1}) }) {
		p.poke()
	}
	if g := p.groupOf(machine); g != nil {
		g.known.change(func(l *ledger) { l.observe(machine, node) })
	}
}

// Forget removes a node that is gone, and has the instances of its group read again.
func (p *Provider) Forget(node *corev1.Node) {
	machine, ok := nodes.MachineID(node.Spec.ProviderID)
	if !ok {
		return
	}
	p.roster.change(func(r *roster) { delete(r.nodes, machine.Key()) })
	if g := p.groupOf(machine); g != nil {
		g.known.change(func(l *ledger) { l.stale = true })
		p.poke()
	}
}

// nodesNow returns a function that reports whether there is a node at a machine, as of now. It takes no lock, so a ledger can ask it.
func (p *Provider) nodesNow() func(azure.ID) bool {
	nodes := p.seen()
	return func(machine azure.ID) bool {
		_, is := nodes[machine.Key()]
		return is
	}
}

// poke wakes the loop, which reads what is due.
func (p *Provider) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
