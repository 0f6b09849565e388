package app

import (
	"flag"
	"testing"

	"kaz/internal/testkit/page"
)

var update = flag.Bool("update", false, "write the page anew")

// TestReference compares the flags in docs/reference/cloud-node-manager.md with the program's own
// flags. --help also shows those of Kubernetes' libraries.
func TestReference(t *testing.T) {
	sets := newOptions().flags().FlagSets
	page.Part{
		File: "../../../docs/reference/cloud-node-manager.md", Name: "flags",
		Hint: "go test ./cmd/cloud-node-manager/app -run TestReference -update",
	}.Check(t, page.Flags(sets["node"], sets["kubernetes"]), *update)
}
