package emulator

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// transaction is the world of one call. Writes go to the store at once and are
// taken back by undo.
type transaction struct {
	*Emulator
	now    time.Time
	writes bool
	undone []func()
	events []Change
}

// read gives f a world that cannot be changed.
func (e *Emulator) read(f func(t *transaction)) {
	e.store.mu.RLock()
	defer e.store.mu.RUnlock()
	f(&transaction{Emulator: e, now: time.Now()})
}

// write gives f a world to change. Its error, or panic, takes all changes back.
func (e *Emulator) write(f func(t *transaction) error) error {
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	t := &transaction{Emulator: e, now: time.Now(), writes: true}
	done := false
	defer func() {
		if !done {
			t.undo()
		}
	}()
	if err := f(t); err != nil {
		return err
	}
	done = true
	e.publish(t.events)
	return nil
}

func (t *transaction) undo() { t.undoTo(0) }

func (t *transaction) undoTo(mark int) {
	for i := len(t.undone) - 1; i >= mark; i-- {
		t.undone[i]()
	}
	t.undone = t.undone[:mark]
}

func (t *transaction) mustWrite() {
	if !t.writes {
		panic("a read tries to change the world")
	}
}

// Get implements [behaviour.World].
func (t *transaction) Get(id azure.ID) (behaviour.Object, bool) {
	if e := t.store.entries[id.Key()]; e != nil {
		return t.store.doc(e), true
	}
	k := t.kinds.of(id.Type())
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

// View implements [behaviour.World].
func (t *transaction) View(id azure.ID) (behaviour.Object, bool) {
	doc, ok := t.Get(id)
	k := t.kinds.of(id.Type())
	if !ok || k == nil || !k.shows() {
		return doc, ok
	}
	view := behaviour.Clone(doc)
	c := &behaviour.Call{World: t, Verb: behaviour.Get, ID: id}
	if k.parent != nil {
		c.Parent, _ = t.Get(id.Parent())
	}
	t.show(c, k, view)
	return view, true
}

// List implements [behaviour.World].
func (t *transaction) List(scope azure.ID, fullType string) iter.Seq2[azure.ID, behaviour.Object] {
	return func(yield func(azure.ID, behaviour.Object) bool) {
		k := t.kinds.of(fullType)
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
		for _, e := range slices.Clone(t.store.list(scope, fullType)) {
			if !yield(e.id, t.store.doc(e)) {
				return
			}
		}
	}
}

// In implements [behaviour.World].
func (t *transaction) In(scope azure.ID) iter.Seq2[azure.ID, behaviour.Object] {
	return func(yield func(azure.ID, behaviour.Object) bool) {
		for _, e := range t.store.below(scope) {
			if e.id.Parent().Equal(scope) && !yield(e.id, t.store.doc(e)) {
				return
			}
		}
	}
}

// Referrers implements [behaviour.World].
func (t *transaction) Referrers(id azure.ID) []behaviour.Referrer { return t.store.referrers(id) }

// Now implements [behaviour.World].
func (t *transaction) Now() time.Time { return t.now }

// GUID implements [behaviour.World].
func (t *transaction) GUID() string { return t.random.guid() }

// Intn implements [behaviour.World].
func (t *transaction) Intn(n int) int { return t.random.intn(n) }

// Tenant implements [behaviour.World].
func (t *transaction) Tenant() string { return t.options.Tenant }

// Subscription implements [behaviour.World].
func (t *transaction) Subscription() string { return t.options.Subscription }

// Subscriptions implements [behaviour.World].
func (t *transaction) Subscriptions() []string {
	all := []string{t.options.Subscription}
	for _, s := range t.options.Subscriptions {
		all = append(all, s.ID)
	}
	return all
}

// TenantOf implements [behaviour.World].
func (t *transaction) TenantOf(subscription string) string { return t.options.tenantOf(subscription) }

// Put implements [behaviour.World].
func (t *transaction) Put(id azure.ID, doc behaviour.Object) {
	k := t.kinds.of(id.Type())
	if k == nil {
		panic(fmt.Sprintf("put of %s, whose type is not registered", id))
	}
	if k.Inline != "" {
		t.Edit(id.Parent(), func(parent behaviour.Object) { replaceNamed(parent, k.Inline, id.Name(), doc) })
		return
	}
	state := behaviour.Text(doc, "properties.provisioningState")
	if state == "" {
		state = succeeded
	}
	t.save(k, id, doc, saving{state: state})
}

// replaceNamed puts an element into an array of named objects.
func replaceNamed(doc behaviour.Object, path, name string, element behaviour.Object) {
	array := behaviour.Array(doc, path)
	for i, x := range array {
		if o, ok := x.(behaviour.Object); ok && strings.EqualFold(behaviour.Text(o, "name"), name) {
			array[i] = element
			return
		}
	}
	element["name"] = name
	behaviour.Set(doc, path, append(array, element))
}

// removeNamed takes an element out of an array of named objects.
func removeNamed(doc behaviour.Object, path, name string) {
	kept := []any{}
	for _, x := range behaviour.Array(doc, path) {
		if o, ok := x.(behaviour.Object); !ok || !strings.EqualFold(behaviour.Text(o, "name"), name) {
			kept = append(kept, x)
		}
	}
	behaviour.Set(doc, path, kept)
}

// Edit implements [behaviour.World].
func (t *transaction) Edit(id azure.ID, change func(doc behaviour.Object)) bool {
	k := t.kinds.of(id.Type())
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
	e := t.store.entries[id.Key()]
	if e == nil {
		return false
	}
	doc := e.fresh()
	change(doc)
	state := behaviour.Text(doc, "properties.provisioningState")
	if state == "" {
		state = succeeded
	}
	t.save(e.kind, e.id, doc, saving{state: state, hidden: e.hidden})
	return true
}

// Touch implements [behaviour.World].
func (t *transaction) Touch(id azure.ID) {
	if e := t.store.entries[id.Key()]; e != nil {
		t.save(e.kind, e.id, e.fresh(), saving{state: behaviour.Text(t.store.doc(e), "properties.provisioningState"), hidden: e.hidden, touch: true})
	}
}

// saving says how a document is stored.
type saving struct {
	state  string // provisioningState
	hidden bool
	touch  bool // a new etag even when nothing else is new
}

// save stamps a document with what the core keeps in it and stores it. A document
// that is what is there already changes nothing.
func (t *transaction) save(k *kind, id azure.ID, doc behaviour.Object, s saving) *entry {
	t.mustWrite()
	old := t.store.entries[id.Key()]
	fresh := &entry{id: id, kind: k, hidden: s.hidden}
	if old != nil {
		fresh.id = old.id
		fresh.etag, fresh.count = old.etag, old.count
	}
	stamp(k, fresh.id, doc, s.state, fresh.etag)
	if old != nil && !s.touch && sameDocument(k.Style.Etag, t.store.doc(old), doc) {
		if old.hidden == s.hidden && behaviour.Equal(t.store.doc(old), doc) {
			return old
		}
	} else {
		fresh.count++
		fresh.etag = t.newEtag(k, fresh.count)
		stamp(k, fresh.id, doc, s.state, fresh.etag)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		panic(fmt.Sprintf("document of %s: %v", id, err))
	}
	fresh.text = text
	fresh.refs = references(fresh.id, doc)
	if old != nil && t.faults.stale() {
		fresh.before = &entry{id: old.id, kind: old.kind, text: old.text, etag: old.etag}
	}
	t.store.put(fresh)
	t.undone = append(t.undone, func() {
		if old == nil {
			t.store.remove(fresh)
		} else {
			t.store.put(old)
		}
	})
	t.changed(old, fresh)
	if old != nil {
		t.removedInside(k, fresh.id, t.store.doc(old), doc)
	}
	return fresh
}

// removedInside calls Removed of the inline children that a new document has no
// more; a nil document has none.
func (t *transaction) removedInside(k *kind, id azure.ID, old, doc behaviour.Object) {
	for _, child := range k.inline {
		if !child.watchesRemoval() {
			continue
		}
		for _, element := range behaviour.Objects(old, child.Inline) {
			name := behaviour.Text(element, "name")
			childID := id.Child(child.segment(), name)
			now := behaviour.Named(doc, child.Inline, name)
			t.removedInside(child, childID, element, now)
			if now == nil {
				t.removed(child, childID, element)
			}
		}
	}
}

func (k *kind) watchesRemoval() bool {
	return k.Removed != nil || slices.ContainsFunc(k.inline, (*kind).watchesRemoval)
}

func (t *transaction) removed(k *kind, id azure.ID, old behaviour.Object) {
	if k.Removed == nil {
		return
	}
	c := &behaviour.Call{World: t, Verb: behaviour.Delete, ID: id, Type: k.Type, Old: old}
	if err := k.Removed(c); err != nil {
		t.options.Log.Error("removed resource", "id", string(id), "error", err)
	}
}

// sameDocument reports whether a write leaves the etag as it is. Etags that count
// changes of the model do not count those of the state.
func sameDocument(form behaviour.Etag, old, doc behaviour.Object) bool {
	if form != behaviour.Counter {
		return behaviour.Equal(old, doc)
	}
	was := behaviour.Text(old, "properties.provisioningState")
	is := behaviour.Text(doc, "properties.provisioningState")
	if was == is {
		return behaviour.Equal(old, doc)
	}
	behaviour.Set(doc, "properties.provisioningState", was)
	same := behaviour.Equal(old, doc)
	behaviour.Set(doc, "properties.provisioningState", is)
	return same
}

func (t *transaction) newEtag(k *kind, count int) string {
	switch k.Style.Etag {
	case behaviour.WeakGUID:
		return `W/"` + t.random.guid() + `"`
	case behaviour.Counter:
		return fmt.Sprintf(`"%d"`, count)
	case behaviour.BareGUID:
		return t.random.guid()
	case behaviour.QuotedGUID:
		return `"` + t.random.guid() + `"`
	case behaviour.Ticks:
		return fmt.Sprintf(`"0x%X"`, ticks(t.now)+int64(count))
	}
	return ""
}

// ticks is the time in the unit in which storage makes etags, 100 ns since year 1.
func ticks(at time.Time) int64 {
	const unixInTicks = 621355968000000000
	return at.UnixNano()/100 + unixInTicks
}

// stamp writes the fields that the core keeps into a document and its children.
func stamp(k *kind, id azure.ID, doc behaviour.Object, state, etag string) {
	doc["id"] = k.spelled(id)
	if k.Inline == "" || doc["name"] == nil {
		doc["name"] = id.Name()
	}
	if k.NoType {
		delete(doc, "type")
	} else {
		doc["type"] = k.Name
	}
	if etag != "" && !k.Style.NoEtagBody {
		doc["etag"] = etag
	} else {
		delete(doc, "etag")
	}
	if !k.NoState {
		behaviour.Set(doc, "properties.provisioningState", state)
	}
	for _, child := range k.inline {
		for _, element := range behaviour.Objects(doc, child.Inline) {
			stamp(child, id.Child(child.segment(), behaviour.Text(element, "name")), element, state, etag)
		}
	}
}

// segment is the last part of the kind's type.
func (k *kind) segment() string { return k.Name[strings.LastIndexByte(k.Name, '/')+1:] }

// spelled is the id in the spelling in which the provider shows it.
func (k *kind) spelled(id azure.ID) string {
	s := string(id)
	group := id.Group()
	if group == "" || !k.Style.LowerGroup && !k.Style.UpperGroup {
		return s
	}
	before := len(azure.GroupID(id.Subscription(), ""))
	other := strings.ToLower(group)
	if k.Style.UpperGroup {
		other = strings.ToUpper(group)
	}
	return s[:before] + other + s[before+len(group):]
}

// Delete implements [behaviour.World].
func (t *transaction) Delete(id azure.ID) {
	k := t.kinds.of(id.Type())
	if k != nil && k.Inline != "" {
		t.Edit(id.Parent(), func(parent behaviour.Object) { removeNamed(parent, k.Inline, id.Name()) })
		return
	}
	if e := t.store.entries[id.Key()]; e != nil {
		t.removeTree(e)
	}
}

func (t *transaction) removeTree(e *entry) {
	t.mustWrite()
	for _, child := range t.store.below(e.id) {
		// The Removed of one before it may have edited or removed it.
		if now := t.store.entries[child.id.Key()]; now != nil {
			t.removeTree(now)
		}
	}
	// A child's Removed may have edited or removed this one.
	if e = t.store.entries[e.id.Key()]; e == nil {
		return
	}
	t.store.remove(e)
	t.undone = append(t.undone, func() { t.store.put(e) })
	t.dropOperations(e.id)
	t.changed(e, nil)
	old := e.fresh()
	t.removedInside(e.kind, e.id, old, nil)
	t.removed(e.kind, e.id, old)
}
