package service

import "testing"

func TestMentions(t *testing.T) {
	for _, c := range []struct {
		text, word string
		want       bool
	}{
		{"Resource /a/publicIPPrefixes/nope referenced by", "/a/publicIPPrefixes/NOPE", true},
		{"Resource /a/publicIPPrefixes/nope2 referenced by", "/a/publicIPPrefixes/nope", false},
		{"DNS record taken.westeurope.cloudapp.azure.com is already used", "taken", true},
		{"DNS record mistaken.westeurope.cloudapp.azure.com is already used", "taken", false},
		{"Resource /subscriptions/s/resourceGroups/rg/providers/x/y is wrong", "rg", false},
		{"Resource group 'rg' could not be found.", "rg", true},
		{"address 10.0.0.1 is used", "10.0.0.1", true},
		{"address 10.0.0.16 is used", "10.0.0.1", false},
		{"not this-word, but word", "word", true},
	} {
		if got := mentions(c.text, c.word); got != c.want {
			t.Errorf("%q mentions %q: %v", c.text, c.word, got)
		}
	}
}
