package store

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/random"
)

// Whatever is put, edited and removed, and however much of it is taken back, the
// indexes say what the documents say.
func TestIndexesFollowTheDocuments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds, err := kind.NewTable([]behaviour.Type{
			{Name: "Microsoft.Resources/resourceGroups", Style: behaviour.Group()},
			{Name: "A.B/c", Style: behaviour.Network()},
			{Name: "A.B/c/d", Style: behaviour.Plain("d")},
		})
		if err != nil {
			t.Fatal(err)
		}
		s := New(Options{Kinds: kinds, Random: random.New(0), KeepBefore: func() bool { return false }})
		ids := []azure.ID{}
		for _, g := range []string{"g1", "g2"} {
			group := azure.GroupID("s", g)
			for _, n := range []string{"x", "y"} {
				id := group.Resource("A.B/c", n)
				ids = append(ids, id, id.Child("d", "z"))
			}
			ids = append(ids, group)
		}
		id := rapid.SampledFrom(ids)
		for range rapid.IntRange(1, 12).Draw(t, "transactions") {
			before := dump(s)
			refused := rapid.Bool().Draw(t, "refused")
			_ = s.Write(func(w *Transaction) error {
				w.Gone = func(azure.ID) {}
				for range rapid.IntRange(1, 5).Draw(t, "changes") {
					at := id.Draw(t, "id")
					switch rapid.IntRange(0, 2).Draw(t, "change") {
					case 0:
						w.Put(at, behaviour.Object{"ref": behaviour.Ref(id.Draw(t, "ref"))})
					case 1:
						w.Delete(at)
					case 2:
						to := id.Draw(t, "ref")
						w.Edit(at, func(doc behaviour.Object) { doc["refs"] = []any{string(to)} })
					}
				}
				if refused {
					return behaviour.Invalid("No", "no")
				}
				return nil
			})
			if after := dump(s); refused && after != before {
				t.Fatalf("a refused transaction left\n%s\nbefore it was\n%s", after, before)
			}
			consistent(t, s)
		}
	})
}

func dump(s *Store) string {
	var lines []string
	for key, e := range s.index.entries {
		lines = append(lines, fmt.Sprintf("%s %d %s %s", key, e.Seq, e.Etag, e.Text))
	}
	slices.Sort(lines)
	return fmt.Sprint(lines)
}

// consistent rebuilds the indexes and compares.
func consistent(t *rapid.T, s *Store) {
	fresh, stored := newIndex(), s.index
	for _, e := range stored.entries {
		fresh.put(&Entry{ID: e.ID, Kind: e.Kind, Seq: e.Seq, refs: document.References(e.Kind, e.ID, e.Fresh())})
	}
	for scope, byType := range fresh.lists {
		for typ, entries := range byType {
			if got := stored.lists[scope][typ]; !slices.EqualFunc(got, entries, func(a, b *Entry) bool { return a.ID == b.ID }) {
				t.Fatalf("list of %s in %s: %v, want %v", typ, scope, idsOf(got), idsOf(entries))
			}
		}
	}
	if len(fresh.lists) != len(stored.lists) || len(fresh.refs) != len(stored.refs) {
		t.Fatalf("%d lists and %d targets, want %d and %d", len(stored.lists), len(stored.refs), len(fresh.lists), len(fresh.refs))
	}
	for target := range fresh.refs {
		if got, want := stored.Referrers(azure.ID(target)), fresh.Referrers(azure.ID(target)); !slices.Equal(got, want) {
			t.Fatalf("referrers of %s: %v, want %v", target, got, want)
		}
	}
}

func idsOf(entries []*Entry) []azure.ID {
	ids := make([]azure.ID, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	return ids
}
