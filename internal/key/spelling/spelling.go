// Package spelling finds the name that a misspelt one may mean. Layer L1: pure functions of their arguments.
package spelling

import "strings"

// Nearest returns the known name that is spelled most like name, in any case: the first one with the fewest wrong characters. It returns
// "" if all have more than most.
func Nearest(name string, known []string, most int) string {
	best, wrong := "", most+1
	for _, candidate := range known {
		if n := edits(strings.ToLower(name), strings.ToLower(candidate), wrong); n < wrong {
			best, wrong = candidate, n
		}
	}
	return best
}

// Hint asks whether a misspelt name means a known one, as the end of an error: "; did you mean fsType?". It is "" if no known name has at
// most that many wrong characters.
func Hint(name string, known []string, most int) string {
	if near := Nearest(name, known, most); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// Loose returns the number of wrong characters for names among few: a third, and at least 2.
func Loose(name string) int { return max(2, len(name)/3) }

// edits returns the edit distance of two texts: inserted, deleted and changed characters. It returns
// limit if the distance is limit or more.
func edits(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		least, before := i+1, row[0] // smallest of the row; value above to the left
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, before+1)
			least = min(least, row[j+1])
		}
		if least >= limit {
			return limit
		}
	}
	return min(row[len(b)], limit)
}
