package image

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestKeep keeps archives in the order in which they were loaded last, each content once.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(t.TempDir(), "web.tar")
	for _, content := range []string{"one", "two", "three", "one"} {
		if err := os.WriteFile(archive, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Keep(dir, archive); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, file := range Kept(dir) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	if want := []string{"two", "three", "one"}; !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
	if entries, err := os.ReadDir(keptDir(dir)); err != nil || len(entries) != len(got) {
		t.Errorf("%v in the directory, %v", entries, err)
	}
}
