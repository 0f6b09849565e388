package compute

import (
	"regexp"
	"strings"

	"kaz/internal/emulator/behaviour"
)

// comparison and prefix are the two forms of condition that compute lists know.
// A quoted path is what clients send for members of a flexible scale set.
var (
	comparison = regexp.MustCompile(`^'?([A-Za-z./]+)'?\s+(eq|ne)\s+('(?:[^']*)'|true|false)$`)
	prefixed   = regexp.MustCompile(`^startswith\(\s*([A-Za-z./]+)\s*,\s*'([^']*)'\s*\)(?:\s+eq\s+(true|false))?$`)
	both       = regexp.MustCompile(`(?i)\s+and\s+`)
)

// filterMachines understands conditions on the documents of machines, joined by
// "and".
func filterMachines(c *behaviour.Call, filter string) (func(behaviour.Object) bool, error) {
	var tests []func(behaviour.Object) bool
	for _, part := range both.Split(strings.TrimSpace(filter), -1) {
		test := condition(c, strings.TrimSpace(part))
		if test == nil {
			return nil, behaviour.Invalid("InvalidParameter", "The filter expression '%s' is not supported: use PATH eq 'VALUE', PATH ne 'VALUE' or startswith(PATH, 'VALUE'), joined by 'and'.", part).At("$filter")
		}
		tests = append(tests, test)
	}
	return func(doc behaviour.Object) bool {
		for _, test := range tests {
			if !test(doc) {
				return false
			}
		}
		return true
	}, nil
}

func condition(c *behaviour.Call, text string) func(behaviour.Object) bool {
	if m := comparison.FindStringSubmatch(text); m != nil {
		want := strings.Trim(m[3], "'")
		return func(doc behaviour.Object) bool {
			equal := false
			for _, have := range valuesAt(c, doc, m[1]) {
				equal = equal || strings.EqualFold(have, want)
			}
			return equal == (m[2] == "eq")
		}
	}
	if m := prefixed.FindStringSubmatch(text); m != nil {
		return func(doc behaviour.Object) bool {
			starts := false
			for _, have := range valuesAt(c, doc, m[1]) {
				starts = starts || strings.HasPrefix(strings.ToLower(have), strings.ToLower(m[2]))
			}
			return starts == (m[3] != "false")
		}
	}
	return nil
}

// valuesAt are the texts at a path of a machine's document, whose parts may be
// separated by / and which may leave out "properties".
func valuesAt(c *behaviour.Call, doc behaviour.Object, path string) []string {
	path = strings.TrimPrefix(strings.ReplaceAll(path, "/", "."), "properties.")
	if rest, ok := strings.CutPrefix(path, "instanceView.statuses."); ok {
		var codes []string
		each(instanceView(doc), "statuses", func(status behaviour.Object) { codes = append(codes, behaviour.Text(status, rest)) })
		return codes
	}
	if path == "latestModelApplied" {
		set, _ := c.Get(c.ID)
		if latest(set, doc) {
			return []string{"true"}
		}
		return []string{"false"}
	}
	for _, at := range []any{behaviour.At(doc, "properties."+path), behaviour.At(doc, path)} {
		switch v := at.(type) {
		case string:
			return []string{v}
		case bool:
			if v {
				return []string{"true"}
			}
			return []string{"false"}
		}
	}
	return nil
}
