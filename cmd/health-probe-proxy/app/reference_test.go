package app

import (
	"flag"
	"testing"

	"kaz/internal/testkit/page"
)

var update = flag.Bool("update", false, "write the page anew")

// TestReference keeps the flags of docs/reference/health-probe-proxy.md in step with those of the program; those of
// Kubernetes' own libraries are for --help to show.
func TestReference(t *testing.T) {
	sets := newOptions().flags().FlagSets
	page.Part{
		File: "../../../docs/reference/health-probe-proxy.md", Name: "flags", Hint: "go test ./cmd/health-probe-proxy/app -run TestReference -update",
	}.Check(t, page.Flags(sets["probes"]), *update)
}
