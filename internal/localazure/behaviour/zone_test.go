package behaviour_test

import (
	"testing"

	"kaz/internal/localazure/behaviour"
)

// Azure chooses a zone that the placement includes and does not exclude, and does not change it.
func TestPlaceInZone(t *testing.T) {
	type object = behaviour.Object
	for _, c := range []struct {
		name string
		doc  object
		old  object
		want []any
	}{
		{"no placement", object{}, nil, nil},
		{"any zone", object{"placement": object{"zonePlacementPolicy": "Any"}}, nil, []any{"1"}},
		{"an included zone", object{"placement": object{"zonePlacementPolicy": "Any", "includeZones": []any{"3"}}}, nil, []any{"3"}},
		{"an excluded zone", object{"placement": object{"zonePlacementPolicy": "Any", "excludeZones": []any{"1"}}}, nil, []any{"2"}},
		{"none is left", object{"placement": object{"zonePlacementPolicy": "Any", "includeZones": []any{"2"}, "excludeZones": []any{"2"}}}, nil, nil},
		{"a chosen zone", object{"placement": object{"zonePlacementPolicy": "Any"}}, object{"zones": []any{"3"}}, []any{"3"}},
		{"a zone of the client", object{"placement": object{"zonePlacementPolicy": "Any"}, "zones": []any{"2"}}, nil, []any{"2"}},
	} {
		call := behaviour.Call{Doc: c.doc, Old: c.old}
		behaviour.PlaceInZone(&call)
		if got := behaviour.Array(call.Doc, "zones"); !behaviour.Equal(got, c.want) {
			t.Errorf("%s: the zones are %v, want %v", c.name, got, c.want)
		}
	}
}
