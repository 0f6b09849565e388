package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/routes"
	"kaz/internal/reconcile"
)

// routeTable implements Routes. The table is one document: all calls during one write share the next
// write.
type routeTable struct {
	config   routes.Config
	client   reconcile.Azure
	nodes    nodeSource
	machines framework.InstancesV2
	measured operations
	events   record.EventRecorder
	commits  *reconcile.Coalescer[routeRequest, error]

	mu sync.Mutex
	// tidyAfter is the earliest time of the next tidy after a failure.
	tidyAfter time.Time
	warned    bool      // the table is nearly full and this was reported
	most      int       // number of routes that Azure allows, 0 if unknown
	askAfter  time.Time // when to read that number again
}

var _ framework.Routes = (*routeTable)(nil)

// routeRequest is a set of changes that succeed or fail together. It is empty for a tidy.
type routeRequest []routes.Change

// Nodes of one burst share a write. Without a wait, the first node of a burst is written alone, and the others wait for that.
const (
	nodesCalm   = 20 * time.Millisecond  // how long the first route waits for a next one
	nodesAtMost = 150 * time.Millisecond // how long it waits at most if routes keep coming
)

func newRouteTable(config routes.Config, client reconcile.Azure, machines framework.InstancesV2, measured operations) *routeTable {
	r := &routeTable{config: config, client: client, machines: machines, measured: measured, events: &record.FakeRecorder{}}
	r.commits = reconcile.NewCoalescer(r.commit)
	r.commits.Gather(nodesCalm, nodesAtMost)
	return r
}

// ListRoutes returns the existing routes to nodes.
func (r *routeTable) ListRoutes(ctx context.Context, _ string) ([]*framework.Route, error) {
	in, err := r.input()
	if err != nil {
		return nil, err
	}
	if in.Have, err = r.read(ctx, in); err != nil {
		return nil, err
	}
	tidied, err := r.tidy(ctx, in)
	if err != nil {
		return nil, err
	}
	if tidied {
		if in.Have, err = r.read(ctx, in); err != nil {
			return nil, err
		}
	}
	known, err := routes.Known(in)
	if err != nil {
		return nil, err
	}
	list := make([]*framework.Route, len(known))
	for i, k := range known {
		list[i] = &framework.Route{Name: k.Name, TargetNode: types.NodeName(k.Node), DestinationCIDR: k.CIDR}
	}
	return list, nil
}

func (r *routeTable) read(ctx context.Context, in routes.Input) (plan.Snapshot, error) {
	return reconcile.Take(ctx, r.client, reconcile.Needs{Resources: routes.Needs(in)})
}

// CreateRoute creates a route to a node's range and returns when Azure has created it.
func (r *routeTable) CreateRoute(ctx context.Context, _, _ string, route *framework.Route) (err error) {
	done := r.measured.of("routes_create_route", r.config.ClusterGroup, r.config.Subscription)
	defer func() { done(err) }()
	node, err := r.node(string(route.TargetNode))
	if err != nil {
		return err
	}
	if !Managed(node) {
		return nil // others manage the routes of this node
	}
	hop, err := r.hop(ctx, node, route)
	if err != nil {
		return fmt.Errorf("route to %s: %w", route.DestinationCIDR, err)
	}
	return r.submit(ctx, routeRequest{{Node: node.Name, CIDR: route.DestinationCIDR, Hop: hop}})
}

// DeleteRoute deletes a route and returns when Azure has deleted it.
func (r *routeTable) DeleteRoute(ctx context.Context, _ string, route *framework.Route) error {
	done := r.measured.of("routes_delete_route", r.config.ClusterGroup, r.config.Subscription)
	err := r.submit(ctx, routeRequest{{Node: string(route.TargetNode), CIDR: route.DestinationCIDR, Name: route.Name, Gone: true}})
	done(err)
	return err
}

func (r *routeTable) submit(ctx context.Context, request routeRequest) error {
	refused, err := r.commits.Submit(ctx, r.config.ID().Key(), request)
	return errors.Join(err, refused)
}

// hop returns the next hop address of a node's range. It comes from the node's status or else from
// Azure.
func (r *routeTable) hop(ctx context.Context, node *corev1.Node, route *framework.Route) (netip.Addr, error) {
	if _, err := netip.ParsePrefix(route.DestinationCIDR); err != nil {
		return netip.Addr{}, fmt.Errorf("pod CIDR of node %s: %w", node.Name, err)
	}
	if hop, ok := routes.HopFor(route.DestinationCIDR, routes.Hops(route.TargetNodeAddresses)); ok {
		return hop, nil
	}
	machine, err := r.machines.InstanceMetadata(ctx, node)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("inside addresses of node %s: %w", node.Name, err)
	}
	hops := routes.Hops(machine.NodeAddresses)
	hop, ok := routes.HopFor(route.DestinationCIDR, hops)
	if !ok {
		return hop, fmt.Errorf("no match found matching the ipfamily requested among the inside addresses of node %s: %v", node.Name, hops)
	}
	return hop, nil
}

func (r *routeTable) node(name string) (*corev1.Node, error) {
	if !r.nodes.known() {
		return nil, errNodesUnknown
	}
	node, err := r.nodes.lister.Get(name)
	if err != nil {
		return nil, fmt.Errorf("node of a route: %w", err)
	}
	return node, nil
}

var errNodesUnknown = errors.New("the cluster's nodes are not known yet")

// input returns the facts from Kubernetes.
func (r *routeTable) input() (routes.Input, error) {
	if !r.nodes.known() {
		return routes.Input{}, errNodesUnknown
	}
	list, err := r.nodes.lister.List(labels.Everything())
	if err != nil {
		return routes.Input{}, err
	}
	in := routes.Input{Config: r.config, Nodes: make([]routes.Node, len(list))}
	for i, n := range list {
		in.Nodes[i] = routes.NodeOf(n, !Managed(n))
	}
	return in, nil
}

// commit writes the table once for all requests of a batch.
func (r *routeTable) commit(ctx context.Context, _ string, batch []routeRequest) ([]error, error) {
	answers := make([]error, len(batch))
	in, err := r.input()
	if err != nil {
		return nil, err
	}
	for _, request := range batch {
		in.Changes = append(in.Changes, request...)
	}
	target := &routeTarget{Input: in}
	out, err := reconcile.Converge(ctx, r.client, target)
	if err == nil && routes.Crowded(out.Decision.Problems) {
		if target.Most = r.allowed(ctx); target.Most > 0 {
			out, err = reconcile.Converge(ctx, r.client, target)
		}
	}
	if err != nil {
		if azure.KindOf(err) == azure.Invalid {
			return nil, err // one route is wrong: the coalescer retries the others without it
		}
		for i := range answers {
			answers[i] = err
		}
		return answers, nil
	}
	for i, request := range batch {
		for _, c := range request {
			for _, message := range refusals(out.Decision.Problems, c.Key()) {
				answers[i] = errors.Join(answers[i], errors.New(message))
			}
		}
	}
	r.warn(in.Changes, out.Decision.Problems)
	return answers, nil
}

// askPause is how long the allowed number of routes is cached.
const askPause = time.Hour

// allowed returns how many routes Azure allows in the table, 0 if unknown. It reads Azure only if the
// default limit may not be enough.
func (r *routeTable) allowed(ctx context.Context) int {
	now := time.Now()
	r.mu.Lock()
	most, asked := r.most, now.Before(r.askAfter)
	r.mu.Unlock()
	if asked {
		return most
	}
	limits, err := r.client.List(ctx, routes.Limits(r.config))
	if err != nil {
		slog.WarnContext(ctx, "cannot read how many routes azure allows", "table", r.config.ID(), "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most, r.askAfter = routes.LimitIn(limits), now.Add(askPause)
	return r.most
}

// routeTarget is the route table with the changes of one commit.
type routeTarget struct{ routes.Input }

// Needs implements [reconcile.Target].
func (t *routeTarget) Needs(plan.Snapshot) reconcile.Needs {
	return reconcile.Needs{Resources: routes.Needs(t.Input)}
}

// Decide implements [reconcile.Target].
func (t *routeTarget) Decide(have plan.Snapshot) (reconcile.Decision, error) {
	in := t.Input
	in.Have = have
	graph, problems, err := routes.Desired(in)
	return reconcile.Decision{Graph: graph, Problems: problems}, err
}

// warn reports a nearly full table: once, at the node with the last route, and again only after there
// was more room.
func (r *routeTable) warn(changes []routes.Change, problems []plan.Problem) {
	var warning *plan.Problem
	for _, p := range problems {
		if p.Warning {
			warning = &p
		}
	}
	r.mu.Lock()
	before := r.warned
	r.warned = warning != nil
	r.mu.Unlock()
	if warning == nil || before {
		return
	}
	slog.Warn("route table", "table", r.config.ID(), "reason", warning.Reason, "message", warning.Message)
	for _, c := range changes {
		if node, err := r.node(c.Node); err == nil && !c.Gone {
			r.events.Event(node, corev1.EventTypeWarning, warning.Reason, warning.Message)
			return
		}
	}
}

// tidyPause is the delay of the next tidy after Azure rejected one. Routes are listed every few
// seconds.
const tidyPause = 5 * time.Minute

// tidy repairs what no request asks for: the tags of the table and routes with obsolete names. Its
// failure does not affect other routes.
func (r *routeTable) tidy(ctx context.Context, in routes.Input) (bool, error) {
	graph, _, err := routes.Desired(in)
	if err != nil {
		return false, err
	}
	p, err := plan.Diff(in.Have, graph)
	if err != nil || p.Empty() {
		return false, err
	}
	now := time.Now()
	r.mu.Lock()
	wait := now.Before(r.tidyAfter)
	r.mu.Unlock()
	if wait {
		return false, nil
	}
	if err := r.submit(ctx, nil); err != nil {
		slog.Warn("cannot repair the route table", "table", r.config.ID(), "error", err)
		r.mu.Lock()
		r.tidyAfter = now.Add(tidyPause)
		r.mu.Unlock()
		return false, nil
	}
	return true, nil
}

// refusals returns the messages of the problems that prevent an object's change.
func refusals(problems []plan.Problem, object string) []string {
	var wrong []string
	for _, p := range problems {
		if p.Object == object && !p.Warning {
			wrong = append(wrong, p.Message)
		}
	}
	return wrong
}
