package machine

import (
	"os"
	"path/filepath"
	"testing"
)

// A limit is raised, never lowered, and left alone if it is no number.
func TestRaise(t *testing.T) {
	for had, want := range map[string]string{"128\n": "8192", "8192\n": "8192\n", "65536\n": "65536\n", "max\n": "max\n"} {
		file := filepath.Join(t.TempDir(), "limit")
		if err := os.WriteFile(file, []byte(had), 0o600); err != nil {
			t.Fatal(err)
		}
		err := raise(file, 8192)
		if got, _ := os.ReadFile(file); string(got) != want || (err != nil) != (had == "max\n") {
			t.Errorf("%q became %q, want %q: %v", had, got, want, err)
		}
	}
}
