package kept_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kaz/internal/localazure/plane/queue/kept"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func message(id, text string) kept.Message {
	return kept.Message{ID: id, Text: &text, Inserted: start, Visible: start, Receipt: "first"}
}

func load(t *testing.T, dir string) *kept.Store {
	t.Helper()
	s := &kept.Store{}
	if err := s.Load(dir, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// live returns what the live messages of a queue are: id, text, receipt and how often it was taken.
func live(s *kept.Store, key, made string, now time.Time) string {
	s.Lock()
	defer s.Unlock()
	var all []string
	for _, m := range s.Live(key, made, now) {
		all = append(all, fmt.Sprintf("%s %s %s %d", m.ID, *m.Text, m.Receipt, m.Taken))
	}
	return strings.Join(all, ", ")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRestart checks that a store that is not closed, like that of a killed process, has lost nothing at the next start.
func TestRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "queues")
	s := load(t, dir)
	expiring := message("c", "three")
	expiring.Expires = start.Add(time.Minute)
	must(t, s.Put("q", "1", message("a", "one"), message("b", "two"), expiring))
	taken := message("b", "")
	taken.Text, taken.Receipt, taken.Taken = nil, "second", 1
	must(t, s.Put("q", "1", taken))
	must(t, s.Forget("q", "1", "a"))
	must(t, s.Put("other", "1", message("x", "gone")))
	must(t, s.Drop("other"))
	must(t, s.Put("again", "1", message("y", "of an earlier queue")))
	must(t, s.Put("again", "2", message("z", "later")))
	file := filepath.Join(dir, "messages.journal")
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, append(text, []byte(`0123abcd {"queue":"q","fo`)...), 0o600)) // the process ended while it wrote
	s = load(t, dir)
	for _, x := range []struct {
		key, made, want string
		after           time.Duration
	}{
		{"q", "1", "b two second 1, c three first 0", 0},
		{"q", "1", "b two second 1", time.Minute},
		{"other", "1", "", 0},
		{"again", "2", "z later first 0", 0},
		{"again", "3", "", 0},
		{"again", "2", "", 0},
	} {
		if got := live(s, x.key, x.made, start.Add(x.after)); got != x.want {
			t.Errorf("queue %s made at %s has %q after %s, want %q", x.key, x.made, got, x.after, x.want)
		}
	}
}

// TestShortJournal checks that the journal does not grow with the changes of the messages, and that no message is lost with its length.
func TestShortJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "queues")
	s := load(t, dir)
	must(t, s.Put("q", "1", message("stays", "first")))
	large := strings.Repeat("x", 60<<10)
	for i := range 200 {
		id := fmt.Sprint(i)
		must(t, s.Put("q", "1", message(id, large)))
		must(t, s.Forget("q", "1", id))
	}
	info, err := os.Stat(filepath.Join(dir, "messages.journal"))
	must(t, err)
	if info.Size() > 2<<20 {
		t.Errorf("the journal has %d bytes for one message", info.Size())
	}
	if got := live(load(t, dir), "q", "1", start); got != "stays first first 0" {
		t.Errorf("after a restart: %q", got)
	}
}

// TestSpace checks that the space of deleted and expired messages is free again.
func TestSpace(t *testing.T) {
	s := &kept.Store{}
	large := strings.Repeat("x", 256<<20)
	for i := range 4 {
		m := message(fmt.Sprint(i), large)
		m.Expires = start.Add(time.Minute)
		must(t, s.Put("q", "1", m))
	}
	if err := s.Put("q", "1", message("more", "x")); err == nil {
		t.Error("more than 1 GiB is kept")
	}
	live(s, "q", "1", start.Add(time.Minute))
	must(t, s.Put("q", "1", message("again", large)))
}
