package examples_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
)

// table is a route table with one route.
func table(name, prefix string, hop armnetwork.RouteNextHopType) armnetwork.RouteTable {
	return armnetwork.RouteTable{Name: new("rt"), Properties: &armnetwork.RouteTablePropertiesFormat{Routes: []*armnetwork.Route{{
		Name: &name, Properties: &armnetwork.RoutePropertiesFormat{AddressPrefix: &prefix, NextHopType: &hop}}}}}
}

// The comparison finds what an answer lacks, what the request fixes, and words of the API that are others.
func TestComparison(t *testing.T) {
	documented := table("r", "10.0.0.0/24", armnetwork.RouteNextHopTypeInternet)
	with := func(change func(*armnetwork.RouteTable)) armnetwork.RouteTable {
		changed := table("r", "10.0.0.0/24", armnetwork.RouteNextHopTypeInternet)
		change(&changed)
		return changed
	}
	sent := reflect.ValueOf(documented)
	for _, c := range []struct {
		name string
		got  armnetwork.RouteTable
		sent reflect.Value
		want []string
	}{
		{"the same", documented, sent, nil},
		{"made up values differ", table("r", "10.9.0.0/24", armnetwork.RouteNextHopTypeInternet), reflect.Value{}, nil},
		{"a value that was sent differs", table("r", "10.9.0.0/24", armnetwork.RouteNextHopTypeInternet), sent,
			[]string{"RoutePropertiesFormat.AddressPrefix"}},
		{"a word of the API differs", table("r", "10.0.0.0/24", armnetwork.RouteNextHopTypeNone), reflect.Value{},
			[]string{"RoutePropertiesFormat.NextHopType"}},
		{"a field is missing", with(func(a *armnetwork.RouteTable) { a.Properties.Routes[0].Properties.AddressPrefix = nil }), sent,
			[]string{"RoutePropertiesFormat.AddressPrefix"}},
		{"a list is empty", with(func(a *armnetwork.RouteTable) { a.Properties.Routes = []*armnetwork.Route{} }), sent,
			[]string{"RouteTablePropertiesFormat.Routes"}},
		{"all is missing", armnetwork.RouteTable{}, sent, []string{"RouteTable.Name", "RouteTable.Properties"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			compared := comparison{readOnly: func(string) bool { return false }}
			compared.compare("", reflect.ValueOf(documented), reflect.ValueOf(c.got), c.sent)
			var got []string
			for _, m := range compared.misses {
				got = append(got, m.rule)
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("misses %v, want %v", compared.misses, c.want)
			}
		})
	}
}

// A list has a resource once, however often its documentation repeats it.
func TestRepeatedResource(t *testing.T) {
	tables := func(prefixes ...string) reflect.Value {
		list := armnetwork.RouteTableListResult{}
		for _, prefix := range prefixes {
			one := table("r", prefix, armnetwork.RouteNextHopTypeInternet)
			one.ID = new("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/routeTables/rt")
			one.Name = new(strings.TrimSuffix(prefix, "/24"))
			list.Value = append(list.Value, &one)
		}
		return reflect.ValueOf(list)
	}
	got := tables("10.0.0.0/24")
	for second, misses := range map[string]int{"10.0.0.0/24": 0, "10.1.0.0/24": 1} {
		documented := tables("10.0.0.0/24", second)
		compared := comparison{readOnly: func(string) bool { return false }}
		compared.compare("", documented, got, reflect.Value{})
		if len(compared.misses) != misses {
			t.Errorf("a second element with %s: misses %v, want %d", second, compared.misses, misses)
		}
	}
}

// Members without content may be missing, and empty lists may not.
func TestBlank(t *testing.T) {
	for _, c := range []struct {
		value any
		want  bool
	}{
		{"", true}, {"text", false}, {armnetwork.VirtualWanProperties{}, true}, {table("r", "", ""), false}, {[]*armnetwork.SubResource{}, false},
		{[]*armnetwork.SubResource{{}}, false}, {0, false},
	} {
		if got := blank(reflect.ValueOf(c.value)); got != c.want {
			t.Errorf("blank(%#v) = %v", c.value, got)
		}
	}
}
