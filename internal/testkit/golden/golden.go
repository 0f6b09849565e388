// Package golden tells stories that are written down: files with an input and with what it must give. Any layer.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Run runs a test for each testdata/*.txtar. tell returns the archive as it must be: its input, and what that gives. With -update the files
// are written so.
func Run(t *testing.T, tell func(t *testing.T, archive *txtar.Archive) *txtar.Archive) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			have := string(txtar.Format(archive))
			got := txtar.Format(tell(t, archive))
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(have, string(got)); d != "" {
				t.Error("run with -update if this is as it should be (-want +got):\n" + d)
			}
		})
	}
}
