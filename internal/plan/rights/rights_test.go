package rights_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kaz/internal/plan/rights"
)

func TestAllows(t *testing.T) {
	const read = "Microsoft.Network/loadBalancers/read"
	for _, c := range []struct {
		name    string
		granted []rights.Permission
		action  string
		want    bool
	}{
		{"no grants", nil, read, false},
		{"an owner", []rights.Permission{{Actions: []string{"*"}}}, read, true},
		{"a reader reads", []rights.Permission{{Actions: []string{"*/read"}}}, read, true},
		{"a reader does not write", []rights.Permission{{Actions: []string{"*/read"}}}, "Microsoft.Network/loadBalancers/write", false},
		{"case does not matter", []rights.Permission{{Actions: []string{"microsoft.network/LOADBALANCERS/read"}}}, read, true},
		{"a star in the middle", []rights.Permission{{Actions: []string{"Microsoft.Network/*/read"}}}, read, true},
		{"two stars", []rights.Permission{{Actions: []string{"*/load*/read"}}}, read, true},
		{"stars do not overlap", []rights.Permission{{Actions: []string{"Microsoft.Network/load*loadBalancers/read"}}}, read, false},
		{"the name alone is no pattern", []rights.Permission{{Actions: []string{"Microsoft.Network/loadBalancers"}}}, read, false},
		{"what is left out", []rights.Permission{{Actions: []string{"*"}, NotActions: []string{"Microsoft.Network/*"}}}, read, false},
		{"what one leaves out another gives", []rights.Permission{
			{Actions: []string{"*"}, NotActions: []string{"Microsoft.Network/*"}}, {Actions: []string{read}},
		}, read, true},
		{"contributors give no roles",
			[]rights.Permission{{Actions: []string{"*"}, NotActions: []string{"Microsoft.Authorization/*/Write"}}},
			"Microsoft.Authorization/roleAssignments/write", false},
	} {
		if got := rights.Allowed(c.granted, c.action); got != c.want {
			t.Errorf("%s: %v for %s", c.name, got, c.action)
		}
	}
}

func TestMissing(t *testing.T) {
	needs := rights.Needed(rights.Routes)
	granted := []rights.Permission{{Actions: []string{"*/read"}}}
	missing := rights.Missing(needs, granted)
	if len(missing) != 1 || missing[0].Action != "Microsoft.Network/routeTables/write" || missing[0].Scope != rights.RouteTable {
		t.Errorf("a reader cannot make routes, and misses %+v", missing)
	}
	if missing := rights.Missing(needs, []rights.Permission{{Actions: []string{"*"}}}); missing != nil {
		t.Errorf("an owner misses %+v", missing)
	}
}

// TestNeeded checks for all sets of features that an action occurs once for each scope, and is
// required if any feature requires it.
func TestNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		features := rapid.SliceOfDistinct(rapid.SampledFrom(rights.Features()), rapid.ID[rights.Feature]).Draw(t, "features")
		type place struct {
			scope  rights.Scope
			action string
		}
		seen := map[place]rights.Need{}
		for _, n := range rights.Needed(features...) {
			at := place{n.Scope, n.Action}
			if _, twice := seen[at]; twice {
				t.Fatalf("%s twice at %s", n.Action, n.Scope)
			}
			seen[at] = n
		}
		for _, f := range features {
			for _, n := range rights.Needed(f) {
				if got, ok := seen[place{n.Scope, n.Action}]; !ok || got.Degrades && !n.Degrades {
					t.Fatalf("%+v of %s became %+v", n, f, got)
				}
			}
		}
	})
}

// TestTable checks that every row is complete and spelled like in Azure.
func TestTable(t *testing.T) {
	for _, n := range rights.Needed() {
		parts := strings.Split(n.Action, "/")
		last := parts[len(parts)-1]
		if !strings.HasPrefix(n.Action, "Microsoft.") || !slices.Contains([]string{"read", "write", "delete", "action"}, last) ||
			strings.Contains(n.Action, "*") {
			t.Errorf("%s is no single action", n.Action)
		}
		if n.Why == "" || !slices.Contains(rights.Features(), n.Feature) || !slices.Contains(rights.Scopes(), n.Scope) {
			t.Errorf("%+v is not complete", n)
		}
	}
	for _, f := range rights.Features() {
		if len(rights.Needed(f)) == 0 {
			t.Errorf("feature %s needs nothing", f)
		}
	}
}
