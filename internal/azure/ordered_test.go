package azure_test

import (
	"strings"
	"testing"

	"kaz/internal/azure"
)

// A list with the tag "ordered" takes the order of the view. Its elements keep their unknown fields.
func TestAnOrderedListTakesTheOrderOfTheView(t *testing.T) {
	type rule struct {
		Name string `json:"name" azure:"key"`
		Path string `json:"path"`
	}
	type table struct {
		Rules []rule `json:"rules" azure:"ordered"`
	}
	have := azure.Document(`{"rules":[{"name":"a","path":"/a","etag":"1"},{"name":"b","path":"/b","etag":"2"}]}`)
	got, changes, err := azure.Overlay(have, table{[]rule{{"c", "/c"}, {"b", "/b"}, {"a", "/a"}}})
	const want = `{"rules":[{"name":"c","path":"/c"},{"name":"b","path":"/b","etag":"2"},{"name":"a","path":"/a","etag":"1"}]}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
	if !strings.Contains(changes[len(changes)-1].String(), "rules: ") {
		t.Errorf("changes %v do not have the order", changes)
	}
	if _, again, err := azure.Overlay(got, table{[]rule{{"c", "/c"}, {"b", "/b"}, {"a", "/a"}}}); err != nil || len(again) > 0 {
		t.Errorf("a second time still changes %v, %v", again, err)
	}
}
