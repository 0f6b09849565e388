package journal_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"kaz/internal/localazure/core/journal"
)

// records reads the numbers in a journal. A damaged line is the negative of its number.
func records(t *testing.T, path string) (all []int, size int64, err error) {
	t.Helper()
	size, err = journal.Read(path, func(_ int, record []byte) error {
		var n int
		if err := json.Unmarshal(record, &n); err != nil {
			return err
		}
		all = append(all, n)
		return nil
	}, func(line int, _ []byte) { all = append(all, -line) })
	return all, size, err
}

// written is a journal with the numbers from 1 to n.
func written(t *testing.T, path string, n int) *journal.Journal {
	t.Helper()
	j, err := journal.Open(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := j.Append(i + 1); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

func TestDrop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := written(t, path, 3)
	size := j.Size()
	if err := j.Append(4); err != nil {
		t.Fatal(err)
	}
	if err := j.Drop(size); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(5); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got, _, err := records(t, path); err != nil || len(got) != 2 || got[0] != 4 || got[1] != 5 {
		t.Errorf("the journal has %v, %v; want 4 and 5", got, err)
	}
}

// A journal that is cut off anywhere has all records before the cut, and goes on behind them.
func TestCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	if err := written(t, path, 12).Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range text {
		if err := os.WriteFile(path, text[:at], 0o600); err != nil {
			t.Fatal(err)
		}
		got, size, err := records(t, path)
		if want := bytes.Count(text[:at], []byte("\n")); err != nil || len(got) != want {
			t.Fatalf("cut at %d: %v, %v; want %d records", at, got, err, want)
		}
		j, err := journal.Open(path, size)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Append(99); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if again, _, err := records(t, path); err != nil || len(again) != len(got)+1 || again[len(got)] != 99 {
			t.Fatalf("cut at %d and continued: %v, %v", at, again, err)
		}
	}
}

// For any content of the file, Read returns the records that were written, from the first on, and names damaged lines.
func FuzzRead(f *testing.F) {
	f.Add(5, byte('x'))
	f.Add(0, byte('\n'))
	f.Add(40, byte(0))
	f.Fuzz(func(t *testing.T, at int, b byte) {
		path := filepath.Join(t.TempDir(), "journal")
		if err := written(t, path, 5).Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if at < 0 || at >= len(text) {
			return
		}
		text[at] = b
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		got, _, err := records(t, path)
		if err != nil {
			return
		}
		last, read := 0, 0
		for _, n := range got {
			if n < 0 {
				continue
			}
			if n <= last || n > 5 {
				t.Fatalf("byte %d as %q: read %v", at, b, got)
			}
			last, read = n, read+1
		}
		if read < 3 { // one byte touches at most two records
			t.Fatalf("byte %d as %q: read %v only", at, b, got)
		}
	})
}
