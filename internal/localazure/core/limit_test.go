package core_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kaz/internal/localazure/core"
)

// nested is an object with a chain of objects, so that the whole is nested to a depth.
func nested(depth int) string {
	return `{"location":"eastus","properties":{"deep":` + strings.Repeat(`{"a":`, depth-2) + `1` + strings.Repeat(`}`, depth-2) + `}}`
}

// A document that is acknowledged is read again at the next start, however deep it is.
func TestDeepBodies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	a := start(t, core.Options{})
	if err := a.Open(path); err != nil {
		t.Fatal(err)
	}
	a.group()
	acknowledged := []string{}
	for _, depth := range []int{10, 127, 128, 129, 1000, 9997, 9999, 10_000, 10_001} {
		id := fmt.Sprintf("%s/t%d", tables, depth)
		got := a.do("PUT", id, nested(depth))
		if got.status < 300 {
			acknowledged = append(acknowledged, id)
			continue
		}
		if depth <= 128 || got.status != 400 || got.code() != "InvalidRequestContent" {
			t.Errorf("depth %d: %d %.300v", depth, got.status, got.body)
		}
	}
	for i := range 300 { // each of them goes deeper into what is stored
		deeper := strings.Repeat(`{"a":`, i) + `{"a":1}` + strings.Repeat(`}`, i)
		a.do("PATCH", acknowledged[0], `{"properties":{"deep":`+deeper+`}}`)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b := start(t, core.Options{})
	if err := b.Open(path); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, id := range acknowledged {
		if got := b.do("GET", id, ""); got.status != 200 {
			t.Errorf("%s after a restart: %d %v", id, got.status, got.body)
		}
	}
}

// Patches cannot make a document grow without a bound.
func TestGrowingDocument(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	a.must("PUT", machine, `{"location":"eastus"}`)
	refused := false
	for i := range 8 {
		got := a.do("PATCH", machine, fmt.Sprintf(`{"properties":{"p%d":%q}}`, i, strings.Repeat("x", 3<<20)))
		if refused = got.status == 413 && got.code() == "RequestContentTooLarge"; refused {
			break
		}
	}
	if !refused {
		t.Error("24 MB of properties were accepted in a resource")
	}
}

// The state has no more of ended operations than a bound, however large their resources are.
func TestStateOfEndedOperations(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	for i := range 60 {
		a.must("PUT", machine, fmt.Sprintf(`{"location":"eastus","properties":{"p":"%d%s"}}`, i, strings.Repeat("x", 1<<20)))
	}
	var saved bytes.Buffer
	if err := a.Save(&saved); err != nil {
		t.Fatal(err)
	}
	if most := 40 << 20; saved.Len() > most {
		t.Errorf("the state of a resource of 1 MB has %d MB after 60 writes", saved.Len()>>20)
	}
}

// A record that cannot be read is set aside in a file of its own, and everything else starts again.
func TestUnreadableRecordsAreSetAside(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 10_001) + `1` + strings.Repeat(`}`, 10_001)
	for name, c := range map[string]struct{ replace, by, named, lost string }{
		"too deep":     {`"keep":"T1"`, `"keep":` + deep, "rt1", "rt1"},
		"unknown type": {`Microsoft.Network/routeTables/rt1"`, `Microsoft.Network/rootTables/rt1"`, "rootTables/rt1", "rt1"},
		"no id": {`"id":"` + tables + `/rt1"`, `"id":"x"`,
			"is not an Azure resource id", "rt1"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.json")
			a := start(t, core.Options{})
			a.group()
			for i := range 3 {
				a.must("PUT", fmt.Sprintf("%s/rt%d", tables, i), fmt.Sprintf(`{"location":"eastus","properties":{"keep":"T%d"}}`, i))
			}
			if err := a.SaveFile(path); err != nil {
				t.Fatal(err)
			}
			text := compact(t, path)
			if !strings.Contains(text, c.replace) {
				t.Fatalf("the state has no %s:\n%s", c.replace, text)
			}
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, c.replace, c.by)), 0o600); err != nil {
				t.Fatal(err)
			}
			b := start(t, core.Options{})
			if err := b.Open(path); err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			for i := range 3 {
				want := 200
				if fmt.Sprintf("rt%d", i) == c.lost {
					want = 404
				}
				if got := b.do("GET", fmt.Sprintf("%s/rt%d", tables, i), ""); got.status != want {
					t.Errorf("rt%d: %d, want %d", i, got.status, want)
				}
			}
			aside, err := os.ReadFile(strings.TrimSuffix(path, ".json") + "-unreadable.jsonl")
			if err != nil || !strings.Contains(string(aside), c.named) {
				t.Errorf("set aside: %v\n%.400s", err, aside)
			}
			if again := start(t, core.Options{}); again.LoadFile(path) != nil {
				t.Error("the state does not load again")
			}
		})
	}
}

// compact returns the text of a file of JSON without blanks.
func compact(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A damaged record of the journal is set aside, and the records around it are read.
func TestDamagedJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	a := start(t, core.Options{})
	if err := a.Open(path); err != nil {
		t.Fatal(err)
	}
	a.group()
	for i := range 3 {
		a.must("PUT", fmt.Sprintf("%s/rt%d", tables, i), fmt.Sprintf(`{"location":"eastus","properties":{"keep":"T%d"}}`, i))
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	journal := strings.TrimSuffix(path, ".json") + "-journal.jsonl"
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(journal, bytes.ReplaceAll(text, []byte(`"keep":"T1"`), []byte(`"keep":"X1"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	b := start(t, core.Options{})
	if err := b.Open(path); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i, want := range []int{200, 404, 200} {
		if got := b.do("GET", fmt.Sprintf("%s/rt%d", tables, i), ""); got.status != want {
			t.Errorf("rt%d: %d, want %d", i, got.status, want)
		}
	}
	aside, err := os.ReadFile(strings.TrimSuffix(path, ".json") + "-unreadable.jsonl")
	if err != nil || !strings.Contains(string(aside), "X1") {
		t.Errorf("set aside: %v\n%.400s", err, aside)
	}
}

// All documents together have a bound. Deletes are accepted beyond it.
func TestMostStored(t *testing.T) {
	a := start(t, core.Options{MostStored: 4 << 20})
	a.group()
	last, refused := "", false
	for i := range 8 {
		id := fmt.Sprintf("%s/t%d", tables, i)
		got := a.do("PUT", id, fmt.Sprintf(`{"location":"eastus","properties":{"p":%q}}`, strings.Repeat("x", 1<<20)))
		if refused = got.status == 409 && got.code() == "QuotaExceeded"; refused {
			break
		}
		last = id
	}
	if !refused {
		t.Fatal("8 MB are stored, the bound is 4 MB")
	}
	a.must("DELETE", last, "")
	a.must("PUT", last, `{"location":"eastus"}`)
}

// An id that is not UTF-8 could not be kept by a state.
func TestPathOutsideUTF8(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	if got := a.do("PUT", tables+"/%ff", `{"location":"eastus"}`); got.status != 400 || got.code() != "InvalidRequestUri" {
		t.Errorf("%d %v", got.status, got.body)
	}
}
