package graph

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	identities = "Microsoft.ManagedIdentity/userAssignedIdentities"
	vnets      = "Microsoft.Network/virtualNetworks"
	nics       = "Microsoft.Network/networkInterfaces"
	machines   = "Microsoft.Compute/virtualMachines"
)

// TestOrder checks that the order follows from the references alone.
func TestOrder(t *testing.T) {
	network := &Unit{Name: "network"}
	vnet := network.Add(Resource{Symbol: "vnet", Type: vnets, Name: "v"})
	identity := &Unit{Name: "zz-identity"}
	id := Identity{identity.Add(Resource{Symbol: "nodes", Type: identities, Name: "i"})}
	pool := &Unit{Name: "pool"}
	nic := Ref{unit: "pool", symbol: "nic"}
	pool.Add(Resource{Symbol: "a-machine", Type: machines, Name: "m", Body: map[string]any{
		"nic": nic, "client": id.ClientID(), "self": Ref{unit: "pool", symbol: "a-machine"}, "secret": Parameter("token"),
	}})
	pool.Add(Resource{Symbol: "nic", Type: nics, Name: "n", Condition: "seed", Body: map[string]any{
		"subnets": []any{Subnet{vnet.Part("subnets", "nodes")}}, "other": Existing("/subscriptions/s/resourceGroups/g"),
	}})
	l, err := Link([]*Unit{pool, identity, network})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range l.Units {
		for _, r := range u.Resources {
			got = append(got, u.Name+"/"+r.Symbol+" after "+strings.Join(append(u.After, r.DependsOn...), ","))
		}
	}
	want := []string{"network/vnet after ", "zz-identity/nodes after ", "pool/nic after network,zz-identity",
		"pool/a-machine after network,zz-identity,nic"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	linked := l.Unit("pool")
	if diff := cmp.Diff([]string{"seed", "token"}, linked.Parameters); diff != "" {
		t.Error(diff)
	}
	if _, has := linked.Inputs["zzIdentityNodesClientId"]; !has || len(l.Unit("zz-identity").Outputs) != 1 {
		t.Errorf("the client id does not go from unit to unit: %v", linked.Inputs)
	}
}

func TestRefused(t *testing.T) {
	unit := func(name string, resources ...Resource) *Unit {
		u := &Unit{Name: name}
		for _, r := range resources {
			u.Add(r)
		}
		return u
	}
	vm := func(symbol, name string, refs ...any) Resource {
		return Resource{Symbol: symbol, Type: machines, Name: name, Body: map[string]any{"refs": refs}}
	}
	for _, test := range []struct {
		units []*Unit
		want  string
	}{
		{[]*Unit{unit("a"), unit("a")}, "two units have the name a"},
		{[]*Unit{unit("a", vm("x", "1"), vm("x", "2"))}, "unit a has two resources with the symbol x"},
		{[]*Unit{unit("a", vm("x", "same")), unit("b", vm("y", "Same"))},
			"a/x and b/y are the same resource: Microsoft.Compute/virtualMachines Same"},
		{[]*Unit{unit("a", vm("x", "a/b"))},
			`a/x: the name "a/b" does not fit to the type Microsoft.Compute/virtualMachines: want a segment for each segment behind the provider`},
		{[]*Unit{unit("a", Resource{Symbol: "x", Type: "Microsoft.Other/things", Name: "t"})},
			"a/x: no api-version is known for Microsoft.Other/things"},
		{[]*Unit{unit("a", vm("x", "x", Ref{unit: "b", symbol: "y"}))}, "a/x refers to b/y, which does not exist"},
		{[]*Unit{unit("a", vm("x", "x", Ref{unit: "a", symbol: "y"}), vm("y", "y", Ref{unit: "a", symbol: "x"}))},
			"each resource of unit a waits for the next one: x -> y -> x"},
		{[]*Unit{unit("a", vm("x", "x", Ref{unit: "b", symbol: "y"})), unit("b", vm("y", "y", Ref{unit: "a", symbol: "x"}))},
			"each unit waits for the next one: a -> b -> a"},
	} {
		if _, err := Link(test.units); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}
