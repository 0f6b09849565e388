package cloudconfig

import (
	"slices"
	"strings"
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
	if near := nearest(name, known); near != "" {
		r.warn(path+shorten(name), "unknown key, ignored; did you mean %s?", near)
		return
	}
	r.warn(path+shorten(name), "unknown key, ignored")
}

// nearest returns the known name that name probably misspells, or "". A short name may differ in one
// letter only.
func nearest(name string, known []string) string {
	best, least := "", 3
	for _, candidate := range known {
		allowed := min(2, len(candidate)/4)
		if len(name) > len(candidate)+allowed || len(candidate) > len(name)+allowed {
			continue
		}
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d <= allowed && d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance returns the Levenshtein distance of two texts.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
