package app

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the page anew")

const referencePage = "../../../docs/reference/health-probe-proxy.md"

// TestReference keeps the flags of docs/reference/health-probe-proxy.md in step with
// those of the program: go test ./cmd/health-probe-proxy/app -run TestReference -update
func TestReference(t *testing.T) {
	page, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- flags: written by go test ./cmd/health-probe-proxy/app -run TestReference -update -->\n", "<!-- end of flags -->\n"
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the flags", referencePage)
	}
	want := before + begin + flagTables() + end + after
	if *update {
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("the page is out of date; run: go test ./cmd/health-probe-proxy/app -run TestReference -update\n%s", diff)
	}
}

func flagTables() string {
	var b strings.Builder
	sets := newOptions().flags()
	for _, group := range sets.Order {
		if group != "probes" {
			continue // those of Kubernetes' own libraries, which --help shows
		}
		fmt.Fprintf(&b, "\n| flag | default | meaning |\n|---|---|---|\n")
		sets.FlagSets[group].VisitAll(func(f *pflag.Flag) {
			initial := ""
			if f.DefValue != "" {
				initial = "`" + f.DefValue + "`"
			}
			fmt.Fprintf(&b, "| `--%s` | %s | %s |\n", f.Name, initial, f.Usage)
		})
	}
	b.WriteString("\n")
	return b.String()
}
