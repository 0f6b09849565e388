package loadbalancer

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/backend"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/placement"
	"kaz/internal/plan/loadbalancer/query"
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

// Needs names what Have must hold to decide, given what it holds already: ask
// again with what was read, until it names nothing new.
func Needs(in Input) ([]azure.ID, []azure.Query) {
	return query.Needs(in, func() (plan.Graph, error) {
		graph, _, err := Desired(in)
		return graph, err
	})
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

// Status is the addresses of the live Services by their keys. A Service that is not in place yet, because a frontend,
// a rule or an address is missing, has no entry, and neither has one with a problem that keeps it from being served.
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
