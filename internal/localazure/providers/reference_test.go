package providers_test

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

var update = flag.Bool("update", false, "write docs/reference/local-azure.md anew")

//go:embed local-azure.md.txt
var page string

const referencePage = "../../../docs/reference/local-azure.md"

// TestReference keeps docs/reference/local-azure.md in step with the types:
// go test ./internal/localazure/providers -run TestReference -update
func TestReference(t *testing.T) {
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	latency, err := core.LatencyTable()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		"{{types}}", e.Coverage(), "{{documents}}", e.Documents(), "{{routes}}", e.Routes(), "{{latency}}", latency,
		"{{passed}}", strconv.Itoa(replayPassed), "{{all}}", strconv.Itoa(replayAll), "{{examples}}", exampleResults(t),
	).Replace(page)
	if *update {
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the page is out of date; run: go test ./internal/localazure/providers -run TestReference -update\n%s", diff)
	}
}

// exampleResults are the results of test/contract/examples as a table in Markdown. Each line of the file has a module, the examples that
// pass, all for types that exist here, those for other types, those that are unread, those that pass but for mistakes, and those that pass
// with a correction.
func exampleResults(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../test/contract/examples/testdata/results.txt")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| SDK module | examples | pass | share | but for mistakes | corrected | for other types |\n|---|---|---|---|---|---|---|\n")
	row := func(module string, passed, all, others, excused, corrected int) {
		if all > 0 {
			fmt.Fprintf(&b, "| %s | %d | %d | %.1f %% | %d | %d | %d |\n", module, all, passed, 100*float64(passed)/float64(all), excused,
				corrected, others)
		}
	}
	var sum [5]int
	for line := range strings.Lines(string(text)) {
		var module string
		var passed, all, others, unread, excused, corrected int
		if _, err := fmt.Sscan(line, &module, &passed, &all, &others, &unread, &excused, &corrected); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		row("`"+module+"`", passed, all, others, excused, corrected)
		sum = [5]int{sum[0] + passed, sum[1] + all, sum[2] + others, sum[3] + excused, sum[4] + corrected}
	}
	row("together", sum[0], sum[1], sum[2], sum[3], sum[4])
	return b.String()
}
