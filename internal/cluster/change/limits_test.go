package change

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scaled is a cluster with an autoscaled pool, and what an upgrade makes of it.
func scaled(nodes, surge int, zones []string) (Cluster, Target) {
	pool := general(nodes, "1.36.2")
	pool[0].Limits, pool[0].Zones = Limits{1, 6}, zones
	return Cluster{Version: "1.36.5", Members: members(1, "1.36.5"), Pools: pool},
		Target{Version: "1.36.5", Members: 1, Pools: []PoolTarget{{Name: "general", Replicas: 2, Autoscaled: true, Limits: Limits{1, 6},
			Surge: amount(surge), Unavailable: amount(rank(surge == 0))}}}
}

// TestAutoscaled shows the plan of scenario 30: the autoscaler is held with the model, and released after the last node.
func TestAutoscaled(t *testing.T) {
	c, to := scaled(2, 1, nil)
	steps, err := Plan(c, to)
	if err != nil {
		t.Fatal(err)
	}
	want := `set the model of pool general 1.36.5 (autoscaler held at 3)
grow pool general to 3
drain node general general-1
delete node general general-1
grow pool general to 3
drain node general general-0
delete node general general-0
let the autoscaler scale pool general (1 to 6)`
	if diff := cmp.Diff(want, lines(steps)); diff != "" {
		t.Error(diff)
	}
	c, to = scaled(0, 1, nil)
	if steps, err := Plan(c, to); err != nil || lines(steps) != "set the model of pool general 1.36.5" {
		t.Errorf("an empty pool: %v %s", err, lines(steps))
	}
	c, to = scaled(2, 1, nil)
	c.Pools[0].Model, to.Pools[0].Limits = "1.36.5", Limits{2, 9}
	c.Pools[0].Nodes = nodes("general", 2, "1.36.5")
	if steps, err := Plan(c, to); err != nil || lines(steps) != "let the autoscaler scale pool general (2 to 9)" {
		t.Errorf("other limits: %v %s", err, lines(steps))
	}
}

// TestAutoscalerActs lets an autoscaler do after each step whatever its limits allow. The autoscaler removes nothing while
// nodes are replaced. The pool never has more nodes than the upgrade makes. At the end all nodes are new.
func TestAutoscalerActs(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 7))
		zones := [][]string{nil, {"1", "2", "3"}}[random.IntN(2)]
		count, surge := 1+random.IntN(5), random.IntN(4)
		c, to := scaled(count, surge, zones)
		begun := false
		for i := 0; ; i++ {
			step, err := Next(c, to)
			if err != nil || i > 200 {
				t.Fatalf("seed %d: %v after %d steps: %v", seed, err, i, step)
			}
			if step == nil {
				break
			}
			c = Apply(c, *step)
			p := c.pool("general")
			begun = begun || step.Action == SetModel
			if replaced := begun && step.Action != Release; replaced && (len(p.Nodes) > p.Limits.Least || p.Limits.Least != p.Limits.Most) {
				t.Fatalf("seed %d: after %s %d nodes, limits %v", seed, step, len(p.Nodes), p.Limits)
			}
			if step.Action != Release && random.IntN(2) == 0 && len(p.Nodes) < p.Limits.Most {
				p.grow(len(p.Nodes) + 1)
			}
		}
		p := c.pool("general")
		if p.Limits != to.Pools[0].Limits || slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Version != "1.36.5" }) ||
			len(p.Nodes) < count-rank(surge == 0) {
			t.Errorf("seed %d: ends with %+v", seed, p)
		}
	}
}

// TestAborted checks that an upgrade which begins after an aborted one keeps the nodes that the autoscaler has made since.
func TestAborted(t *testing.T) {
	c, to := scaled(3, 1, nil)
	for range 4 {
		step, err := Next(c, to)
		if err != nil {
			t.Fatal(err)
		}
		c = Apply(c, *step)
	}
	p := c.pool("general")
	p.Limits = to.Pools[0].Limits // as an abort does
	p.grow(6)
	steps, err := Plan(c, to)
	if err != nil || steps[0].String() != "set the model of pool general 1.36.5 (autoscaler held at 7)" {
		t.Errorf("%v %s", err, lines(steps))
	}
	for _, s := range steps {
		c = Apply(c, s)
	}
	if n := len(c.pool("general").Nodes); n != 6 {
		t.Errorf("the pool has %d nodes, want 6: %s", n, fmt.Sprint(c.Pools))
	}
}
