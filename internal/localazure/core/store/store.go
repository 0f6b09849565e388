// Package store has the documents of the local Azure, with their indexes, and the
// transactions that read and change them. Layer L2: azure, behaviour, document, kind.
package store

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/random"
)

// Entry is a stored resource. It does not change once it is in the store: a write
// replaces it. The document is kept as text, which is a tenth of what its tree
// takes. The trees of the entries that were read last are kept as well.
type Entry struct {
	ID     azure.ID
	Kind   *kind.Kind
	Seq    uint64 // order of creation
	Text   []byte // the document
	Etag   string // as the document shows it, "" for none
	Count  int    // of changes, for etags that count
	Hidden bool   // from clients, until its creation has ended
	// Before is the state before the last change, kept only while a fault rule needs it.
	Before *Entry

	tree atomic.Pointer[behaviour.Object]
	head atomic.Pointer[behaviour.Object] // kept once it was read
	refs []document.Reference
}

// Options are the parts that a store works with.
type Options struct {
	Kinds  kind.Table
	Random *random.Source // for GUIDs, also in etags
	Log    *slog.Logger
	// KeepBefore reports whether entries are to keep the state before their last change.
	KeepBefore func() bool
	// Commit, when not nil, is called at the end of every transaction that can write. Its error takes all
	// changes back.
	Commit func(t *Transaction) error
}

// Store holds all resources. Transactions are the way to them.
type Store struct {
	// Watchers receive the changes of every transaction that is kept.
	Watchers Watchers

	options Options
	mu      sync.RWMutex
	index   *index
}

// New returns an empty store.
func New(o Options) *Store { return &Store{options: o, index: newIndex()} }

// index has the entries and the ways to find them. Its methods are called with the lock
// held, and never wait.
type index struct {
	entries map[string]*Entry
	// lists has the entries by scope and type, oldest first: under their parent, and
	// under their subscription.
	lists map[string]map[string][]*Entry
	// refs has the places that name a resource, by its key and the key of the
	// document that the place is in.
	refs    map[string]map[string][]behaviour.Referrer
	lastSeq uint64
	size    int // of the texts of all entries, in bytes
	recent  recent
}

func newIndex() *index {
	return &index{entries: map[string]*Entry{}, lists: map[string]map[string][]*Entry{}, refs: map[string]map[string][]behaviour.Referrer{}}
}

// recent bounds how many decoded trees are kept.
type recent struct {
	entries [2048]atomic.Pointer[Entry]
	next    atomic.Uint64
}

func (r *recent) add(e *Entry) {
	recent := &r.entries[r.next.Add(1)%uint64(len(r.entries))]
	if old := recent.Swap(e); old != nil && old != e {
		old.tree.Store(nil)
	}
}

// Doc is the entry's document, shared: not to be changed.
func (s *index) Doc(e *Entry) behaviour.Object {
	if tree := e.tree.Load(); tree != nil {
		return *tree
	}
	tree := e.Fresh()
	e.tree.Store(&tree)
	s.recent.add(e)
	return tree
}

// Fresh is a copy of the entry's document that belongs to the caller.
func (e *Entry) Fresh() behaviour.Object {
	var tree behaviour.Object
	if err := json.Unmarshal(e.Text, &tree); err != nil {
		panic("stored document of " + string(e.ID) + " is not JSON: " + err.Error())
	}
	return tree
}

// Head is the entry's document without its properties but for the provisioningState, shared: not to be changed.
func (e *Entry) Head() behaviour.Object {
	if head := e.head.Load(); head != nil {
		return *head
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(e.Text, &fields); err != nil {
		panic("stored document of " + string(e.ID) + " is not JSON: " + err.Error())
	}
	var properties struct {
		State string `json:"provisioningState"`
	}
	head := behaviour.Object{}
	for key, text := range fields {
		if key == "properties" {
			_ = json.Unmarshal(text, &properties) // a state that is no string is none
			continue
		}
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			panic("stored document of " + string(e.ID) + " is not JSON: " + err.Error())
		}
		head[key] = value
	}
	if properties.State != "" {
		head["properties"] = behaviour.Object{"provisioningState": properties.State}
	}
	e.head.Store(&head)
	return head
}

// Size is the size of all documents in bytes.
func (s *index) Size() int { return s.size }

// All returns all entries, oldest first.
func (s *index) All() []*Entry {
	return slices.SortedFunc(maps.Values(s.entries), func(a, b *Entry) int { return cmp.Compare(a.Seq, b.Seq) })
}

// put adds or replaces.
func (s *index) put(e *Entry) {
	key := e.ID.Key()
	old := s.entries[key]
	if old != nil {
		e.Seq = old.Seq
		s.size -= len(old.Text)
		s.unrefer(key, old)
	} else if e.Seq == 0 {
		s.lastSeq++
		e.Seq = s.lastSeq
	}
	s.entries[key] = e
	s.size += len(e.Text)
	for _, scope := range scopes(e.ID) {
		byType := s.lists[scope]
		if byType == nil {
			byType = map[string][]*Entry{}
			s.lists[scope] = byType
		}
		typ := typeKey(e)
		i, found := slices.BinarySearchFunc(byType[typ], e.Seq, bySeq)
		if found {
			byType[typ][i] = e
		} else {
			byType[typ] = slices.Insert(byType[typ], i, e)
		}
	}
	s.refer(key, e)
}

func bySeq(e *Entry, seq uint64) int { return cmp.Compare(e.Seq, seq) }

func typeKey(e *Entry) string { return strings.ToLower(e.Kind.Name) }

// scopes are the scopes that list a resource.
func scopes(id azure.ID) []string {
	parent := id.Parent().Key()
	subscription := ""
	if s := id.Subscription(); s != "" {
		subscription = azure.SubscriptionID(s).Key()
	}
	if subscription == parent {
		return []string{parent}
	}
	return []string{parent, subscription}
}

// remove takes an entry away.
func (s *index) remove(e *Entry) {
	key := e.ID.Key()
	delete(s.entries, key)
	s.size -= len(e.Text)
	s.unrefer(key, e)
	for _, scope := range scopes(e.ID) {
		byType := s.lists[scope]
		typ := typeKey(e)
		if i, found := slices.BinarySearchFunc(byType[typ], e.Seq, bySeq); found {
			byType[typ] = slices.Delete(byType[typ], i, i+1)
		}
		if len(byType[typ]) == 0 {
			delete(byType, typ)
		}
		if len(byType) == 0 {
			delete(s.lists, scope)
		}
	}
}

// Entries are the resources of a type in a scope, oldest first: a subscription, a group,
// a parent, or "" for resources outside of subscriptions.
func (s *index) Entries(scope azure.ID, fullType string) []*Entry {
	return s.lists[scope.Key()][strings.ToLower(fullType)]
}

// below are the entries directly under an id, of all types, oldest first.
func (s *index) below(id azure.ID) []*Entry {
	var entries []*Entry
	for _, of := range s.lists[id.Key()] {
		entries = append(entries, of...)
	}
	slices.SortFunc(entries, func(a, b *Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	return entries
}

func (s *index) refer(key string, e *Entry) {
	for _, r := range e.refs {
		places := s.refs[r.Target]
		if places == nil {
			places = map[string][]behaviour.Referrer{}
			s.refs[r.Target] = places
		}
		places[key] = append(places[key], r.Place)
	}
}

func (s *index) unrefer(key string, e *Entry) {
	for _, r := range e.refs {
		delete(s.refs[r.Target], key)
		if len(s.refs[r.Target]) == 0 {
			delete(s.refs, r.Target)
		}
	}
}

// Referrers implements [behaviour.World].
func (s *index) Referrers(id azure.ID) []behaviour.Referrer {
	var all []behaviour.Referrer
	for _, places := range s.refs[id.Key()] {
		all = append(all, places...)
	}
	slices.SortFunc(all, func(a, b behaviour.Referrer) int {
		return cmp.Or(strings.Compare(string(a.Object), string(b.Object)), strings.Compare(a.Path, b.Path))
	})
	return all
}
