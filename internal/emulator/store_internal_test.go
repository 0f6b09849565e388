package emulator

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// Whatever is put, edited and removed, and however much of it is taken back, the
// indexes say what the documents say.
func TestIndexesFollowTheDocuments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, err := New(Options{Providers: []behaviour.Provider{{Types: []behaviour.Type{
			{Name: "Microsoft.Resources/resourceGroups", Style: behaviour.Group()},
			{Name: "A.B/c", Style: behaviour.Network()},
			{Name: "A.B/c/d", Style: behaviour.Plain("d")},
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		ids := []azure.ID{}
		for _, g := range []string{"g1", "g2"} {
			group := azure.GroupID(e.options.Subscription, g)
			for _, n := range []string{"x", "y"} {
				id := group.Resource("A.B/c", n)
				ids = append(ids, id, id.Child("d", "z"))
			}
			ids = append(ids, group)
		}
		id := rapid.SampledFrom(ids)
		for range rapid.IntRange(1, 12).Draw(t, "transactions") {
			before := dump(e)
			refused := rapid.Bool().Draw(t, "refused")
			_ = e.write(func(w *transaction) error {
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
			if after := dump(e); refused && after != before {
				t.Fatalf("a refused transaction left\n%s\nbefore it was\n%s", after, before)
			}
			consistent(t, e)
		}
	})
}

func dump(e *Emulator) string {
	var lines []string
	for key, entry := range e.store.entries {
		lines = append(lines, fmt.Sprintf("%s %d %s %s", key, entry.seq, entry.etag, entry.text))
	}
	slices.Sort(lines)
	return fmt.Sprint(lines)
}

// consistent rebuilds the indexes and compares.
func consistent(t *rapid.T, e *Emulator) {
	fresh := newStore()
	for _, stored := range e.store.entries {
		doc := stored.fresh()
		fresh.put(&entry{id: stored.id, kind: stored.kind, seq: stored.seq, refs: references(stored.id, doc)})
	}
	for scope, byType := range fresh.lists {
		for typ, entries := range byType {
			if got := e.store.lists[scope][typ]; !slices.EqualFunc(got, entries, func(a, b *entry) bool { return a.id == b.id }) {
				t.Fatalf("list of %s in %s: %v, want %v", typ, scope, idsOf(got), idsOf(entries))
			}
		}
	}
	if len(fresh.lists) != len(e.store.lists) || len(fresh.refs) != len(e.store.refs) {
		t.Fatalf("%d lists and %d targets, want %d and %d", len(e.store.lists), len(e.store.refs), len(fresh.lists), len(fresh.refs))
	}
	for target := range fresh.refs {
		if got, want := e.store.referrers(azure.ID(target)), fresh.referrers(azure.ID(target)); !slices.Equal(got, want) {
			t.Fatalf("referrers of %s: %v, want %v", target, got, want)
		}
	}
}

func idsOf(entries []*entry) []azure.ID {
	ids := make([]azure.ID, len(entries))
	for i, e := range entries {
		ids[i] = e.id
	}
	return ids
}
