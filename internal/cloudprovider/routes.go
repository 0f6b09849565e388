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

// routeTable serves the routes to nodes. The table is one document, so all calls
// that come while it is being written are served by its next write.
type routeTable struct {
	config   routes.Config
	door     reconcile.Azure
	nodes    nodeSource
	machines framework.InstancesV2
	measured operations
	events   record.EventRecorder
	commits  *reconcile.Coalescer[routeRequest, error]

	mu sync.Mutex
	// tidyAfter is when what nobody asked for may be put right again, after that failed.
	tidyAfter time.Time
	warned    bool      // of a table that is nearly full
	most      int       // routes that Azure allows, 0 while not known
	askAfter  time.Time // again how many these are
}

var _ framework.Routes = (*routeTable)(nil)

// routeRequest is changes that succeed or fail together, none for putting right
// what nobody asked for, such as tags.
type routeRequest []routes.Change

func newRouteTable(config routes.Config, door reconcile.Azure, machines framework.InstancesV2, measured operations) *routeTable {
	r := &routeTable{config: config, door: door, machines: machines, measured: measured, events: &record.FakeRecorder{}}
	r.commits = reconcile.NewCoalescer(r.commit)
	return r
}

// ListRoutes tells which routes to nodes are in place.
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
	return reconcile.Take(ctx, r.door, reconcile.Needs{Resources: routes.Needs(in)})
}

// CreateRoute makes a range of a node be reached through the node's inside address
// and returns when Azure has done so.
func (r *routeTable) CreateRoute(ctx context.Context, _, _ string, route *framework.Route) (err error) {
	done := r.measured.of("routes_create_route", r.config.ClusterGroup, r.config.Subscription)
	defer func() { done(err) }()
	node, err := r.node(string(route.TargetNode))
	if err != nil {
		return err
	}
	if !managed(node) {
		return nil // reached by routes of somebody else's
	}
	hop, err := r.hop(ctx, node, route)
	if err != nil {
		return fmt.Errorf("route to %s: %w", route.DestinationCIDR, err)
	}
	return r.submit(ctx, routeRequest{{Node: node.Name, CIDR: route.DestinationCIDR, Hop: hop}})
}

// DeleteRoute takes a route out of the table and returns when Azure has done so.
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

// hop is the address behind which a range of the node is. The node mostly says it
// itself; where it does not, Azure is asked.
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

// input is the facts that Kubernetes has.
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
		in.Nodes[i] = routes.NodeOf(n, !managed(n))
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
	_, err = reconcile.Converge(ctx, r.door, target)
	if err == nil && routes.Crowded(target.problems) {
		if target.Most = r.allowed(ctx); target.Most > 0 {
			_, err = reconcile.Converge(ctx, r.door, target)
		}
	}
	if err != nil {
		if azure.KindOf(err) == azure.Invalid {
			return nil, err // the fault of one route: the others go without it
		}
		for i := range answers {
			answers[i] = err
		}
		return answers, nil
	}
	for i, request := range batch {
		for _, c := range request {
			for _, message := range refusals(target.problems, c.Key()) {
				answers[i] = errors.Join(answers[i], errors.New(message))
			}
		}
	}
	r.warn(in.Changes, target.problems)
	return answers, nil
}

// askPause is how long Azure's answer counts to how many routes it allows.
const askPause = time.Hour

// allowed is how many routes Azure allows in the table, 0 where it does not say. It
// is asked only when the usual number may not do.
func (r *routeTable) allowed(ctx context.Context) int {
	now := time.Now()
	r.mu.Lock()
	most, asked := r.most, now.Before(r.askAfter)
	r.mu.Unlock()
	if asked {
		return most
	}
	limits, err := r.door.List(ctx, routes.Limits(r.config))
	if err != nil {
		slog.WarnContext(ctx, "azure does not say how many routes it allows", "table", r.config.ID(), "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most, r.askAfter = routes.LimitIn(limits), now.Add(askPause)
	return r.most
}

// routeTarget is the route table with the changes of one commit.
type routeTarget struct {
	routes.Input
	problems []plan.Problem // of the last decision
}

// Needs implements [reconcile.Target].
func (t *routeTarget) Needs(plan.Snapshot) reconcile.Needs {
	return reconcile.Needs{Resources: routes.Needs(t.Input)}
}

// Desired implements [reconcile.Target].
func (t *routeTarget) Desired(have plan.Snapshot) (plan.Graph, error) {
	in := t.Input
	in.Have = have
	graph, problems, err := routes.Desired(in)
	t.problems = problems
	return graph, err
}

// warn tells of a table that is nearly full: once, at the node that made it so, and
// again only after there was more room.
func (r *routeTable) warn(changes []routes.Change, problems []plan.Problem) {
	var warning *plan.Problem
	for _, p := range problems {
		if p.Warning {
			warning = &p
		}
	}
	r.mu.Lock()
	told := r.warned
	r.warned = warning != nil
	r.mu.Unlock()
	if warning == nil || told {
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

// tidyPause is how long what nobody asked for is left alone after Azure refused it:
// routes are listed every few seconds.
const tidyPause = 5 * time.Minute

// tidy puts right what the table has and no route asks for: its tags, and routes of
// former times. That this fails keeps no route from being served.
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
		slog.Warn("route table cannot be put right", "table", r.config.ID(), "error", err)
		r.mu.Lock()
		r.tidyAfter = now.Add(tidyPause)
		r.mu.Unlock()
		return false, nil
	}
	return true, nil
}

// refusals are the problems that keep an object from being served.
func refusals(problems []plan.Problem, object string) []string {
	var wrong []string
	for _, p := range problems {
		if p.Object == object && !p.Warning {
			wrong = append(wrong, p.Message)
		}
	}
	return wrong
}
