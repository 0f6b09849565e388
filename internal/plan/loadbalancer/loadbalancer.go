package loadbalancer

import (
	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/machine"
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

// Machines are those that exist, by id key, as far as a decision reads them. It reads all that had a Node which was deleted.
func Machines(in Input) (map[string]bool, error) {
	groups, err := machine.Read(in, index.Balancers(in))
	there := map[string]bool{}
	for _, g := range groups {
		for _, m := range g.Machines {
			there[m.ID.Key()] = true
		}
	}
	return there, err
}
