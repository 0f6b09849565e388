package content

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kaz/internal/localazure/plane/octets"
)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ensure(t *testing.T, s *Store, content string, snapshots ...time.Time) {
	t.Helper()
	if err := s.Ensure(t.Context(), content, snapshots); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func TestASnapshotKeepsWhatTheShareHad(t *testing.T) {
	s := open(t)
	ensure(t, s, "one")
	share := s.Path("one", time.Time{})
	write(t, filepath.Join(share, "file"), "before")
	first, second := time.Unix(1, 100), time.Unix(1, 200)
	ensure(t, s, "one", first)
	write(t, filepath.Join(share, "file"), "after")
	ensure(t, s, "one", first, second)
	for at, want := range map[time.Time]string{first: "before", second: "after"} {
		file := filepath.Join(s.Path("one", at), "file")
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("snapshot %v: %q %v, want %q", at, got, err, want)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("snapshot %v: mode %v %v, want 0640", at, info.Mode(), err)
		}
	}
	ensure(t, s, "one", second)
	if _, err := os.Stat(s.Path("one", first)); !os.IsNotExist(err) {
		t.Errorf("the removed snapshot: %v", err)
	}
}

// A large file that is mostly a hole takes no space in a snapshot.
func TestHolesStayHoles(t *testing.T) {
	s := open(t)
	ensure(t, s, "one")
	file := filepath.Join(s.Path("one", time.Time{}), "file")
	write(t, file, "")
	const size, at = 1 << 30, 512 << 20
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 8192), at); err != nil {
		t.Fatal(err)
	}
	if err := Clear(f, at, 4096); err != nil {
		t.Fatal(err)
	}
	ranges, err := Ranges(f, octets.Range{From: 0, To: size})
	if want := []octets.Range{{From: at + 4096, To: at + 8192}}; err != nil || !slices.Equal(ranges, want) {
		t.Errorf("ranges %v %v, want %v", ranges, err, want)
	}
	ensure(t, s, "one", time.Unix(1, 0))
	if used, err := s.Usage("one"); err != nil || used > 64<<10 {
		t.Errorf("the share uses %d bytes, %v", used, err)
	}
	copied, err := os.Stat(filepath.Join(s.Path("one", time.Unix(1, 0)), "file"))
	if err != nil || copied.Size() != size {
		t.Fatalf("copied file: %v", err)
	}
}

func TestSweepRemovesSharesThatAreGone(t *testing.T) {
	s := open(t)
	ensure(t, s, "one", time.Unix(1, 0))
	ensure(t, s, "two", time.Unix(1, 0))
	if err := s.Sweep(map[string]bool{"two": true}); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(s.dir, "*"))
	if want := []string{s.Path("two", time.Time{}), s.Path("two", time.Unix(1, 0))}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
}

func TestAttributesOfFilesAndDirectories(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	for _, name := range []string{".", "file"} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got, err := ReadAttribute(f); err != nil || got != nil {
			t.Errorf("%s has %q %v before a write", name, got, err)
		}
		if err := WriteAttribute(f, []byte("text of "+name)); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadAttribute(f); err != nil || string(got) != "text of "+name {
			t.Errorf("%s has %q %v", name, got, err)
		}
	}
}
