package app

import (
	"flag"
	"testing"

	"kaz/internal/testkit/page"
)

var update = flag.Bool("update", false, "write the page anew")

// TestReference compares the flags in docs/reference/health-probe-proxy.md with the program's own
// flags. --help also shows those of Kubernetes' libraries.
func TestReference(t *testing.T) {
	sets := newOptions().flags().FlagSets
	page.Part{
		File: "../../../docs/reference/health-probe-proxy.md", Name: "flags",
		Hint: "go test ./cmd/health-probe-proxy/app -run TestReference -update",
	}.Check(t, page.Flags(sets["probes"]), *update)
}
