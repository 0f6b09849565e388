package userfile

import (
	"errors"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestExplain checks that errors about a file name its fields and what is allowed, and no types of Go.
func TestExplain(t *testing.T) {
	for text, want := range map[string]string{
		"[]":               "the document is a list: want an object",
		"name: [1]":        "field name is a list: want a text",
		"number: many":     "field number is a text: want a number",
		"number: 1.5":      "field number is a number: want a number",
		"list: one":        "field list is a text: want a list",
		"enabled: 1":       "field enabled is a number: want true or false",
		"inner: {at: [1]}": "field inner.at is a list: want a text",
		"nam: x":           "field nam is unknown",
		"a: b: c":          "mapping values are not allowed in this context",
	} {
		var file struct {
			Name   string   `json:"name"`
			Number int      `json:"number"`
			List   []string `json:"list"`
			On     bool     `json:"enabled"`
			Inner  struct {
				At string `json:"at"`
			} `json:"inner"`
		}
		err := yaml.UnmarshalStrict([]byte(text), &file)
		if got := Explain(err); got == nil || got.Error() != want {
			t.Errorf("%s: %v (%v), want %s", text, got, err, want)
		}
	}
	if err := errors.New("another one"); !errors.Is(Explain(err), err) || Explain(nil) != nil {
		t.Error("other errors are not kept")
	}
}
