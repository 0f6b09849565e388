package azure_test

import (
	"testing"

	"kaz/internal/azure"
)

func TestWithout(t *testing.T) {
	const doc = `{"p":{"pools":[ {"name":"a","own":[1],"list":[{"x":{"nic":{}}},{"x":{"ip":1.0}}]}, {"name":"b","list":[{"x":{"nic":1}}]},
 {"name":"c" , "list":[]}]}}`
	for _, test := range []struct {
		parts []azure.Part
		want  string
	}{
		{nil, doc},
		{[]azure.Part{{Path: "p.none"}, {Path: "p.pools.name.deeper"}, {Path: "p.pools.list", Having: "x.none"}}, doc},
		{[]azure.Part{{Path: "p.pools.own"}, {Path: "p.pools.list", Having: "x.nic"}},
			`{"p":{"pools":[{"name":"a","list":[{"x":{"ip":1.0}}]},{"name":"b"},{"name":"c" , "list":[]}]}}`},
	} {
		if got := azure.Document(doc).Without(test.parts...); string(got) != test.want {
			t.Errorf("without %v:\n%s\nwant\n%s", test.parts, got, test.want)
		}
	}
	if got := azure.Document("none").Without(azure.Part{Path: "p"}); string(got) != "none" {
		t.Errorf("no JSON became %s", got)
	}
}
