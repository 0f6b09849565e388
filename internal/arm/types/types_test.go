package types

import (
	"slices"
	"testing"
)

// Every type that a row makes stale has a row of its own, so a misspelled type is noticed.
func TestTableSpelling(t *testing.T) {
	known := map[string]bool{"": true}
	for _, row := range Table() {
		if known[row.Name] {
			t.Errorf("%s is in the table twice", row.Name)
		}
		known[row.Name] = true
	}
	for _, row := range Table() {
		for _, s := range row.Stale {
			if !known[s] && s != "Microsoft.Storage/storageAccounts" {
				t.Errorf("%s makes %s stale, which has no row of its own", row.Name, s)
			}
		}
	}
}

// The index gives what a row says, and rows of longer starts take precedence.
func TestIndex(t *testing.T) {
	x := NewIndex()
	for name, want := range map[string]Type{
		"microsoft.network/LOADBALANCERS": {Version: network, Shared: true, Answer: Whole,
			Stale: []string{pip, prefix, vnet, nic, pls}},
		lb + "/backendAddressPools":                 {Version: network, Answer: Whole, Stale: []string{pip, prefix, vnet, nic, pls}},
		vmss + "/virtualMachines/networkInterfaces": {Version: scaleSetIP, CountsEach: true, Answer: Whole, Stale: machine},
		set:                             {Version: compute, CountsEach: true, Answer: Part, Stale: []string{vm, vmss}},
		dns + "/A":                      {Version: "2018-05-01", Answer: Whole, Stale: none},
		"Microsoft.Network/other":       {Version: network, Answer: Whole, Stale: all},
		"Microsoft.Unheard/of":          {Stale: all},
		"Microsoft.Authorization/locks": {Version: "2020-05-01", Stale: none},
	} {
		got := x.Of(name)
		if got.Version != want.Version || got.Shared != want.Shared || got.CountsEach != want.CountsEach || got.Answer != want.Answer ||
			!slices.Equal(got.Stale, want.Stale) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
