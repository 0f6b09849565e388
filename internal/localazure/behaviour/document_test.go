package behaviour_test

import (
	"encoding/json"
	"testing"

	"kaz/internal/localazure/behaviour"
)

func object(t *testing.T, text string) behaviour.Object {
	t.Helper()
	var o behaviour.Object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestPaths(t *testing.T) {
	doc := object(t, `{"a":{"b":"x","n":3,"f":1.5,"y":true,"list":[{"name":"One","id":"/1"},7,"t"]}}`)
	if got := behaviour.Text(doc, "a.b"); got != "x" {
		t.Errorf("text: %q", got)
	}
	for _, path := range []string{"a.n", "a.none", "a.b.c", "z"} {
		if got := behaviour.Text(doc, path); got != "" {
			t.Errorf("text at %s: %q", path, got)
		}
	}
	if n, ok := behaviour.Int(doc, "a.n"); n != 3 || !ok {
		t.Errorf("int: %d %v", n, ok)
	}
	if _, ok := behaviour.Int(doc, "a.f"); ok {
		t.Error("1.5 is no whole number")
	}
	if !behaviour.Bool(doc, "a.y") || behaviour.Bool(doc, "a.b") {
		t.Error("bool")
	}
	if got := behaviour.Named(doc, "a.list", "one"); got == nil || got["id"] != "/1" {
		t.Errorf("element by name: %v", got)
	}
	if got := behaviour.Texts(doc, "a.list"); len(got) != 1 || got[0] != "t" {
		t.Errorf("texts: %v", got)
	}
}

func TestChanges(t *testing.T) {
	doc := object(t, `{"a":{"b":1}}`)
	before := behaviour.Clone(doc)
	behaviour.Set(doc, "a.c.d", "new")
	behaviour.Default(doc, "a.b", 2)
	behaviour.Default(doc, "a.e", false)
	behaviour.Remove(doc, "a.none.x")
	if want := object(t, `{"a":{"b":1,"c":{"d":"new"},"e":false}}`); !behaviour.Equal(doc, want) {
		t.Errorf("%v, want %v", doc, want)
	}
	behaviour.Remove(doc, "a.c")
	behaviour.Remove(doc, "a.e")
	if !behaviour.Equal(doc, before) || behaviour.Equal(doc, behaviour.Object{"a": 1}) {
		t.Errorf("%v, want %v", doc, before)
	}
}

func TestNumbersAreEqualByValue(t *testing.T) {
	if !behaviour.Equal([]any{1, int64(2), 3.0}, []any{1.0, 2.0, 3}) || behaviour.Equal(1, "1") {
		t.Error("numbers")
	}
}

func TestErrorsOnTheWire(t *testing.T) {
	e := behaviour.Invalid("Outer", "value %d", 7).At("there").With("Inner", "because")
	want := object(t, `{"code":"Outer","message":"value 7","target":"there","details":[{"code":"Inner","message":"because"}]}`)
	if got := e.Body(); !behaviour.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
