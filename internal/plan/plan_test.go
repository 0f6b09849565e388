package plan_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/plan"
)

var update = flag.Bool("update", false, "write the golden files anew")

const group = azure.ID("/subscriptions/s/resourceGroups/g")

// The shapes of a small world: a balancer refers to addresses, and holds pools
// that machines refer to.
type (
	address struct {
		Idle int `json:"idle,omitempty"`
	}
	balancer struct {
		Frontends []azure.Child[frontend] `json:"frontends,omitempty"`
		Pools     []azure.Child[struct{}] `json:"pools,omitempty"`
	}
	frontend struct {
		Address *azure.Reference `json:"address,omitempty" azure:"exact"`
	}
	machine struct {
		Pools []azure.Reference `json:"pools,omitempty"`
	}
)

func addressID(name string) azure.ID { return group.Resource("N/addresses", name) }
func lbID(name string) azure.ID      { return group.Resource("N/balancers", name) }
func vmID(name string) azure.ID      { return group.Resource("C/machines", name) }

func wantAddress(name string, idle int) plan.Node {
	return plan.Wanted(azure.Resource[address]{ID: addressID(name), Properties: address{Idle: idle}}, "address of "+name, "default/"+name)
}

func wantBalancer(name string, frontends []string, pools []string) plan.Node {
	r := azure.Resource[balancer]{ID: lbID(name)}
	r.Properties.Frontends = []azure.Child[frontend]{}
	r.Properties.Pools = []azure.Child[struct{}]{}
	for _, f := range frontends {
		r.Properties.Frontends = append(r.Properties.Frontends,
			azure.Child[frontend]{Name: f, Properties: frontend{Address: azure.Ref(addressID(f))}})
	}
	for _, p := range pools {
		r.Properties.Pools = append(r.Properties.Pools, azure.Child[struct{}]{Name: p})
	}
	return plan.Wanted(r, "frontends "+strings.Join(frontends, ","))
}

func wantMachine(name string, lb string, pools ...string) plan.Node {
	r := azure.Resource[machine]{ID: vmID(name)}
	r.Properties.Pools = []azure.Reference{}
	for _, p := range pools {
		r.Properties.Pools = append(r.Properties.Pools, azure.Reference{ID: lbID(lb).Child("pools", p)})
	}
	return plan.Wanted(r, "membership of "+name)
}

func graph(t testing.TB, nodes ...plan.Node) plan.Graph {
	t.Helper()
	var g plan.Graph
	for _, n := range nodes {
		if err := g.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// applied is what Azure holds after a plan. It has the bodies as they were put. The id, an etag and children's ids
// are filled in as the server does.
func applied(t testing.TB, have plan.Snapshot, p plan.Plan) plan.Snapshot {
	t.Helper()
	for i, s := range p.Steps {
		for _, before := range s.After {
			if before >= i {
				t.Fatalf("step %d comes after step %d", i+1, before+1)
			}
		}
		if s.Op == plan.Delete {
			have = have.Without(s.ID)
			continue
		}
		var doc map[string]any
		if err := json.Unmarshal(s.Body, &doc); err != nil {
			t.Fatal(err)
		}
		doc["id"], doc["etag"] = string(s.ID), fmt.Sprintf(`W/"%d"`, i)
		properties, _ := doc["properties"].(map[string]any)
		for _, list := range []string{"frontends", "pools"} {
			children, _ := properties[list].([]any)
			for _, c := range children {
				if child, ok := c.(map[string]any); ok && list != "pools" || strings.Contains(string(s.ID), "balancers") {
					child["id"] = string(s.ID.Child(list, fmt.Sprint(child["name"])))
				}
			}
		}
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		have = have.With(text)
	}
	return have
}

func diff(t testing.TB, have plan.Snapshot, g plan.Graph) plan.Plan {
	t.Helper()
	p, err := plan.Diff(have, g)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Each golden file is the plan's text for one change of the small world.
func TestPlans(t *testing.T) {
	world := func(nodes ...plan.Node) plan.Snapshot {
		return applied(t, plan.Snapshot{}, diff(t, plan.Snapshot{}, graph(t, nodes...)))
	}
	full := []plan.Node{
		wantMachine("vm", "lb", "p"),
		wantBalancer("lb", []string{"a", "b"}, []string{"p"}),
		wantAddress("a", 4), wantAddress("b", 4),
	}
	renamed := wantMachine("vm", "lb", "q")
	patched := wantMachine("vm", "lb")
	patched.Patch = true
	waiting := graph(t, wantAddress("a", 4))
	waiting.Pending = []string{"the address of default/a"}
	for name, test := range map[string]struct {
		have plan.Snapshot
		want plan.Graph
	}{
		"create-all": {plan.Snapshot{}, graph(t, full...)},
		"nothing":    {world(full...), graph(t, full...)},
		"late-facts": {plan.Snapshot{}, waiting},
		"drop-frontend": {world(full...),
			graph(t, wantBalancer("lb", []string{"a"}, []string{"p"}), plan.Gone[address](addressID("b"), "it is not used"))},
		"delete-all": {world(full...), graph(t,
			plan.Gone[address](addressID("a"), "unused"), plan.Gone[address](addressID("b"), "unused"),
			plan.Gone[balancer](lbID("lb"), "empty"), wantMachine("vm", "lb"))},
		"delete-what-is-not-there": {plan.Snapshot{}, graph(t, plan.Gone[address](addressID("a"), "unused"))},
		"leave-a-pool": {world(full...), graph(t,
			wantBalancer("lb", []string{"a", "b"}, []string{}), wantMachine("vm", "lb"))},
		"join-a-new-pool":  {world(full...), graph(t, renamed, wantBalancer("lb", []string{"a", "b"}, []string{"p", "q"}))},
		"patch-a-section":  {world(full...), graph(t, patched)},
		"change-a-setting": {world(full...), graph(t, wantAddress("a", 30))},
	} {
		t.Run(name, func(t *testing.T) {
			p := diff(t, test.have, test.want)
			got := p.String()
			for _, s := range p.Steps {
				if s.Patch {
					got += "body of " + s.ID.Name() + ": " + string(s.Body) + "\n"
				}
			}
			golden(t, name, got)
			if again := diff(t, applied(t, test.have, withoutPatches(p)), test.want); !again.Empty() &&
				!slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Patch }) {
				t.Errorf("applied, there is still to do:\n%s", again)
			}
		})
	}
}

// withoutPatches is the plan's part that [applied] can simulate.
func withoutPatches(p plan.Plan) plan.Plan {
	p.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(s plan.Step) bool { return s.Patch })
	return p
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

func TestMistakesOfAPlannerAreErrors(t *testing.T) {
	var g plan.Graph
	if err := g.Add(wantAddress("a", 1)); err != nil {
		t.Fatal(err)
	}
	if err := g.Add(wantAddress("A", 2)); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("the same resource twice: %v", err)
	}
	if err := g.Add(plan.Node{Why: "x"}); err == nil {
		t.Error("a node without id was accepted")
	}
	ring := graph(t,
		plan.Wanted(azure.Resource[machine]{ID: vmID("x"), Properties: machine{Pools: []azure.Reference{{ID: vmID("y")}}}}, "x"),
		plan.Wanted(azure.Resource[machine]{ID: vmID("y"), Properties: machine{Pools: []azure.Reference{{ID: vmID("x")}}}}, "y"))
	if _, err := plan.Diff(plan.Snapshot{}, ring); err == nil || !strings.Contains(err.Error(), "machines/x") {
		t.Errorf("a ring of references: %v", err)
	}
	broken := plan.NewSnapshot(azure.Document(`{"id":"` + string(addressID("a")) + `","properties":{"idle":"four"}}`))
	if _, err := plan.Diff(broken, graph(t, wantAddress("a", 4))); err == nil || !strings.Contains(err.Error(), "addresses/a") {
		t.Errorf("a document of another shape: %v", err)
	}
}

// Applying a plan gives what was wanted, whatever is there and whatever is wanted. The order respects every
// reference, and nothing outside of the graph gets a step.
func TestPlanProperties(t *testing.T) {
	names := []string{"a", "b", "c"}
	draw := func(t *rapid.T, label string) []plan.Node {
		var nodes []plan.Node
		used := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, label+" frontends")
		for _, n := range used {
			nodes = append(nodes, wantAddress(n, rapid.IntRange(1, 3).Draw(t, label+" idle")))
		}
		pools := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, label+" pools")
		if len(used) > 0 {
			nodes = append(nodes, wantBalancer("lb", used, pools))
		} else {
			pools = nil
		}
		return append(nodes, wantMachine("vm", "lb", pools...))
	}
	rapid.Check(t, func(rt *rapid.T) {
		before := draw(rt, "before")
		foreign := wantAddress("foreign", 9)
		have := applied(t, plan.Snapshot{}, diff(t, plan.Snapshot{}, graph(t, append(before, foreign)...)))
		after := draw(rt, "after")
		g := graph(t, after...)
		kept := map[string]bool{}
		for _, n := range after {
			kept[n.ID.Key()] = true
		}
		for _, n := range before {
			if kept[n.ID.Key()] {
				continue
			}
			gone := plan.Gone[address](n.ID, "not wanted")
			if n.ID.Is("N/balancers") {
				gone = plan.Gone[balancer](n.ID, "not wanted")
			}
			if err := g.Add(gone); err != nil {
				rt.Fatal(err)
			}
		}
		p, err := plan.Diff(have, g)
		if err != nil {
			// A machine that moves from a deleted pool to a new one needs the balancer both before and after it. Diff
			// then says that there is no order.
			if !strings.Contains(err.Error(), "no order") {
				rt.Fatal(err)
			}
			return
		}
		for _, s := range p.Steps {
			if s.ID.Equal(foreign.ID) {
				rt.Fatalf("touches what is not ours: %s", s)
			}
		}
		checkOrder(rt, have, p)
		end := applied(t, have, p)
		if again, err := plan.Diff(end, g); err != nil || !again.Empty() {
			rt.Fatalf("still to do: %v\n%s", err, again)
		}
		if second, _ := plan.Diff(have, g); second.String() != p.String() {
			rt.Fatal("the same arguments gave another plan")
		}
	})
}

// checkOrder fails when a step deletes what something still refers to, or refers
// to what is not there yet.
func checkOrder(t *rapid.T, have plan.Snapshot, p plan.Plan) {
	for _, s := range p.Steps {
		if s.Op == plan.Delete && s.ID.Is("N/addresses") {
			if lb, ok, _ := plan.View[balancer](have, lbID("lb")); ok {
				for _, f := range lb.Properties.Frontends {
					if f.Properties.Address.ID.Equal(s.ID) {
						t.Fatalf("%s while frontend %s uses it", s, f.Name)
					}
				}
			}
			have = have.Without(s.ID)
			continue
		}
		if s.Op == plan.Delete {
			have = have.Without(s.ID)
			continue
		}
		var doc map[string]any
		if err := json.Unmarshal(s.Body, &doc); err != nil {
			t.Fatal(err)
		}
		doc["id"] = string(s.ID)
		text, _ := json.Marshal(doc)
		if lb, err := azure.Decode[balancer](text); err == nil && s.ID.Is("N/balancers") {
			for _, f := range lb.Properties.Frontends {
				if _, ok := have.Get(f.Properties.Address.ID); !ok {
					t.Fatalf("%s refers to %s, which is not there yet", s, f.Properties.Address.ID)
				}
			}
		}
		have = have.With(text)
	}
}
