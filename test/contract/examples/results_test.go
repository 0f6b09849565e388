package examples_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// result is how many examples of a module pass.
type result struct {
	module string
	// passed and all count the examples for types that the local Azure has.
	passed, all int
	// excused are those that pass but for fields that are mistakes of the documentation.
	excused int
	// corrected are those that pass with another text, or with something that their requests forget.
	corrected int
	// others are the examples for other types, and for what is no resource. Those that are unread are not among them.
	others, unread int
	// again are those that make a resource and were sent again.
	again int
}

// check compares a result with the last measured one.
func (r result) check(t *testing.T, floor result) {
	t.Helper()
	t.Logf("%d of %d pass, %.1f %%, %d of them but for mistakes and %d corrected; %d for other types, %d unread", r.passed, r.all,
		100*float64(r.passed)/float64(max(r.all, 1)), r.excused, r.corrected, r.others, r.unread)
	if r.passed < floor.passed || r.all < floor.all || r.unread > floor.unread || r.excused > floor.excused ||
		r.corrected > floor.corrected {
		t.Errorf("%d of %d pass, %d of them but for mistakes and %d corrected, and %d are unread; "+
			"want at least %d of %d, %d but for mistakes, %d corrected, and %d unread", r.passed, r.all, r.excused, r.corrected, r.unread,
			floor.passed, floor.all, floor.excused, floor.corrected, floor.unread)
	}
}

// resultsFile has a line for each module: its name, the examples that pass, all for types that exist here, those for other types,
// those that are unread, how many of those that pass do but for mistakes of the documentation, and how many with a corrected text or request.
const resultsFile = "testdata/results.txt"

func readResults(t *testing.T) map[string]result {
	t.Helper()
	text, err := os.ReadFile(resultsFile)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]result{}
	for line := range strings.Lines(string(text)) {
		var r result
		if _, err := fmt.Sscan(line, &r.module, &r.passed, &r.all, &r.others, &r.unread, &r.excused, &r.corrected); err != nil {
			t.Fatalf("%s: %q: %v", resultsFile, line, err)
		}
		all[r.module] = r
	}
	return all
}

func writeResults(t *testing.T, all []result) {
	t.Helper()
	var text strings.Builder
	for _, r := range slices.SortedFunc(slices.Values(all), func(a, b result) int { return strings.Compare(a.module, b.module) }) {
		fmt.Fprintln(&text, r.module, r.passed, r.all, r.others, r.unread, r.excused, r.corrected)
	}
	if err := os.WriteFile(resultsFile, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
