package core_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kaz/internal/localazure/core"
)

// FuzzState starts with any state file and journal. It starts, and then starts again with the same resources, or it refuses and
// changes neither file.
func FuzzState(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, "state.json")
	a := start(f, core.Options{Latency: 1})
	if err := a.Open(path); err != nil {
		f.Fatal(err)
	}
	a.group()
	if err := a.SaveFile(path); err != nil {
		f.Fatal(err)
	}
	a.must("PUT", table, `{"location":"eastus"}`)
	a.must("PUT", address, `{"location":"eastus"}`)
	if err := a.Close(); err != nil {
		f.Fatal(err)
	}
	journal := strings.TrimSuffix(path, ".json") + "-journal.jsonl"
	texts := make([][]byte, 2)
	for i, file := range []string{path, journal} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		texts[i] = text
	}
	f.Add(texts[0], texts[1])
	f.Add([]byte(`{"format":"kaz local azure state 1","resources":[{"id":"x","document":[[[]]]},{}],"operations":[null,{"resource":"/"}]}`), texts[1])
	f.Add([]byte(`{"resources": [{"id": "/subscr`), []byte("00000000 {}\n"))
	f.Add([]byte{}, []byte{})
	quiet := slog.New(slog.DiscardHandler)
	f.Fuzz(func(t *testing.T, state, log []byte) {
		path := filepath.Join(t.TempDir(), "state.json")
		journal := strings.TrimSuffix(path, ".json") + "-journal.jsonl"
		for file, text := range map[string][]byte{path: state, journal: log} {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		first := start(t, core.Options{Log: quiet})
		if first.Open(path) != nil {
			now, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(now, state) {
				t.Fatalf("refused and changed: %v %q", err, now)
			}
			return
		}
		var saved, again bytes.Buffer
		if err := first.Save(&saved); err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		second := start(t, core.Options{Log: quiet})
		if err := second.Open(path); err != nil {
			t.Fatalf("it started once: %v", err)
		}
		defer second.Close()
		if err := second.Save(&again); err != nil {
			t.Fatal(err)
		}
		if first, second := resourcesOf(saved.Bytes()), resourcesOf(again.Bytes()); first != second {
			t.Errorf("first %s\nthen %s", first, second)
		}
	})
}

// resourcesOf are the resources in the text of a state.
func resourcesOf(state []byte) string {
	_, resources, _ := strings.Cut(string(state), `"resources"`)
	resources, _, _ = strings.Cut(resources, `"operations"`)
	return resources
}
