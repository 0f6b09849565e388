package lenient_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/template/lenient"
)

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		`{properties: {template: {"a": 1, /* b */ "c": [1, 2, ], // d
			}, parameters: {}, mode: "incremental"}}`: `{"properties": {"template": {"a": 1, "c": [1, 2]}, "parameters": {}, "mode": "incremental"}}`,
		`{'it''s': 1}`:                        ``,
		`{'it\'s "so"': true, $schema: null}`: `{"it's \"so\"": true, "$schema": null}`,
		"{\"a\": \"x\n\ty // no comment\"}":   `{"a": "x\n\ty // no comment"}`,
		`{"a": "\u00e4\\\"\/"}`:               `{"a": "ä\\\"/"}`,
		`{"a": "x}`:                           ``,
		`[1]`:                                 ``,
		`{a: b}`:                              ``,
		"\ufeff{} // end":                     `{}`,
	} {
		got, err := lenient.Decode([]byte(text))
		if want == "" {
			if err == nil {
				t.Errorf("%s: %v, want an error", text, got)
			}
			continue
		}
		var object map[string]any
		if err := json.Unmarshal([]byte(want), &object); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(object, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
}

// What is JSON means the same to Decode.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-2.5e3,true,null,{"b":"\"'\\\u0001ä"}]}`, `{a: 'b', /**/ c: [,]}`, `{"a":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want map[string]any
		strict := json.Unmarshal(text, &want) == nil
		got, err := lenient.Decode(text)
		if !strict {
			return
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
	})
}
