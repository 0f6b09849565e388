package vm

import (
	"regexp"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
)

// comparison and prefixed are the two forms of a condition in the filter of a compute list. Clients quote the path for
// members of a flexible scale set.
var (
	comparison = regexp.MustCompile(`^'?([A-Za-z./]+)'?\s+(eq|ne)\s+('(?:[^']*)'|true|false)$`)
	prefixed   = regexp.MustCompile(`^startswith\(\s*([A-Za-z./]+)\s*,\s*'([^']*)'\s*\)(?:\s+eq\s+(true|false))?$`)
	both       = regexp.MustCompile(`(?i)\s+and\s+`)
)

// FilterMachines parses a filter of conditions joined by "and", and returns its test for documents of machines.
func FilterMachines(c *behaviour.Call, filter string) (func(behaviour.Object) bool, error) {
	var tests []func(behaviour.Object) bool
	for _, part := range both.Split(strings.TrimSpace(filter), -1) {
		test := condition(c, strings.TrimSpace(part))
		if test == nil {
			return nil, behaviour.Invalid("InvalidParameter",
				"The filter expression '%s' is not supported: use PATH eq 'VALUE', PATH ne 'VALUE' or startswith(PATH, 'VALUE'), "+
					"joined by 'and'.", part).At("$filter")
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

// valuesAt returns the strings at a path of a machine's document. The path may have / between its parts and may leave
// out "properties".
func valuesAt(c *behaviour.Call, doc behaviour.Object, path string) []string {
	path = strings.TrimPrefix(strings.ReplaceAll(path, "/", "."), "properties.")
	if rest, ok := strings.CutPrefix(path, "instanceView.statuses."); ok {
		var codes []string
		for _, status := range behaviour.Objects(InstanceView(doc), "statuses") {
			codes = append(codes, behaviour.Text(status, rest))
		}
		return codes
	}
	if path == "latestModelApplied" {
		set, _ := c.Get(c.ID)
		if Latest(set, doc) {
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

// Latest reports whether an instance has the latest model of its scale set.
func Latest(set, instance behaviour.Object) bool {
	if schema.Number(instance, schema.Runtime+".model") != schema.Number(set, schema.Runtime+".model") {
		return false
	}
	return schema.Number(instance, schema.Runtime+".network") == schema.Number(set, schema.Runtime+".network") || SameNetwork(set, instance)
}

func SameNetwork(set, instance behaviour.Object) bool {
	const configs = ".networkInterfaceConfigurations"
	return behaviour.Equal(behaviour.At(set, schema.NetworkPath+configs),
		behaviour.At(instance, "properties.networkProfileConfiguration"+configs))
}
