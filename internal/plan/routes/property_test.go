package routes_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/routes"
)

// TestAnyChangesOfAnyTable checks all changes of all tables. Accepted changes are present afterwards, ranges are
// unique, foreign routes are unchanged, and Azure's limit holds. A second decision changes nothing.
func TestAnyChangesOfAnyTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := routes.Input{Config: routes.Config{Subscription: "s", ResourceGroup: "rg", Table: "rt", Location: "l"}}
		in.Nodes = rapid.SliceOfNDistinct(node(), 0, 6, func(n routes.Node) string { return n.Name }).Draw(t, "nodes")
		before := rapid.SliceOfNDistinct(someRoute(), 0, 12,
			func(r map[string]any) string { return strings.ToLower(r["name"].(string)) }).Draw(t, "table")
		in.Have = plan.NewSnapshot(document(t, distinctRanges(before)))
		in.Changes = rapid.SliceOfN(change(), 0, 8).Draw(t, "changes")

		graph, problems, err := routes.Desired(in)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Diff(in.Have, graph)
		if err != nil || len(p.Steps) > 1 {
			t.Fatalf("%v %v", p, err)
		}
		after := in
		for _, s := range p.Steps {
			after.Have = after.Have.With(s.Body)
		}
		judge(t, in, after, problems)
	})
}

func judge(t *rapid.T, before, after routes.Input, problems []plan.Problem) {
	graph, _, err := routes.Desired(after)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := plan.Diff(after.Have, graph); err != nil || !p.Empty() {
		t.Fatalf("asking again: %v %v", p, err)
	}
	now := byName(t, after.Have)
	ranges := map[string]string{}
	for name, r := range now {
		p := netip.MustParsePrefix(r.view.Properties.AddressPrefix).Masked().String()
		if other := ranges[p]; other != "" {
			t.Fatalf("routes %s and %s both lead to %s", name, other, p)
		}
		ranges[p] = name
	}
	refused := map[string]bool{}
	for _, p := range problems {
		refused[p.Object] = !p.Warning
	}
	last := map[string]routes.Change{}
	for _, c := range before.Changes {
		last[c.Key()] = c
	}
	for key, c := range last {
		r, there := now[key]
		switch {
		case c.Gone && there:
			t.Fatalf("%s is still there", key)
		case !c.Gone && !refused[key] && (!there || r.view.Properties.NextHopIPAddress != c.Hop.String()):
			t.Fatalf("%+v was neither refused nor done: %+v", c, now)
		}
	}
	for name, r := range byName(t, before.Have) {
		if strings.HasPrefix(name, "foreign") && now[name].text != r.text {
			t.Fatalf("a foreign route changed: %s -> %s", r.text, now[name].text)
		}
	}
}

type seen struct {
	view azure.Child[network.Route]
	text string
}

func byName(t *rapid.T, have plan.Snapshot) map[string]seen {
	all := map[string]seen{}
	for _, doc := range have.List("/subscriptions/s/resourceGroups/rg", network.RouteTables) {
		var table struct {
			Properties struct{ Routes []json.RawMessage }
		}
		if err := json.Unmarshal(doc, &table); err != nil {
			t.Fatal(err)
		}
		for _, raw := range table.Properties.Routes {
			var tree any
			s := seen{}
			if json.Unmarshal(raw, &s.view) != nil || json.Unmarshal(raw, &tree) != nil {
				t.Fatal(string(raw))
			}
			text, _ := json.Marshal(tree)
			s.text = string(text)
			all[strings.ToLower(s.view.Name)] = s
		}
	}
	return all
}

func document(t *rapid.T, list []map[string]any) azure.Document {
	text, err := json.Marshal(map[string]any{"id": tableID, "name": "rt", "etag": "1", "properties": map[string]any{"routes": list}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func distinctRanges(list []map[string]any) []map[string]any {
	taken := map[any]bool{}
	kept := []map[string]any{}
	for _, r := range list {
		to := r["properties"].(map[string]any)["addressPrefix"]
		if !taken[to] {
			taken[to] = true
			kept = append(kept, r)
		}
	}
	return kept
}

func nodeName() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"node1", "node10", "node2", "NODE3", "node4", "x"})
}

func ipv4Range() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("10.244.%d.0/24", rapid.IntRange(0, 5).Draw(t, "range"))
	})
}

func node() *rapid.Generator[routes.Node] {
	return rapid.Custom(func(t *rapid.T) routes.Node {
		n := routes.Node{Name: nodeName().Draw(t, "name"), Unmanaged: rapid.IntRange(0, 4).Draw(t, "unmanaged") == 0}
		if rapid.Bool().Draw(t, "has a range") {
			n.CIDRs = []string{ipv4Range().Draw(t, "own")}
		}
		return n
	})
}

func someRoute() *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		to := ipv4Range().Draw(t, "to")
		name := nodeName().Draw(t, "node")
		name = rapid.SampledFrom([]string{name, routes.Name(name, to), "foreign-" + name}).Draw(t, "route")
		return route(name, to, fmt.Sprintf("10.240.0.%d", rapid.IntRange(4, 6).Draw(t, "hop")))
	})
}

func change() *rapid.Generator[routes.Change] {
	return rapid.Custom(func(t *rapid.T) routes.Change {
		c := routes.Change{Node: nodeName().Draw(t, "of"), CIDR: ipv4Range().Draw(t, "cidr"), Gone: rapid.Bool().Draw(t, "gone")}
		if !c.Gone {
			c.Hop = netip.MustParseAddr(fmt.Sprintf("10.240.0.%d", rapid.IntRange(4, 6).Draw(t, "via")))
		}
		return c
	})
}

// FuzzKnown checks that a node's name and ranges are recovered from the documents.
func FuzzKnown(f *testing.F) {
	f.Add("node1____102441024", "10.244.1.0/24", "10.240.0.4")
	f.Add("____", "", "")
	f.Fuzz(func(t *testing.T, name, to, hop string) {
		text, err := json.Marshal(map[string]any{"id": tableID, "properties": map[string]any{"routes": []any{route(name, to, hop), nil}}})
		if err != nil {
			t.Skip()
		}
		in := routes.Input{
			Config: routes.Config{Subscription: "s", ResourceGroup: "rg", Table: "rt"}, Have: plan.NewSnapshot(text),
			Nodes: []routes.Node{{Name: name, CIDRs: []string{to}}},
		}
		if _, err := routes.Known(in); err != nil {
			t.Fatal(err)
		}
		if _, _, err := routes.Desired(in); err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkDesired adds one node and deletes another in a table with room for one more route, among
// 5,000 nodes.
func BenchmarkDesired(b *testing.B) {
	in := routes.Input{Config: routes.Config{Subscription: "s", ResourceGroup: "rg", Table: "rt"}}
	var list []any
	for i := range 5000 {
		n := routes.Node{Name: fmt.Sprintf("node%d", i), CIDRs: []string{fmt.Sprintf("10.%d.%d.0/24", i/256, i%256)}}
		in.Nodes = append(in.Nodes, n)
		if i < 399 {
			list = append(list, route(routes.Name(n.Name, n.CIDRs[0]), n.CIDRs[0], "10.240.0.4"))
		}
	}
	text, err := json.Marshal(map[string]any{"id": tableID, "name": "rt", "properties": map[string]any{"routes": list}})
	if err != nil {
		b.Fatal(err)
	}
	in.Have = plan.NewSnapshot(text)
	in.Changes = []routes.Change{
		{Node: "node399", CIDR: "10.1.143.0/24", Hop: netip.MustParseAddr("10.240.0.5")},
		{Node: "node0", CIDR: "10.0.0.0/24", Gone: true},
	}
	for b.Loop() {
		graph, _, err := routes.Desired(in)
		if err != nil {
			b.Fatal(err)
		}
		if p, err := plan.Diff(in.Have, graph); err != nil || len(p.Steps) != 1 {
			b.Fatal(p, err)
		}
	}
}
