package loadbalancer

import (
	"maps"
	"slices"

	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/backend"
	"kaz/internal/plan/loadbalancer/balancer"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/placement"
	"kaz/internal/plan/loadbalancer/privatelink"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/security"
)

// Desired decides what Azure must hold for the Services of one commit, and names
// what is wrong with them. An error says that the snapshot cannot be read.
//
// An address that Azure chooses is an [plan.Output] in the security group, which is written after
// the new public IP, or after the load balancer that brings a private address. The graph is Pending
// only where Azure wants an order that one plan cannot have: docs/decisions/rounds.md.
func Desired(in Input) (plan.Graph, []plan.Problem, error) {
	x, err := index.Read(in)
	if err != nil {
		return plan.Graph{}, nil, err
	}
	refused := map[string]bool{}     // by UID; true for those that other Services may help
	unclaimed := map[string]string{} // what no Service uses any more, with the object of the warning
	var found problem.List
	for {
		d := &decision{index: x, refused: refused, unclaimed: unclaimed}
		err := d.decide()
		if err != nil {
			return plan.Graph{}, nil, err
		}
		found = append(found, d.found...)
		if len(d.more) == 0 {
			for _, what := range slices.Sorted(maps.Keys(unclaimed)) {
				found.Warn(unclaimed[what], problem.Unclaimed, "no Service uses %s", what)
			}
			return d.graph, found.Distinct(), nil
		}
		// What these Services have stays, and the others are decided again.
		for _, uid := range d.more {
			refused[uid] = slices.ContainsFunc(d.found, func(p plan.Problem) bool { return p.Reason == problem.Family })
		}
	}
}

// decision is one attempt to decide, without the Services that earlier attempts refused.
type decision struct {
	index     *index.Index
	refused   map[string]bool
	unclaimed map[string]string
	graph     plan.Graph
	found     problem.List
	more      []string // Services that must be refused besides, by UID
}

// decide makes the decision: placement, then each kind of resource. Its steps return early where
// Azure must change first; the graph says then why it is pending.
func (d *decision) decide() error {
	x := d.index
	b, found := placement.Find(x, d.refused)
	d.found = found
	members := backend.New(x, b, &d.found)
	if len(x.Services) == 0 { // where all are refused, machines join and leave all the same
		return nil
	}
	if slices.ContainsFunc(x.LoadBalancers, (*index.LoadBalancer).IsBasic) {
		return d.retire(b, members)
	}
	all := balancer.Plan(x, b, &d.found)
	members.Pools(all)
	links := privatelink.New(x, b, func(lb *index.LoadBalancer) bool { return balancer.IsWritten(x, b, all, lb) })
	for _, name := range links.Orphans {
		d.unclaimed["private link service "+name+"; another Service takes it over"] = name
	}
	if d.more = balancer.RefuseFamilies(x, b, all, &d.found); len(d.more) > 0 {
		return nil
	}
	if migrations, waits := members.Migrations(all); len(migrations) > 0 {
		d.graph.Pending = waits
		return d.add(migrations)
	}
	if d.wait(links.Held...); len(links.Held) > 0 {
		wanted, _, _ := publicip.Plan(x, b, nil)
		return d.add(links.Removals, wanted)
	}
	return d.write(b, all, members, links)
}

// write adds the documents of a round that does all but what waits for another one.
func (d *decision) write(b *batch.Batch, all []*balancer.Wanted, members *backend.Planner, links *privatelink.Plan) error {
	x := d.index
	d.wait(b.Waits...)
	for _, p := range b.Placed() {
		if !p.At.Exists() && !p.IsIPv6() && slices.Contains(slices.Collect(maps.Values(d.refused)), true) {
			d.wait("refused Services may be placed together with frontend " + p.At.Name)
			break
		}
	}
	wanted, released, waits := publicip.Plan(x, b, balancer.KeptIPs(all))
	d.wait(waits...)
	unnamed := publicip.UnnamedGroups(x, b, released)
	balancers := balancer.Nodes(x, b, all)
	for _, group := range unnamed {
		for i := range balancers { // the group is noted first; another round takes the note off
			balancers[i].After = append(balancers[i].After, x.Config.SecurityGroupID())
		}
		d.wait("the security group notes resource group " + group.Name() + " until the addresses there are gone")
	}
	d.wait(balancer.Unproven(all)...)
	machines, err := members.Membership(all)
	if err != nil {
		return err
	}
	var group []plan.Node
	if x.HasSecurityGroup {
		r := security.New(x, b, members, unnamed, &d.found)
		d.wait(r.Pending...)
		d.more = r.Refused
		for _, address := range r.Unclaimed {
			d.unclaimed[address+"; it is removed"] = x.Config.SecurityGroupName
		}
		group = append(group, r.Node)
	}
	return d.add(links.Removals, wanted, balancers, machines, links.Wanted, group, released)
}

func (d *decision) wait(why ...string) { d.graph.Pending = append(d.graph.Pending, why...) }

func (d *decision) add(lists ...[]plan.Node) error {
	for _, n := range slices.Concat(lists...) {
		if err := d.graph.Add(n); err != nil {
			return err
		}
	}
	return nil
}

// retire deletes the load balancers of the SKU that Azure has retired. They cannot change to another SKU, so they are
// recreated in the next round.
func (d *decision) retire(b *batch.Batch, members *backend.Planner) error {
	if len(b.All()) == 0 { // no Service would use the new one
		return nil
	}
	var basic []*balancer.Wanted
	var gone []plan.Node
	for _, lb := range d.index.LoadBalancers {
		if lb.IsBasic() {
			basic = append(basic, &balancer.Wanted{State: lb, Shrank: true})
			gone = append(gone, plan.Gone[network.LoadBalancer](lb.ID, "its SKU is Basic, which Azure has retired", b.Names()...))
			d.wait("load balancer " + lb.ID.Name() + " is recreated with the SKU Standard")
		}
	}
	machines, err := members.Membership(basic)
	if err != nil {
		return err
	}
	return d.add(machines, gone)
}
