package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "file.json")
	for content, mode := range map[string]os.FileMode{"first": 0o640, "second": 0o600, "third": 0o644} { // that of the last write
		if err := Write(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		checkFile(t, path, content, mode)
	}
	if err := WriteJSON(path, map[string]int{"a": 1}); err != nil {
		t.Fatal(err)
	}
	checkFile(t, path, "{\n  \"a\": 1\n}\n", 0o600)
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".file.json*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	if err := Write(filepath.Dir(path), nil, 0o600); err == nil {
		t.Error("a directory was replaced by a file")
	}
}

// A watcher is not woken by a write of the same content.
func TestWriteChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := WriteChanged(path, []byte("same"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if err := WriteChanged(path, []byte("same"), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("the file was written again: %v, %v", info.ModTime(), err)
	}
	if err := WriteChanged(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	checkFile(t, path, "other", 0o600)
}

func checkFile(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != content {
		t.Errorf("content %q, %v; want %q", got, err, content)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
		t.Errorf("mode %v, %v; want %v", info.Mode(), err, mode)
	}
}
