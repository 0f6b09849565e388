package service

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/reconcile"
)

// shared is a target without what its Services need not wait for in company: only what
// they share is committed together.
//
// Public IPs that serve nobody any more do not go in the commit: deleting one takes
// long. Each Service deletes its own when the commit has let go of it, beside all
// others. A controller that is stopped in between finds them again: they are in a
// resource group that their Service or the load balancers name, and their tags tell
// whose they are. Those of which that is not so go in the commit, in a round that is
// not the last.
//
// Machines come into pools of network interfaces and leave them beside the commits
// (see [fills]), but where a load balancer goes, which they have to leave before.
type shared struct {
	*target
	whole    bool        // nothing is left out but public IPs
	released []plan.Step // by the last decision
	fills    bool        // machines come or leave by the last decision
	// confirmed are the Services of which the API server was asked in this commit.
	confirmed map[types.UID]bool
	// noted is what this commit has noted in Services.
	noted map[types.UID][]key.Note
	loose map[types.UID][]key.Note // see [balancers]
	// known is the state of Azure for which all Services were asked for, and asked how often.
	known string
	asked int
}

// Desired implements [reconcile.Target].
func (d *shared) Desired(have plan.Snapshot) (plan.Graph, error) {
	d.released, d.fills = nil, false
	if err := d.doubt(have); err != nil {
		return plan.Graph{}, err
	}
	graph, err := d.decide(have)
	if err == nil {
		err = d.suspect(have)
	}
	if err == nil {
		err = d.remember(have, graph)
	}
	d.noteLoose(graph)
	if err != nil || len(graph.Pending) > 0 {
		return graph, err
	}
	var stay, leave, machines plan.Graph
	withMachines := d.whole || losesBalancer(graph)
	for _, n := range graph.Nodes() {
		to := &stay
		switch {
		case n.Want() == nil && sameType(n.ID, network.PublicIPAddresses):
			n.After = nil
			to = &leave
		case !withMachines && isMachine(n):
			to = &machines
		}
		if err := to.Add(n); err != nil {
			return graph, err
		}
	}
	release, err := plan.Diff(have, leave)
	if err != nil {
		return graph, err
	}
	fill, err := plan.Diff(have, machines)
	d.released, d.fills = release.Steps, !fill.Empty()
	return stay, err
}

// decide is the target's decision. Machines leave beside it, but where a load balancer goes.
func (d *shared) decide(have plan.Snapshot) (plan.Graph, error) {
	d.Beside = !d.whole
	graph, err := d.target.Desired(have)
	if err == nil && d.Beside && losesBalancer(graph) {
		d.Beside = false
		return d.target.Desired(have)
	}
	return graph, err
}

// noteLoose notes where the public IPs are that go, for the Services of which they are.
func (d *shared) noteLoose(graph plan.Graph) {
	for _, n := range graph.Nodes() {
		if n.Want() != nil || !sameType(n.ID, network.PublicIPAddresses) {
			continue
		}
		where := key.Note{Of: key.PublicIPs, Group: n.ID.Group()}
		for i, s := range d.Services {
			if slices.Contains(n.For, s.Key()) && !slices.ContainsFunc(s.Groups, where.Same) {
				d.Services[i].Groups = append(slices.Clip(s.Groups), where)
				d.loose[s.UID] = append(d.loose[s.UID], where)
			}
		}
	}
}

// losesBalancer reports whether a load balancer goes as a whole.
func losesBalancer(g plan.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n plan.Node) bool { return n.Want() == nil && sameType(n.ID, network.LoadBalancers) })
}

// releasedFor are the steps that a Service has to do after its commit. A public IP that
// several left is deleted for each: none of them is gone before it is.
func (d *shared) releasedFor(key string) []plan.Step {
	var steps []plan.Step
	for _, s := range d.released {
		if slices.Contains(s.For, key) {
			steps = append(steps, s)
		}
	}
	return steps
}

// release deletes what a commit has let go of. What several wait for is deleted once.
func (c *Controller) release(ctx context.Context, steps []plan.Step) error {
	var group errgroup.Group
	for _, s := range steps {
		group.Go(func() error {
			_, err := c.releases.Submit(ctx, s.ID.Key(), s)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("failed to delete load balancer: %w", err)
	}
	return nil
}

// releasing deletes public IPs.
type releasing struct{ azure reconcile.Azure }

func (r releasing) commit(ctx context.Context, _ string, batch []plan.Step) ([]struct{}, error) {
	return make([]struct{}, len(batch)), reconcile.Apply(ctx, r.azure, plan.Plan{Steps: batch[:1]}).Err()
}
