package providers_test

import (
	_ "embed"
	"flag"
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
		"{{passed}}", strconv.Itoa(replayPassed), "{{all}}", strconv.Itoa(replayAll),
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
