package arm

import (
	"fmt"
	"regexp"
	"strings"

	"kaz/internal/arm/types"
)

// versionTable gives api-versions by lower-case type or start of a type; the
// longest start that ends at a slash wins.
type versionTable map[string]string

func newVersionTable(overrides map[string]string) (versionTable, error) {
	table := versionTable{}
	for _, t := range types.Table() {
		if t.Version != "" {
			table[strings.ToLower(t.Name)] = t.Version
		}
	}
	wellFormed := regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(-[a-z]+)?$`)
	for t, v := range overrides {
		if !wellFormed.MatchString(v) {
			return nil, fmt.Errorf("api-version %q of %s: expected YYYY-MM-DD or YYYY-MM-DD-preview", v, t)
		}
		table[strings.ToLower(t)] = v
	}
	return table, nil
}

// of is the api-version of a type.
func (t versionTable) of(fullType string) (string, bool) {
	for at := strings.ToLower(fullType); at != ""; at = at[:max(strings.LastIndexByte(at, '/'), 0)] {
		if v, ok := t[at]; ok {
			return v, true
		}
	}
	return "", false
}
