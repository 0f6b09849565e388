package plan_test

import (
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/plan"
)

func TestSnapshotLists(t *testing.T) {
	const nic = "/virtualMachines/1/networkInterfaces/n"
	set := group.Resource("C/Sets", "s")
	var docs []azure.Document
	for _, id := range []azure.ID{set, set + "/virtualMachines/2", set + "/virtualMachines/1", set + nic, group.Resource("C/sets", "S2"),
		group + "2/providers/C/sets/other", group.Resource("D/sets", "s")} {
		docs = append(docs, azure.Document(`{"id":"`+string(id)+`"}`))
	}
	have := plan.NewSnapshot(docs...)
	for _, test := range []struct {
		scope azure.ID
		kind  string
		want  string
	}{
		{group, "C/sets", "s S2"},
		{azure.ID(strings.ToUpper(string(group))), "c/SETS/virtualmachines", "1 2"},
		{set, "C/sets/virtualMachines", "1 2"},
		{set, "C/sets/virtualMachines/networkInterfaces", "n"},
		{set, "C/sets", ""}, // itself is not in itself
		{group, "E/sets", ""},
	} {
		var got []string
		for _, d := range have.List(test.scope, test.kind) {
			got = append(got, d.ID().Name())
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s in %s: %v, want %s", test.kind, test.scope, got, test.want)
		}
	}
}

func TestStepsWaitForWhatTheirNodesName(t *testing.T) {
	have := plan.NewSnapshot(azure.Document(`{"id":"`+string(addressID("a"))+`","properties":{}}`),
		azure.Document(`{"id":"`+string(vmID("v"))+`","properties":{}}`))
	var g plan.Graph
	gone := plan.Gone[address](addressID("a"), "a goes")
	gone.After = []azure.ID{azure.ID(strings.ToUpper(string(vmID("v")))), vmID("absent")}
	for _, n := range []plan.Node{gone, plan.Wanted(azure.Resource[machine]{ID: vmID("v"), Location: "x"}, "v moves")} {
		if err := g.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	p, err := plan.Diff(have, g)
	if err != nil || len(p.Steps) != 2 || p.Steps[1].Op != plan.Delete || len(p.Steps[1].After) != 1 {
		t.Fatalf("%v\n%v", err, p)
	}
}
