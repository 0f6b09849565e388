// Package loadbalancer decides what Azure must hold for the Services of type LoadBalancer. That is public IPs, the load
// balancers' frontends, rules and probes, the security group's rules, and the members of the backend pools. Layer L1:
// pure functions of Kubernetes objects and a snapshot of Azure.
//
// [Desired] takes the Services of one commit, few or all of the cluster. What belongs to other Services, or to no
// Service, stays as it is. Names, tags and values are the established ones of clusters on Azure, so that kaz takes over a
// running cluster without a write.
//
// A Service has one address in each of its IP families. Each address has a placement: a frontend of the external or of
// the internal load balancer. The frontend is the Service's own, or that of another Service with the same address. All
// load balancers of a cluster and their security group are planned together.
//
// The packages below are the steps of a decision. Each imports only packages above it:
//
//	problem, address    what is wrong; IP addresses and families
//	cluster             the configuration and its ids; the role of a node
//	naming              names and tags in Azure
//	spec                what a Service asks for, validated
//	index               the Services, nodes and Azure's documents, read once
//	batch               the Services of a decision with their placements
//	admission           whether what a Service names exists and can be read
//	publicip            public IPs, their tags and DNS labels
//	privatelink         private link services
//	placement           load balancer, frontend and public IP of each address
//	balancer            which load balancers exist, their order, frontends, rules and probes
//	backend             scale sets and machines; members of the backend pools
//	note                resource groups that later decisions must know
//	security            rules of the security group
//	leftover            what deleted Services left behind
package loadbalancer

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/backend"
	"kaz/internal/plan/loadbalancer/balancer"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/placement"
	"kaz/internal/plan/loadbalancer/privatelink"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/security"
	"kaz/internal/plan/loadbalancer/spec"
)

// What a decision is made of.
type (
	Input       = index.Input
	Service     = spec.Service
	Config      = cluster.Config
	Balancer    = cluster.Balancer
	SharedProbe = cluster.SharedProbe
)

// Desired decides what Azure must hold for the Services of one commit, and names
// what is wrong with them. An error says that the snapshot cannot be read.
//
// An address that Azure chooses is a [plan.Output] in the security group. The group is therefore written after the new
// public IP, or after the load balancer that brings a private address. The graph is Pending where Azure wants an order
// that one plan cannot have: docs/decisions/rounds.md. It is also Pending where a new load balancer must be read again:
// docs/decisions/created-pools.md.
func Desired(in Input) (plan.Graph, []plan.Problem, error) {
	x, err := index.Read(in)
	if err != nil {
		return plan.Graph{}, nil, err
	}
	refused := map[string]bool{}     // by UID; true for those that other Services may help
	unclaimed := map[string]string{} // what no Service uses any more, with the object of the warning
	var found problem.List
	for {
		r, err := decide(x, refused)
		if err != nil {
			return plan.Graph{}, nil, err
		}
		found = append(found, r.found...)
		maps.Copy(unclaimed, r.unclaimed)
		if len(r.refused) == 0 {
			for _, what := range slices.Sorted(maps.Keys(unclaimed)) {
				found.Warn(unclaimed[what], problem.Unclaimed, "no Service uses %s", what)
			}
			graph, err := r.graph()
			return graph, found.Distinct(), err
		}
		// What these Services have stays, and the others are decided again.
		for _, uid := range r.refused {
			refused[uid] = slices.ContainsFunc(r.found, func(p plan.Problem) bool { return p.Reason == problem.Family })
		}
	}
}

// round is what can be decided at once.
type round struct {
	nodes     []plan.Node
	waits     []string // why another round follows
	found     problem.List
	unclaimed map[string]string // what no Service uses any more, with the object of the warning
	refused   []string          // Services that must be refused besides, by UID; the round counts for nothing then
}

func (r round) graph() (plan.Graph, error) {
	g := plan.Graph{Pending: r.waits}
	for _, n := range r.nodes {
		if err := g.Add(n); err != nil {
			return plan.Graph{}, err
		}
	}
	return g, nil
}

// decide decides a round without the Services that are refused: the placement of each address, then the documents.
func decide(x *index.Index, refused map[string]bool) (round, error) {
	b, found := placement.Find(x, refused)
	members := backend.New(x, b)
	r, err := documents(x, b, members, slices.Contains(slices.Collect(maps.Values(refused)), true))
	r.found = slices.Concat(found, r.found, members.Problems)
	return r, err
}

// documents decides each kind of resource. Where Azure must change first, the round has that change alone. Helped says that other
// Services may help one that is refused.
func documents(x *index.Index, b *batch.Batch, members *backend.Planner, helped bool) (round, error) {
	if len(x.Services) == 0 { // where all are refused, machines join and leave all the same
		return round{}, nil
	}
	if slices.ContainsFunc(x.LoadBalancers, (*index.LoadBalancer).IsBasic) {
		return retire(x, b, members)
	}
	all, found := balancer.Plan(x, b)
	members.Pools(all)
	links := privatelink.New(x, b, func(lb *index.LoadBalancer) bool { return balancer.IsWritten(x, b, all, lb) })
	r := round{found: found, unclaimed: map[string]string{}}
	for _, name := range links.Orphans {
		r.unclaimed["private link service "+name+"; another Service takes it over"] = name
	}
	refused, found := balancer.RefuseFamilies(x, b, all)
	if r.refused, r.found = refused, append(r.found, found...); len(refused) > 0 {
		return r, nil
	}
	if migrations, waits := members.Migrations(all); len(migrations) > 0 {
		r.nodes, r.waits = migrations, waits
		return r, nil
	}
	if len(links.Held) > 0 {
		wanted, _, _ := publicip.Plan(x, b, nil)
		r.nodes, r.waits = slices.Concat(links.Removals, wanted), links.Held
		return r, nil
	}
	return everything(x, b, all, members, links, helped, r)
}

// everything adds the documents of a round to it, except what waits for another round.
func everything(x *index.Index, b *batch.Batch, all []*balancer.Wanted, members *backend.Planner, links *privatelink.Plan, helped bool,
	r round,
) (round, error) {
	r.waits = append(r.waits, b.Waits...)
	for p := range b.Placed() {
		if helped && !p.At.Exists() && !p.IsIPv6() {
			r.waits = append(r.waits, "refused Services may be placed together with frontend "+p.At.Name)
			break
		}
	}
	wanted, released, waits := publicip.Plan(x, b, balancer.KeptIPs(all))
	r.waits = append(r.waits, waits...)
	unnamed := publicip.UnnamedGroups(x, b, released)
	balancers := balancer.Nodes(x, b, all)
	for _, group := range unnamed {
		for i := range balancers { // the group is noted first; another round takes the note off
			balancers[i].After = append(balancers[i].After, x.Config.SecurityGroupID())
		}
		r.waits = append(r.waits, "the security group notes resource group "+group.Name()+" until the addresses there are gone")
	}
	r.waits = append(r.waits, balancer.Unproven(all)...)
	machines, err := members.Membership(all)
	if err != nil {
		return round{}, err
	}
	var group []plan.Node
	if x.HasSecurityGroup {
		rules := security.New(x, b, members, unnamed)
		r.waits, r.refused, r.found = append(r.waits, rules.Pending...), rules.Refused, append(r.found, rules.Problems...)
		for _, address := range rules.Unclaimed {
			r.unclaimed[address+"; it is removed"] = x.Config.SecurityGroupName
		}
		group = append(group, rules.Node)
	}
	r.nodes = slices.Concat(links.Removals, wanted, balancers, machines, links.Wanted, group, released)
	return r, nil
}

// retire deletes the load balancers of the SKU that Azure has retired. They cannot change to another SKU, so they are
// recreated in the next round.
func retire(x *index.Index, b *batch.Batch, members *backend.Planner) (round, error) {
	if len(b.All) == 0 { // no Service would use the new one
		return round{}, nil
	}
	var basic []*balancer.Wanted
	var gone []plan.Node
	var waits []string
	for _, lb := range x.LoadBalancers {
		if lb.IsBasic() {
			basic = append(basic, &balancer.Wanted{State: lb, Shrank: true})
			gone = append(gone, plan.Gone[network.LoadBalancer](lb.ID, "its SKU is Basic, which Azure has retired", b.Names()...))
			waits = append(waits, "load balancer "+lb.ID.Name()+" is recreated with the SKU Standard")
		}
	}
	machines, err := members.Membership(basic)
	return round{nodes: slices.Concat(machines, gone), waits: waits}, err
}

// Machines are the machines and scale sets that exist, by id key, as far as a decision reads them. It reads all machines
// that had a Node which was deleted.
func Machines(in Input) (map[string]bool, error) {
	balancers, _ := index.Balancers(in) // the decision reports an error
	machines, err := backend.ReadMachines(in, balancers)
	there := make(map[string]bool, len(machines))
	for _, m := range machines {
		there[m.ID.Key()] = true
	}
	return there, err
}

// Status returns the addresses of the live Services by their keys. A Service has no entry while a frontend, a rule or an
// address is missing. A Service with a problem that keeps it from being served has no entry either.
func Status(in Input) (map[string][]v1.LoadBalancerIngress, error) {
	x, err := index.Read(in)
	if err != nil {
		return nil, err
	}
	b, _ := placement.Find(x, nil)
	status := make(map[string][]v1.LoadBalancerIngress, len(b.Live))
	for _, s := range b.Live {
		if ingress := ingressOf(x, s); ingress != nil {
			status[s.Key()] = ingress
		}
	}
	return status, nil
}

// ingressOf is the addresses of a Service, nil while anything is missing. They are in the order of
// the load balancer's frontends, in which users know them.
func ingressOf(x *index.Index, s batch.Served) []v1.LoadBalancerIngress {
	if len(s.Placements) < len(s.Addresses) {
		return nil
	}
	inOrder := slices.SortedStableFunc(slices.Values(s.Placements), func(a, b batch.Placement) int {
		return a.At.LB.Order(a.At.Name) - b.At.LB.Order(b.At.Name)
	})
	var ingress []v1.LoadBalancerIngress
	for _, p := range inOrder {
		address := x.Address(p.At)
		if address == "" || p.NewRules() > 0 || p.IP != "" && !p.At.State().PublicIPAddress.To().Equal(p.IP) {
			return nil
		}
		ingress = append(ingress, v1.LoadBalancerIngress{IP: address})
	}
	for _, ip := range s.Further {
		ingress = append(ingress, v1.LoadBalancerIngress{IP: ip.String()})
	}
	return ingress
}
