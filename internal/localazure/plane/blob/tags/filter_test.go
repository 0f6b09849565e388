package tags_test

import (
	"testing"

	"kaz/internal/localazure/plane/blob/tags"
)

func TestFilter(t *testing.T) {
	all := map[string]string{"kind": "test", "n": "2", "two words": "it is"}
	for text, want := range map[string]bool{
		`"kind"='test'`: true, `kind = 'test' AND n >= '2'`: true, `"n"<'2'`: false, `"n">'1'and"n"<'3'`: true, `none = ''`: false,
		`kind <> 'other'`: true, `kind = 'x' OR n = '2'`: true, `kind = 'x' OR n = '2' AND kind = 'y'`: false,
		`@container = 'c'`: true, `@container = 'd'`: false, `"two words" = 'it is'`: true,
	} {
		if f, err := tags.Parse(text); err != nil || f.Matches(all, "c") != want {
			t.Errorf("%s: %v, want %t", text, err, want)
		}
	}
	for _, text := range []string{"", "kind", "kind=", "kind='x", "kind='x' AND", "kind='x' kind='y'", "'kind'='x'", "kind = 2", "a='b' AND "} {
		if f, err := tags.Parse(text); err == nil {
			t.Errorf("%s: %v", text, f)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add(`"a"='b' AND @container<>'c' OR d>='e'`)
	f.Fuzz(func(t *testing.T, text string) {
		if all, err := tags.Parse(text); err == nil && (len(all) == 0 || len(all[0]) == 0) {
			t.Errorf("%q has no condition", text)
		}
	})
}
