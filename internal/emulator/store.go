package emulator

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// entry is one stored resource. It is not changed once it is in the store; a write
// replaces it. The document is kept as text, which is a tenth of what its tree
// takes, and the trees of the entries read last are kept besides.
type entry struct {
	id     azure.ID
	kind   *kind
	seq    uint64 // order of creation
	text   []byte
	etag   string // as the document shows it, "" for none
	count  int    // of changes, for etags that count
	hidden bool
	tree   atomic.Pointer[behaviour.Object]
	refs   []reference
	// before is the state before the last change, kept only while a fault rule needs it.
	before *entry
}

type reference struct {
	target string // key
	place  behaviour.Referrer
}

// store holds all resources and their indexes. Its methods are called with the
// lock held, and never wait.
type store struct {
	mu      sync.RWMutex
	entries map[string]*entry
	// lists has the entries by scope and type, oldest first: under their parent, and
	// under their subscription.
	lists map[string]map[string][]*entry
	// refs has the places that name a resource, by its key and the key of the
	// document that the place is in.
	refs    map[string]map[string][]behaviour.Referrer
	lastSeq uint64
	recent  recent
}

func newStore() *store {
	return &store{entries: map[string]*entry{}, lists: map[string]map[string][]*entry{}, refs: map[string]map[string][]behaviour.Referrer{}}
}

// recent bounds how many decoded trees are kept.
type recent struct {
	slots [2048]atomic.Pointer[entry]
	next  atomic.Uint64
}

func (r *recent) add(e *entry) {
	slot := &r.slots[r.next.Add(1)%uint64(len(r.slots))]
	if old := slot.Swap(e); old != nil && old != e {
		old.tree.Store(nil)
	}
}

// doc is the entry's document, shared: not to be changed.
func (s *store) doc(e *entry) behaviour.Object {
	if tree := e.tree.Load(); tree != nil {
		return *tree
	}
	tree := e.fresh()
	e.tree.Store(&tree)
	s.recent.add(e)
	return tree
}

// fresh is a copy of the entry's document that belongs to the caller.
func (e *entry) fresh() behaviour.Object {
	var tree behaviour.Object
	if err := json.Unmarshal(e.text, &tree); err != nil {
		panic("stored document of " + string(e.id) + " is not JSON: " + err.Error())
	}
	return tree
}

// put adds or replaces.
func (s *store) put(e *entry) {
	key := e.id.Key()
	old := s.entries[key]
	if old != nil {
		e.seq = old.seq
		s.unrefer(key, old)
	} else if e.seq == 0 {
		s.lastSeq++
		e.seq = s.lastSeq
	}
	s.entries[key] = e
	for _, scope := range scopes(e.id) {
		byType := s.lists[scope]
		if byType == nil {
			byType = map[string][]*entry{}
			s.lists[scope] = byType
		}
		typ := typeKey(e)
		i, found := slices.BinarySearchFunc(byType[typ], e.seq, bySeq)
		if found {
			byType[typ][i] = e
		} else {
			byType[typ] = slices.Insert(byType[typ], i, e)
		}
	}
	s.refer(key, e)
}

func bySeq(e *entry, seq uint64) int { return cmp.Compare(e.seq, seq) }

func typeKey(e *entry) string { return strings.ToLower(e.kind.Name) }

// scopes are the scopes in whose lists a resource is.
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
func (s *store) remove(e *entry) {
	key := e.id.Key()
	delete(s.entries, key)
	s.unrefer(key, e)
	for _, scope := range scopes(e.id) {
		byType := s.lists[scope]
		typ := typeKey(e)
		if i, found := slices.BinarySearchFunc(byType[typ], e.seq, bySeq); found {
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

func (s *store) list(scope azure.ID, fullType string) []*entry {
	return s.lists[scope.Key()][strings.ToLower(fullType)]
}

// below are the entries directly under an id, of all types, oldest first.
func (s *store) below(id azure.ID) []*entry {
	var entries []*entry
	for _, of := range s.lists[id.Key()] {
		entries = append(entries, of...)
	}
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	return entries
}

func (s *store) refer(key string, e *entry) {
	for _, r := range e.refs {
		places := s.refs[r.target]
		if places == nil {
			places = map[string][]behaviour.Referrer{}
			s.refs[r.target] = places
		}
		places[key] = append(places[key], r.place)
	}
}

func (s *store) unrefer(key string, e *entry) {
	for _, r := range e.refs {
		delete(s.refs[r.target], key)
		if len(s.refs[r.target]) == 0 {
			delete(s.refs, r.target)
		}
	}
}

func (s *store) referrers(id azure.ID) []behaviour.Referrer {
	var all []behaviour.Referrer
	for _, places := range s.refs[id.Key()] {
		all = append(all, places...)
	}
	slices.SortFunc(all, func(a, b behaviour.Referrer) int {
		return cmp.Or(strings.Compare(string(a.Object), string(b.Object)), strings.Compare(a.Path, b.Path))
	})
	return all
}
