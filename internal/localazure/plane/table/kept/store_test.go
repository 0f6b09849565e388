package kept_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kaz/internal/localazure/core/keep"
	"kaz/internal/localazure/plane/table/entity"
	"kaz/internal/localazure/plane/table/kept"
	"kaz/internal/localazure/plane/table/odata"
)

var (
	now   = time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	table = kept.Table{Key: "t", Made: "today"}
)

func open(t *testing.T, file string) (*kept.Store, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s := &kept.Store{}
	if err := s.Open(file, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, &log
}

func of(key, value string) entity.Entity {
	return entity.Entity{Key: entity.Key{Partition: "p", Row: key}, Properties: []entity.Property{{Name: "V", Value: odata.StringOf(value)}}}
}

// put writes entities together.
func put(t *testing.T, s *kept.Store, in kept.Table, all ...entity.Entity) {
	t.Helper()
	s.Lock()
	defer s.Unlock()
	w := s.Begin(in)
	for _, e := range all {
		w.Put(e, now)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

// rows returns the row keys and values of a table.
func rows(s *kept.Store, in kept.Table) string {
	s.Lock()
	defer s.Unlock()
	var all []string
	for e := range s.From(in, entity.Key{}) {
		all = append(all, e.Row+"="+e.Get("V").Text())
	}
	return strings.Join(all, " ")
}

// What is acknowledged survives a process that is killed: nothing is closed here.
func TestKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tables.jsonl")
	s, _ := open(t, file)
	put(t, s, table, of("b", "1"), of("a", "1"))
	put(t, s, table, of("b", "2"))
	put(t, s, kept.Table{Key: "u", Made: "today"}, of("x", "1"))
	put(t, s, kept.Table{Key: "gone", Made: "today"}, of("x", "1"))
	s.Lock()
	w := s.Begin(table)
	w.Delete(entity.Key{Partition: "p", Row: "a"})
	w.Put(of("c", "3"), now)
	if _, there := w.Get(entity.Key{Partition: "p", Row: "a"}); there {
		t.Error("a deleted entity is there")
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	abandoned := s.Begin(table)
	abandoned.Put(of("never", "1"), now)
	if err := s.Drop("gone"); err != nil {
		t.Fatal(err)
	}
	s.Unlock()
	again, log := open(t, file)
	for _, store := range []*kept.Store{s, again} {
		if got := rows(store, table); got != "b=2 c=3" {
			t.Errorf("got %q", got)
		}
		if got := rows(store, kept.Table{Key: "u", Made: "today"}); got != "x=1" {
			t.Errorf("another table has %q", got)
		}
		if got := rows(store, kept.Table{Key: "gone", Made: "today"}); got != "" {
			t.Errorf("a dropped table has %q", got)
		}
	}
	if log.Len() > 0 {
		t.Errorf("the log has %s", log)
	}
}

// A table that is made again has no entity of the one before.
func TestMadeAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tables.jsonl")
	s, _ := open(t, file)
	put(t, s, table, of("a", "1"))
	later := kept.Table{Key: table.Key, Made: "tomorrow"}
	if got := rows(s, later); got != "" {
		t.Errorf("the new table has %q", got)
	}
	put(t, s, later, of("b", "2"))
	again, _ := open(t, file)
	if got := rows(again, later); got != "b=2" {
		t.Errorf("got %q", got)
	}
}

// What is kept of tables that are gone, or were made again, is forgotten.
func TestRetain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tables.jsonl")
	s, _ := open(t, file)
	again, gone := kept.Table{Key: "again", Made: "today"}, kept.Table{Key: "gone", Made: "today"}
	for _, in := range []kept.Table{table, again, gone} {
		put(t, s, in, of("a", "1"))
	}
	s.Lock()
	err := s.Retain(map[string]string{table.Key: table.Made, again.Key: "tomorrow"})
	s.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	later, _ := open(t, file)
	for in, want := range map[kept.Table]string{table: "a=1", again: "", gone: ""} {
		if got := rows(later, in); got != want {
			t.Errorf("%s has %q, want %q", in.Key, got, want)
		}
	}
}

// No two writes have the same time, though the clock stands still.
func TestStamps(t *testing.T) {
	s := &kept.Store{}
	s.Lock()
	defer s.Unlock()
	w := s.Begin(table)
	var all []string
	for range 3 {
		all = append(all, w.Put(of("a", "1"), now).ETag())
	}
	if slices.Sort(all); len(slices.Compact(all)) != 3 {
		t.Errorf("etags %v", all)
	}
}

// A journal does not grow for ever: what is in it twice is dropped.
func TestShortened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tables.jsonl")
	s, _ := open(t, file)
	large := strings.Repeat("x", 30<<10)
	for i := range 400 {
		put(t, s, table, of(fmt.Sprint(i%4), large))
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 8<<20 {
		t.Errorf("the journal of 4 entities has %d bytes", info.Size())
	}
	again, _ := open(t, file)
	if got := len(rows(again, table)); got != len(rows(s, table)) || got < 4*len(large) {
		t.Errorf("the rows have %d bytes", got)
	}
}

// A line that cannot be read is set aside, and all others are read.
func TestUnreadable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tables.jsonl")
	s, _ := open(t, file)
	put(t, s, table, of("a", "1"))
	put(t, s, table, of("b", "1"))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte(`"a"`), []byte(`"x"`), 1)
	if err := os.WriteFile(file, append(text, "cut off"...), 0o600); err != nil {
		t.Fatal(err)
	}
	again, log := open(t, file)
	if got := rows(again, table); got != "b=1" {
		t.Errorf("got %q", got)
	}
	aside, err := os.ReadFile(file + keep.UnreadableSuffix)
	if err != nil || !bytes.Contains(aside, []byte(`"x"`)) || !strings.Contains(log.String(), keep.UnreadableSuffix) {
		t.Errorf("set aside %q, %v, log %s", aside, err, log)
	}
}
