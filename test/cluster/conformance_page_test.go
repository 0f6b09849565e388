package cluster_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	report "sigs.k8s.io/gateway-api/conformance/apis/v1"
)

var update = flag.Bool("update", false, "write the results of Gateway API's conformance suite into docs/reference/conformance.md")

// conformancePage has the results of the suite between two lines.
const (
	conformancePage = "../../docs/reference/conformance.md"
	resultsBegin    = "<!-- TestGatewayConformance writes this part: begin -->\n"
	resultsEnd      = "<!-- end -->\n"
)

// checkConformancePage checks that the page has the results of a report. With -update it writes them, also those of failed tests.
func checkConformancePage(t *testing.T, r report.ConformanceReport) {
	t.Helper()
	if len(r.ProfileReports) == 0 {
		t.Fatal("the report has no results: the suite ended before its first test")
	}
	text, err := os.ReadFile(conformancePage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), resultsBegin)
	have, after, ends := strings.Cut(rest, resultsEnd)
	if !begins || !ends {
		t.Fatalf("%s has no part between %q and %q", conformancePage, resultsBegin, resultsEnd)
	}
	want := conformanceResults(r, skippedConformance())
	if *update {
		if err := os.WriteFile(conformancePage, []byte(before+resultsBegin+want+resultsEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want {
		t.Errorf("the results in %s differ; write them with -update:\n%s", conformancePage, cmp.Diff(have, want))
	}
}

// conformanceResults returns the results of a report as Markdown. It has no times, so that two equal runs write the same.
func conformanceResults(r report.ConformanceReport, skipped map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nGateway API %s, %s channel:\n\n", r.GatewayAPIVersion, r.GatewayAPIChannel)
	b.WriteString("| profile | support | result | passed | failed | skipped |\n|---|---|---|---|---|---|\n")
	row := func(profile, level string, s report.Status) {
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %d |\n", profile, level, s.Result, s.Passed, s.Failed, s.Skipped)
	}
	var failed []string
	for _, p := range r.ProfileReports {
		row(p.Name, "core", p.Core)
		failed = append(failed, p.Core.FailedTests...)
		if p.Extended != nil {
			row(p.Name, "extended", p.Extended.Status)
			failed = append(failed, p.Extended.FailedTests...)
		}
	}
	for _, p := range r.ProfileReports {
		if p.Extended != nil {
			writeFeatures(&b, "Extended features of "+p.Name+" that are supported", p.Extended.SupportedFeatures)
			writeFeatures(&b, "Extended features of "+p.Name+" that are not supported", p.Extended.UnsupportedFeatures)
		}
	}
	if len(skipped) > 0 {
		b.WriteString("\n| skipped test | why |\n|---|---|\n")
	}
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		fmt.Fprintf(&b, "| %s | %s |\n", name, skipped[name])
	}
	writeFeatures(&b, "Failed tests", failed)
	b.WriteString("\n")
	return b.String()
}

// writeFeatures writes a sentence with names, and nothing if there are none.
func writeFeatures(b *strings.Builder, what string, names []string) {
	if len(names) > 0 {
		fmt.Fprintf(b, "\n%s: %s.\n", what, strings.Join(slices.Sorted(slices.Values(names)), ", "))
	}
}

// TestConformanceResults checks what the page says about a report.
func TestConformanceResults(t *testing.T) {
	r := report.ConformanceReport{GatewayAPIVersion: "v1.6.3", GatewayAPIChannel: "standard", ProfileReports: []report.ProfileReport{{
		Name: "GATEWAY-HTTP",
		Core: report.Status{
			Result: report.Failure, Statistics: report.Statistics{Passed: 30, Failed: 2, Skipped: 1},
			SkippedTests: []string{"Slow"}, FailedTests: []string{"B", "A"},
		},
		Extended: &report.ExtendedStatus{
			Status:              report.Status{Result: report.Success, Statistics: report.Statistics{Passed: 4}},
			SupportedFeatures:   []string{"HTTPRouteQueryParamMatching", "HTTPRouteMethodMatching"},
			UnsupportedFeatures: []string{"GatewayPort8080"},
		},
	}}}
	const want = `
Gateway API v1.6.3, standard channel:

| profile | support | result | passed | failed | skipped |
|---|---|---|---|---|---|
| GATEWAY-HTTP | core | failure | 30 | 2 | 1 |
| GATEWAY-HTTP | extended | success | 4 | 0 | 0 |

Extended features of GATEWAY-HTTP that are supported: HTTPRouteMethodMatching, HTTPRouteQueryParamMatching.

Extended features of GATEWAY-HTTP that are not supported: GatewayPort8080.

| skipped test | why |
|---|---|
| Slow | It is slow. |

Failed tests: A, B.

`
	if got := conformanceResults(r, map[string]string{"Slow": "It is slow."}); got != want {
		t.Error(cmp.Diff(want, got))
	}
}
