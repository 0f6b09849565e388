package loadbalancer_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer"
)

// TestMachinesWhoseNodeWasDeleted checks that a machine leaves the pool after its Node was deleted from Kubernetes,
// though it runs on. A machine that has no Node yet stays. So do the model of new machines and the last machine in the
// pool.
func TestMachinesWhoseNodeWasDeleted(t *testing.T) {
	instance := func(i int) azure.ID { return azure.ID(fmt.Sprintf("%s/virtualMachines/%d", vmss, i)) }
	excludes := func(n *v1.Node) { n.Labels = map[string]string{v1.LabelNodeExcludeBalancers: ""} }
	for name, c := range map[string]struct {
		nodes    []int // that there still are
		excluded []int // of those
		deleted  []int
		leave    []int
	}{
		"one":                       {nodes: []int{0, 1}, deleted: []int{2}, leave: []int{2}},
		"without a Node yet":        {nodes: []int{0, 1}},
		"one of each":               {nodes: []int{0}, deleted: []int{1}, leave: []int{1}},
		"all but one":               {nodes: []int{0}, deleted: []int{1, 2}, leave: []int{1, 2}},
		"has a Node again":          {nodes: []int{0, 1, 2}, deleted: []int{1}},
		"beside excluded ones":      {nodes: []int{0, 1}, excluded: []int{0}, deleted: []int{2}, leave: []int{0, 2}},
		"no other node is added":    {nodes: []int{0}, excluded: []int{0}, deleted: []int{1, 2}},
		"no Node at all":            {deleted: []int{0, 1, 2}},
		"of a machine that is gone": {nodes: []int{0, 1, 2}, deleted: []int{7}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(3)
			in := loadbalancer.Input{Config: config(), Services: []loadbalancer.Service{{Service: service("web", tcp(80, 30080))}},
				Nodes: machines(3)}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			all := in.Nodes
			in.Nodes = nil
			for _, i := range c.nodes {
				if slices.Contains(c.excluded, i) {
					excludes(all[i])
				}
				in.Nodes = append(in.Nodes, all[i])
			}
			for _, i := range c.deleted {
				in.DeletedNodes = append(in.DeletedNodes, instance(i))
			}
			rounds, err := w.commit(in)
			if err != nil {
				t.Fatal(err)
			}
			var left []azure.ID
			for _, r := range rounds {
				for _, s := range r.plan.Steps {
					left = append(left, s.ID)
				}
			}
			var want []azure.ID
			for _, i := range c.leave {
				want = append(want, instance(i))
			}
			if slices.Sort(left); !slices.Equal(left, want) {
				t.Errorf("written was %v, want %v", left, want)
			}
		})
	}
}
