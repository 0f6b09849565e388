package plan

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"kaz/internal/azure"
)

// Snapshot is what Azure is known to hold, by id. A resource that is absent from the snapshot is taken not to exist,
// so a snapshot must hold all that its graph is about. A snapshot also says what could not be read, and why: that may
// exist.
//
// A snapshot is never changed. A derived snapshot shares the documents of the other, so that adding one to many costs
// little.
type Snapshot struct {
	docs   map[string]azure.Document // by id key; shared, never changed
	edits  map[string]azure.Document // what differs from docs, nil for gone; small, never changed
	unread map[string]azure.Kind     // by scope and type; never changed
	absent map[string]string         // Azure's messages about what is not there; never changed
	views  *sync.Map                 // documents that were decoded; see [View]
}

// NewSnapshot holds the given documents under their own ids.
func NewSnapshot(docs ...azure.Document) Snapshot {
	return Snapshot{}.With(docs...)
}

// With is the snapshot with docs added or replaced.
func (s Snapshot) With(docs ...azure.Document) Snapshot {
	return s.edited(len(docs), func(edits map[string]azure.Document) {
		for _, d := range docs {
			edits[d.ID().Key()] = d
		}
	})
}

// Without is the snapshot without the resource id.
func (s Snapshot) Without(id azure.ID) Snapshot {
	return s.edited(1, func(edits map[string]azure.Document) { edits[id.Key()] = nil })
}

// Merge is the snapshot with all of other's documents added or replaced.
func (s Snapshot) Merge(other Snapshot) Snapshot { return Joined(s, other) }

// Joined is a snapshot of all that others hold. Of two documents of the same resource, the later one counts.
func Joined(all ...Snapshot) Snapshot {
	joined := Snapshot{unread: map[string]azure.Kind{}, absent: map[string]string{}, views: &sync.Map{}}
	if len(all) > 0 && all[0].views != nil {
		joined.views = all[0].views
	}
	n := 0
	for _, s := range all {
		n += s.Len()
		maps.Copy(joined.unread, s.unread)
		maps.Copy(joined.absent, s.absent)
	}
	return joined.edited(n, func(edits map[string]azure.Document) {
		for _, s := range all {
			maps.Insert(edits, s.all())
		}
	})
}

// edited is the snapshot with up to n more edits. Many edits are merged into the documents, so that the copies of
// edits stay small.
func (s Snapshot) edited(n int, edit func(map[string]azure.Document)) Snapshot {
	edits := make(map[string]azure.Document, len(s.edits)+n)
	maps.Copy(edits, s.edits)
	edit(edits)
	s.edits = edits
	if s.views == nil {
		s.views = &sync.Map{}
	}
	if few := 16 + len(s.docs)/64; len(edits) > few {
		s.docs, s.edits = maps.Collect(s.all()), nil
	}
	return s
}

// all are the documents by id key.
func (s Snapshot) all() iter.Seq2[string, azure.Document] {
	return func(yield func(string, azure.Document) bool) {
		for key, d := range s.docs {
			if _, edited := s.edits[key]; !edited && !yield(key, d) {
				return
			}
		}
		for key, d := range s.edits {
			if d != nil && !yield(key, d) {
				return
			}
		}
	}
}

// Get returns the document of id.
func (s Snapshot) Get(id azure.ID) (azure.Document, bool) {
	key := id.Key()
	if d, edited := s.edits[key]; edited {
		return d, d != nil
	}
	d, ok := s.docs[key]
	return d, ok
}

// Len counts the documents.
func (s Snapshot) Len() int {
	n := len(s.docs)
	for key, d := range s.edits {
		_, known := s.docs[key]
		switch {
		case known && d == nil:
			n--
		case !known && d != nil:
			n++
		}
	}
	return n
}

// WithUnread is the snapshot that also says that the resources of a full type in scope could not be read, and why.
// For a single resource, the scope is its id.
func (s Snapshot) WithUnread(scope azure.ID, fullType string, why azure.Kind) Snapshot {
	return Joined(s, Snapshot{unread: map[string]azure.Kind{unreadKey(scope, fullType): why}})
}

// WithAbsent is the snapshot that also has Azure's message about a resource that was asked for and is not there.
func (s Snapshot) WithAbsent(id azure.ID, said string) Snapshot {
	return Joined(s, Snapshot{absent: map[string]string{id.Key(): said}})
}

// Absent returns Azure's message about a resource that is not there. It reports false for a resource that is there,
// or that was not asked for. The resource group may be missing, which only the message tells.
func (s Snapshot) Absent(id azure.ID) (said string, absent bool) {
	said, absent = s.absent[id.Key()]
	if _, made := s.Get(id); made {
		return "", false
	}
	return said, absent
}

// Unread reports whether resources of a full type in scope could not be read, and why. For a single resource, the
// scope is its id.
func (s Snapshot) Unread(scope azure.ID, fullType string) (why azure.Kind, unread bool) {
	why, unread = s.unread[unreadKey(scope, fullType)]
	return why, unread
}

func unreadKey(scope azure.ID, fullType string) string {
	return scope.Key() + " " + strings.ToLower(fullType)
}

// List returns the documents of the full type fullType that lie in scope, in the order of their ids. A snapshot holds
// only what was read into it, so the listed resources must have been asked for.
func (s Snapshot) List(scope azure.ID, fullType string) []azure.Document {
	within := scope.Key() + "/"
	namespace, types, _ := strings.Cut(strings.ToLower(fullType), "/")
	first, _, _ := strings.Cut(types, "/")
	typed := "/" + namespace + "/" + first + "/" // cheap to look for, unlike the type itself
	var keys []string
	for key := range s.all() {
		if strings.HasPrefix(key, within) && strings.Contains(key, typed) && azure.ID(key).Is(fullType) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	docs := make([]azure.Document, len(keys))
	for i, key := range keys {
		docs[i], _ = s.Get(azure.ID(key))
	}
	return docs
}
