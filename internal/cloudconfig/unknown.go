package cloudconfig

import (
	"slices"
	"strings"

	"kaz/internal/key/spelling"
)

func allNames(byName map[string]key) []string {
	names := make([]string, 0, len(byName))
	for _, k := range byName {
		names = append(names, k.name)
	}
	slices.Sort(names)
	return names
}

// unknown warns of an unknown key. It is no error, because other programs keep their keys in the same
// file.
func (r *reading) unknown(name, path string, known []string) {
	// In YAML, a value without a space after the colon is part of the key.
	name, _, _ = strings.Cut(name, ":")
	most := min(2, (len(name)+1)/4) // wrong letters: in a short name one
	r.warn(path+shorten(name), "unknown key, ignored%s", spelling.Hint(name, known, most))
}
