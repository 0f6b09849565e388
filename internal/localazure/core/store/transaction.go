package store

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/kind"
)

// Succeeded is the provisioningState of a resource when its last operation has
// ended well and none runs.
const Succeeded = "Succeeded"

// Transaction is the view that one call has of a store. Its changes are in the store
// at once and are taken back by UndoTo. Its exported methods that [behaviour.World] has
// are documented there.
type Transaction struct {
	// At is the time of the call.
	At time.Time
	// World is given to the Removed functions of types, and Gone is called when a
	// resource is no longer there. Both are set before the first write.
	World behaviour.World
	Gone  func(id azure.ID)

	// By says what makes the changes.
	By Author
	// Touched are the resources that may have changed, by the keys of their ids.
	Touched map[string]azure.ID

	*index
	history
	options *Options
	watched func() bool
	writes  bool
}

// Author is what makes changes: a request, or the end of an operation. The zero value is the local Azure itself.
type Author struct {
	// Act is the method of a request, or what an ended operation did, such as "create ended".
	Act string
	// Application is the client id of the caller, Agent its User-Agent.
	Application, Agent string
}

// Read calls f with a transaction that cannot change anything.
func (s *Store) Read(f func(t *Transaction)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f(&Transaction{index: s.index, options: &s.options, At: time.Now()})
}

// Write calls f with a transaction that can. Its error, or panic, takes all changes back.
func (s *Store) Write(f func(t *Transaction) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &Transaction{index: s.index, options: &s.options, At: time.Now(), writes: true, watched: s.Watchers.any,
		Touched: map[string]azure.ID{}}
	done := false
	defer func() {
		if !done {
			t.UndoTo(Mark{})
		}
	}()
	if err := f(t); err != nil {
		return err
	}
	if s.options.Commit != nil {
		if err := s.options.Commit(t); err != nil {
			return err
		}
	}
	done = true
	if len(t.changes) > 0 {
		s.Watchers.publish(t.changes)
	}
	return nil
}

// MustWrite panics in a transaction that cannot change anything.
func (t *Transaction) MustWrite() {
	if !t.writes {
		panic("a read tries to change the world")
	}
}

// Entry returns what is stored under an id, nil for nothing.
func (t *Transaction) Entry(id azure.ID) *Entry { return t.entries[id.Key()] }

// Holder returns the entry with the document that holds a resource, nil for none.
func (t *Transaction) Holder(k *kind.Kind, id azure.ID) *Entry { return t.Entry(k.HolderOf(id)) }

// Get implements [behaviour.World].
func (t *Transaction) Get(id azure.ID) (behaviour.Object, bool) {
	if e := t.Entry(id); e != nil {
		return t.Doc(e), true
	}
	k := t.options.Kinds.Of(id.Type())
	if k == nil || k.Inline == "" {
		return nil, false
	}
	parent, ok := t.Get(id.Parent())
	if !ok {
		return nil, false
	}
	element := behaviour.Named(parent, k.Inline, id.Name())
	return element, element != nil
}

// List implements [behaviour.World].
func (t *Transaction) List(scope azure.ID, fullType string) iter.Seq2[azure.ID, behaviour.Object] {
	return func(yield func(azure.ID, behaviour.Object) bool) {
		k := t.options.Kinds.Of(fullType)
		if k == nil {
			return
		}
		if k.Inline != "" {
			parent, _ := t.Get(scope)
			for _, element := range behaviour.Objects(parent, k.Inline) {
				if !yield(azure.ID(behaviour.Text(element, "id")), element) {
					return
				}
			}
			return
		}
		// The list may change under the loop: behaviours delete what they list.
		for _, e := range slices.Clone(t.Entries(scope, fullType)) {
			if !yield(e.ID, t.Doc(e)) {
				return
			}
		}
	}
}

// Count implements [behaviour.World].
func (t *Transaction) Count(scope azure.ID, fullType string) int {
	if k := t.options.Kinds.Of(fullType); k != nil && k.Inline != "" {
		parent, _ := t.Get(scope)
		return len(behaviour.Objects(parent, k.Inline))
	}
	return len(t.Entries(scope, fullType))
}

// In implements [behaviour.World].
func (t *Transaction) In(scope azure.ID) iter.Seq2[azure.ID, behaviour.Object] {
	return func(yield func(azure.ID, behaviour.Object) bool) {
		for _, e := range t.below(scope) {
			if e.ID.Parent().Equal(scope) && !yield(e.ID, t.Doc(e)) {
				return
			}
		}
	}
}

// Heads implements [behaviour.World].
func (t *Transaction) Heads(scope azure.ID) iter.Seq2[azure.ID, behaviour.Object] {
	return func(yield func(azure.ID, behaviour.Object) bool) {
		for _, e := range t.below(scope) {
			if e.ID.Parent().Equal(scope) && !yield(e.ID, e.Head()) {
				return
			}
		}
	}
}

// Now implements [behaviour.World].
func (t *Transaction) Now() time.Time { return t.At }

// GUID implements [behaviour.World].
func (t *Transaction) GUID() string { return t.options.Random.GUID() }

// Intn implements [behaviour.World].
func (t *Transaction) Intn(n int) int { return t.options.Random.Intn(n) }

// Put implements [behaviour.World].
func (t *Transaction) Put(id azure.ID, doc behaviour.Object) {
	k := t.options.Kinds.Of(id.Type())
	if k == nil {
		panic(fmt.Sprintf("put of %s, whose type is not registered", id))
	}
	if k.Inline != "" {
		t.Edit(id.Parent(), func(parent behaviour.Object) { document.Replace(parent, k.Inline, id.Name(), doc) })
		return
	}
	t.Save(k, id, doc, Saving{State: stateOf(doc)})
}

// Edit implements [behaviour.World].
func (t *Transaction) Edit(id azure.ID, change func(doc behaviour.Object)) bool {
	k := t.options.Kinds.Of(id.Type())
	if k != nil && k.Inline != "" {
		found := false
		t.Edit(id.Parent(), func(parent behaviour.Object) {
			if element := behaviour.Named(parent, k.Inline, id.Name()); element != nil {
				change(element)
				found = true
			}
		})
		return found
	}
	e := t.Entry(id)
	if e == nil {
		return false
	}
	doc := e.Fresh()
	change(doc)
	t.Save(e.Kind, e.ID, doc, Saving{State: stateOf(doc), Hidden: e.Hidden})
	return true
}

// stateOf is the provisioningState of a document, Succeeded where it has none.
func stateOf(doc behaviour.Object) string {
	if state := behaviour.Text(doc, "properties.provisioningState"); state != "" {
		return state
	}
	return Succeeded
}

// Touch implements [behaviour.World].
func (t *Transaction) Touch(id azure.ID) {
	if e := t.Entry(id); e != nil {
		state := behaviour.Text(t.Doc(e), "properties.provisioningState")
		t.Save(e.Kind, e.ID, e.Fresh(), Saving{State: state, Hidden: e.Hidden, Touch: true})
	}
}

// SetState changes the provisioningState of a resource, where it is stored.
func (t *Transaction) SetState(id azure.ID, state string) {
	if e := t.Entry(id); e != nil {
		t.Save(e.Kind, e.ID, e.Fresh(), Saving{State: state, Hidden: e.Hidden})
	}
}

// Saving says how a document is stored.
type Saving struct {
	State  string // provisioningState
	Hidden bool
	Touch  bool // a new etag even when nothing else is new
}

// Save stamps a document with what the core keeps in it and stores it. A document
// that is what is there already changes nothing.
func (t *Transaction) Save(k *kind.Kind, id azure.ID, doc behaviour.Object, s Saving) *Entry {
	t.MustWrite()
	old := t.Entry(id)
	fresh := &Entry{ID: id, Kind: k, Hidden: s.Hidden}
	if old != nil {
		fresh.ID = old.ID
		fresh.Etag, fresh.Count = old.Etag, old.Count
	}
	document.Stamp(k, fresh.ID, doc, s.State, fresh.Etag)
	if old != nil && !s.Touch && document.Same(k.Style.Etag, t.Doc(old), doc) {
		if old.Hidden == s.Hidden && behaviour.Equal(t.Doc(old), doc) {
			return old
		}
	} else {
		fresh.Count++
		fresh.Etag = t.newEtag(k, fresh.Count)
		document.Stamp(k, fresh.ID, doc, s.State, fresh.Etag)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		panic(fmt.Sprintf("document of %s: %v", id, err))
	}
	fresh.Text = text
	fresh.refs = document.References(k, fresh.ID, doc)
	if old != nil && t.options.KeepBefore() {
		fresh.Before = &Entry{ID: old.ID, Kind: old.Kind, Text: old.Text, Etag: old.Etag}
	}
	t.replace(old, fresh)
	if old != nil {
		t.removedInside(k, fresh.ID, t.Doc(old), doc)
	}
	return fresh
}

// replace puts an entry in the place of an old entry, nil for none.
func (t *Transaction) replace(old, fresh *Entry) {
	t.Touched[fresh.ID.Key()] = fresh.ID
	t.put(fresh)
	t.OnUndo(func() {
		if old == nil {
			t.remove(fresh)
		} else {
			t.put(old)
		}
	})
	t.changed(old, fresh)
}

func (t *Transaction) newEtag(k *kind.Kind, count int) string {
	switch k.Style.Etag {
	case behaviour.WeakGUID:
		return `W/"` + t.GUID() + `"`
	case behaviour.Counter:
		return fmt.Sprintf(`"%d"`, count)
	case behaviour.BareGUID:
		return t.GUID()
	case behaviour.QuotedGUID:
		return `"` + t.GUID() + `"`
	case behaviour.Ticks:
		return fmt.Sprintf(`"0x%X"`, Ticks(t.At)+int64(count))
	}
	return ""
}

// Ticks is the time in the unit in which storage makes etags, 100 ns since year 1.
func Ticks(at time.Time) int64 {
	const unixInTicks = 621355968000000000
	return at.UnixNano()/100 + unixInTicks
}

// Restore puts an entry of a saved state into the store, with its document.
func (t *Transaction) Restore(e *Entry, doc behaviour.Object) {
	e.refs = document.References(e.Kind, e.ID, doc)
	t.lastSeq = max(t.lastSeq, e.Seq)
	t.replace(nil, e)
}

// changed notes a change for the watchers.
func (t *Transaction) changed(old, fresh *Entry) {
	if !t.watched() {
		return
	}
	c := Change{}
	if old != nil && !old.Hidden {
		c.ID, c.Old = old.ID, t.Doc(old)
	}
	if fresh != nil && !fresh.Hidden {
		c.ID, c.New = fresh.ID, t.Doc(fresh)
	}
	if c.ID != "" {
		t.changes = append(t.changes, c)
	}
}
