package azure

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The members and elements of any well-formed text are those that a decoder finds. Written out again, the text means
// the same.
func TestRawIsWhatADecoderFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := draw(t, 3)
		text, err := json.MarshalIndent(tree, rapid.SampledFrom([]string{"", " "}).Draw(t, "prefix"),
			rapid.SampledFrom([]string{"", "\t"}).Draw(t, "indent"))
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(rewritten(raw(text)), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s (-want +got):\n%s", text, d)
		}
	})
}

// rewritten takes a value apart and puts it together again.
func rewritten(r raw) raw {
	switch {
	case r.isObject():
		all := r.members()
		for i := range all {
			all[i].value = rewritten(all[i].value)
		}
		return joinMembers(all)
	case r.isList():
		all := r.elements()
		for i := range all {
			all[i] = rewritten(all[i])
		}
		return joinElements(all)
	case r.isText():
		return encoded(r.text())
	}
	return r
}

func draw(t *rapid.T, depth int) any {
	if depth > 0 {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return rapid.MapOfN(rapid.String(), rapid.Custom(func(t *rapid.T) any { return draw(t, depth-1) }), 0, 3).Draw(t, "object")
		case 1:
			return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return draw(t, depth-1) }), 0, 3).Draw(t, "list")
		}
	}
	return rapid.OneOf(rapid.String().AsAny(), rapid.Float64Range(-1e9, 1e9).AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil),
		rapid.SampledFrom([]string{`"`, `\`, `\"}`, "]", "a\\\\", "\u2028<"}).AsAny()).Draw(t, "plain")
}
