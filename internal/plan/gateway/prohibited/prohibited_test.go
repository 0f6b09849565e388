package prohibited_test

import (
	"testing"

	"kaz/internal/plan/gateway/prohibited"
)

type object = map[string]any

// TestProhibit checks which paths of which hosts targets prohibit.
func TestProhibit(t *testing.T) {
	var all prohibited.Targets
	for name, spec := range map[string]object{
		"whole": {"hostname": "Whole.example.com"},
		"part":  {"hostname": "part.example.com", "paths": []any{"/Api/*", "/one/two/*"}},
		"any":   {"paths": []any{"/everywhere/*"}},
	} {
		target, err := prohibited.Decode(object{"metadata": object{"namespace": "ns", "name": name}, "spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, target)
	}
	for _, c := range []struct{ host, path, want string }{
		{"whole.example.com", "/", "ns/whole"}, {"whole.example.com", "/x", "ns/whole"}, {"sub.whole.example.com", "/", ""}, {"", "/", ""},
		{"part.example.com", "/", ""}, {"part.example.com", "/api", "ns/part"}, {"PART.example.com", "/api/", "ns/part"},
		{"part.example.com", "/API/*", "ns/part"}, {"part.example.com", "/api/x", "ns/part"}, {"part.example.com", "/apis", ""},
		{"part.example.com", "/one", ""}, {"part.example.com", "/one/two/three", "ns/part"},
		{"", "/everywhere", "ns/any"}, {"other.example.com", "/everywhere/x", "ns/any"}, {"other.example.com", "/", ""},
	} {
		if got, _ := all.Prohibit(c.host, c.path); got != c.want {
			t.Errorf("%s%s: %q, want %q", c.host, c.path, got, c.want)
		}
	}
	everything := prohibited.Targets{{Object: "ns/all", Paths: []string{"/*"}}}
	if _, ok := everything.Prohibit("a.example.com", "/"); !ok || !everything.Concern("a.example.com") {
		t.Error("/* of all hosts does not prohibit all")
	}
	if prohibited.Targets(nil).Concern("") {
		t.Error("no target is about a host")
	}
	if _, err := prohibited.Decode(object{"metadata": object{"namespace": "ns", "name": "bad"}, "spec": object{"hostname": int64(1)}}); err == nil {
		t.Error("a hostname that is a number is taken")
	}
}
