package keep_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"kaz/internal/localazure/core/keep"
)

// Only files with a name of the form are removed: what others have put into the directory stays.
func TestRemoveTemporary(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".new-123", ".new-", "x.new-123", ".new-12x", "kept.blob"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".new-7"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := keep.RemoveTemporary(dir, regexp.MustCompile(`\.new-[0-9]+`)); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 5 {
		t.Errorf("left are %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".new-123")); !os.IsNotExist(err) {
		t.Errorf("the temporary file is there: %v", err)
	}
	if err := keep.RemoveTemporary(filepath.Join(dir, "none"), regexp.MustCompile(`x`)); err != nil {
		t.Error(err)
	}
}
