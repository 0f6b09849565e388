package decision

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/leftover"
	"kaz/internal/plan/loadbalancer/note"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/reconcile"
)

// Commit is the input of a commit. Its Services write together what they share. Two kinds of changes do not need to be
// written together, and are deferred:
//
//   - Public IPs that no Service uses any more: deleting one takes long. Each Service deletes its own after the commit,
//     beside all others. A controller that is stopped in between finds them again by their resource group and their tags.
//     Where that is impossible, they are deleted in the commit, in a round that is not the last.
//   - The members of the backend pools, which are written beside the commits. If a load balancer is deleted, or a pool
//     changes to a list of addresses, they have to leave first, within the commit.
type Commit struct {
	Target
	WithMembers bool // the commit has the turn to write members of pools
	// The results of the decision's asks so far.
	Confirmed map[types.UID]bool       // Services of which the API server was asked
	Recorded  map[types.UID][]key.Note // resource groups that Services record since
	Listed    string                   // the state of Azure for which all Services were listed
	Lists     int                      // how often they were
	Removing  map[string]bool          // load balancers that may go, by id key
	Reread    bool                     // Azure was read again because something seemed to be gone
}

// What a commit has to ask or record before its decision is applied. The caller of [reconcile.Converge] does so.
type (
	// ConfirmServices asks whether Services exist of which Azure has nothing. They can be gone by now, and another leader
	// may have deleted what they had.
	ConfirmServices struct{ Services map[types.UID]bool }
	// ReadAgain asks for a fresh read. A replica of Azure that lags behind may have answered that something does not exist.
	ReadAgain struct{}
	// RecordGroups has Services record the resource groups of what is made for them.
	RecordGroups struct{ Groups map[types.UID][]key.Note }
	// RememberGroups has the controller remember where public IPs of Services are deleted.
	RememberGroups struct{ Groups map[types.UID][]key.Note }
	// ListServices asks for all Services before anything is removed that no known Service uses. Another leader may
	// know more. The list is valid as long as Azure is in this state.
	ListServices struct{ State string }
	// RemoveBalancers asks whether load balancers may go now.
	RemoveBalancers struct{ Balancers []azure.Document }
	// WriteMembers asks for the turn to write members of pools.
	WriteMembers struct{}
)

// Decide implements [reconcile.Target]. It asks for one thing at a time.
func (in Commit) Decide(have plan.Snapshot) (reconcile.Decision, error) {
	in.Have = have
	absent := leftover.Absent(in.Input)
	doubted := UIDs(slices.DeleteFunc(slices.Clone(in.Services), func(s loadbalancer.Service) bool {
		return s.Gone || !absent[s.UID] || in.Confirmed[s.UID]
	}))
	switch {
	case len(doubted) > 0:
		return reconcile.Decision{Ask: ConfirmServices{doubted}}, nil
	case !in.Reread && in.seemsLost(absent):
		return reconcile.Decision{Ask: ReadAgain{}}, nil
	}
	in.ConcurrentMembers = !in.WithMembers
	d, err := in.Target.Decide(have)
	if err != nil {
		return d, err
	}
	if d.Ask = in.ask(d); d.Ask != nil {
		return d, nil
	}
	graph := d.Graph
	isDeferred := func(n plan.Node) bool {
		// Public IPs are deleted after the last round.
		isReleased := n.Want() == nil && n.ID.Is(network.PublicIPAddresses) && len(graph.Pending) == 0
		return isReleased || !in.WithMembers && IsMember(n.ID)
	}
	d.Graph, d.Deferred = graph.Only(func(n plan.Node) bool { return !isDeferred(n) }), graph.Only(isDeferred)
	d.Graph.Pending = graph.Pending
	return d, nil
}

// seemsLost reports whether Azure lacks something that must exist when Services leave. That is the case if a Service with
// an address has nothing there. It is also the case if the public IP of a frontend in the cluster's resource group is
// missing.
func (in Commit) seemsLost(absent map[types.UID]bool) bool {
	leaving := slices.DeleteFunc(slices.Clone(in.Services), func(s loadbalancer.Service) bool {
		return !s.Gone || len(s.Status.LoadBalancer.Ingress) == 0
	})
	switch {
	case len(leaving) == 0:
		return false
	case slices.ContainsFunc(leaving, func(s loadbalancer.Service) bool { return absent[s.UID] }):
		return true
	}
	isLost := func(id azure.ID) bool {
		_, there := in.Have.Get(id)
		return !there && id.Is(network.PublicIPAddresses) && strings.EqualFold(id.Group(), in.Config.ResourceGroup)
	}
	balancers, _ := plan.Views[network.LoadBalancer](in.Have, in.Config.NetworkGroup(), network.LoadBalancers)
	return slices.ContainsFunc(balancers, func(lb azure.Resource[network.LoadBalancer]) bool {
		return slices.ContainsFunc(azure.References(lb.Properties.FrontendIPConfigurations), isLost)
	})
}

// ask is what has to be asked or recorded next before a decision is applied, nil for nothing.
func (in Commit) ask(d reconcile.Decision) reconcile.Ask {
	var going []azure.Document
	for _, n := range d.Graph.Nodes() {
		doc, exists := in.Have.Get(n.ID)
		if exists && n.Want() == nil && n.ID.Is(network.LoadBalancers) && !in.Removing[n.ID.Key()] {
			going = append(going, doc)
		}
	}
	deleted, missing := in.deletedIn(d.Graph), note.Missing(in.Input, d.Graph)
	maps.DeleteFunc(missing, func(uid types.UID, notes []key.Note) bool {
		return !slices.ContainsFunc(notes, func(n key.Note) bool { return !slices.ContainsFunc(in.Recorded[uid], n.Same) })
	})
	isUnclaimed := func(p plan.Problem) bool { return p.Reason == problem.Unclaimed }
	switch {
	case len(going) > 0:
		return RemoveBalancers{going}
	case in.Config.PoolByIP && len(d.Graph.Pending) > 0 && !in.WithMembers &&
		slices.ContainsFunc(d.Graph.Nodes(), func(n plan.Node) bool { return IsMember(n.ID) }):
		return WriteMembers{} // interfaces leave a pool before it can list addresses
	case len(deleted) > 0:
		return RememberGroups{deleted}
	case slices.ContainsFunc(d.Problems, isUnclaimed) && stateOf(in.Have) != in.Listed:
		return ListServices{stateOf(in.Have)}
	case len(missing) > 0:
		return RecordGroups{missing}
	}
	return nil
}

// deletedIn are the resource groups in which public IPs are deleted, for the Services that had them and do not know
// the group yet. The cluster's own group is left out, because it is always read.
func (in Commit) deletedIn(graph plan.Graph) map[types.UID][]key.Note {
	deleted := map[types.UID][]key.Note{}
	for _, n := range graph.Nodes() {
		if n.Want() != nil || !n.ID.Is(network.PublicIPAddresses) || strings.EqualFold(n.ID.Group(), in.Config.ResourceGroup) {
			continue
		}
		where := key.Note{Of: key.PublicIPs, Group: n.ID.Group()}
		for _, s := range in.Services {
			if slices.Contains(n.For, s.Key()) && !slices.ContainsFunc(slices.Concat(s.Groups, deleted[s.UID]), where.Same) {
				deleted[s.UID] = append(deleted[s.UID], where)
			}
		}
	}
	return deleted
}

// stateOf returns a text that differs for each state of the resources that Services share.
func stateOf(have plan.Snapshot) string {
	var tags []string
	for _, fullType := range []string{network.LoadBalancers, network.SecurityGroups, network.PrivateLinkServices} {
		for _, d := range have.List("", fullType) {
			tags = append(tags, d.ID().Key(), d.Etag())
		}
	}
	return strings.Join(tags, " ")
}

// IsMember reports whether a resource can be a member of a pool of network interfaces, or the model of
// members.
func IsMember(id azure.ID) bool {
	return slices.ContainsFunc([]string{compute.ScaleSets, compute.ScaleSetInstances, network.Interfaces}, id.Is)
}
