package app

import (
	"flag"
	"testing"

	"kaz/internal/testkit/page"
)

var update = flag.Bool("update", false, "write the page anew")

// TestReference keeps the flags of docs/reference/cloud-node-manager.md in step with those of the program; those of
// Kubernetes' own libraries are for --help to show.
func TestReference(t *testing.T) {
	sets := newOptions().flags().FlagSets
	page.Part{
		File: "../../../docs/reference/cloud-node-manager.md", Name: "flags", Hint: "go test ./cmd/cloud-node-manager/app -run TestReference -update",
	}.Check(t, page.Flags(sets["node"], sets["kubernetes"]), *update)
}
