// Package kept has what is kept of tables: entities by table and key, and the journal that survives a killed process. Layer L2.
package kept

import (
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/journal"
	"kaz/internal/localazure/core/keep"
	"kaz/internal/localazure/plane/table/entity"
	"kaz/internal/localazure/plane/table/odata"
)

// Store keeps the entities of tables in memory, and in a journal once it is open. Its lock guards what several of its methods do together.
// The zero Store is empty.
type Store struct {
	sync.Mutex
	tables  map[string]*rows
	size    int       // of all entities
	last    time.Time // of the writes
	journal *journal.Journal
	short   int64 // the size of the journal when it was last written anew
}

// Table names the table that entities are in.
type Table struct {
	// Key is the key of the table's id. Made is when the table was made, which tells it from those that had its name before.
	Key, Made string
}

// rows are the entities of a table in the order of their keys.
type rows struct {
	made   string
	sorted []entity.Entity
}

func (r *rows) find(k entity.Key) (int, bool) {
	return slices.BinarySearchFunc(r.sorted, k, func(e entity.Entity, k entity.Key) int { return e.Compare(k) })
}

// record is a write, as the journal has it. A record that is already part of what is kept does no harm.
type record struct {
	Table string          `json:"table"`
	Made  string          `json:"made,omitempty"`
	Put   []entity.Entity `json:"put,omitempty"`
	Gone  []entity.Key    `json:"gone,omitempty"`
	// Dropped says that there is no such table any more.
	Dropped bool `json:"dropped,omitempty"`
}

// Open reads the entities in a file, which receives all later writes. Lines that cannot be read are named in the log, and set aside.
func (s *Store) Open(file string, log *slog.Logger) error {
	s.Lock()
	defer s.Unlock()
	var unreadable []byte
	damaged := func(_ int, text []byte) { unreadable = append(append(unreadable, text...), '\n') }
	size, err := journal.Read(file, func(line int, text []byte) error {
		var r record
		if json.Unmarshal(text, &r) != nil {
			damaged(line, text)
			return nil
		}
		s.apply(r)
		return nil
	}, damaged)
	if err != nil {
		return err
	}
	if len(unreadable) > 0 {
		aside := file + keep.UnreadableSuffix
		if err := add(aside, unreadable); err != nil {
			return err
		}
		log.Warn("entities of tables are unreadable and were set aside", "file", aside)
	}
	if s.journal, err = journal.Open(file, size); err != nil {
		return err
	}
	return s.shorten()
}

// add adds a text to a file.
func add(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// Close closes the journal.
func (s *Store) Close() error {
	s.Lock()
	defer s.Unlock()
	if s.journal == nil {
		return nil
	}
	return s.journal.Close()
}

// apply changes what is in memory.
func (s *Store) apply(r record) {
	t := s.tables[r.Table]
	if r.Dropped || t == nil || t.made != r.Made {
		if t != nil {
			for _, e := range t.sorted {
				s.size -= e.Size()
			}
		}
		if t = (&rows{made: r.Made}); r.Dropped {
			delete(s.tables, r.Table)
			return
		}
		if s.tables == nil {
			s.tables = map[string]*rows{}
		}
		s.tables[r.Table] = t
	}
	for _, e := range r.Put {
		i, there := t.find(e.Key)
		if there {
			s.size -= t.sorted[i].Size()
			t.sorted[i] = e
		} else {
			t.sorted = slices.Insert(t.sorted, i, e)
		}
		s.size += e.Size()
		if e.Stamp.After(s.last) {
			s.last = e.Stamp
		}
	}
	for _, k := range r.Gone {
		if i, there := t.find(k); there {
			s.size -= t.sorted[i].Size()
			t.sorted = slices.Delete(t.sorted, i, i+1)
		}
	}
}

// write writes a record to the journal, and applies it.
func (s *Store) write(r record) error {
	if s.journal != nil {
		if err := s.journal.Append(r); err != nil {
			return behaviour.Refusal(http.StatusInternalServerError, "InternalError", "The entities cannot be written: %v", err)
		}
	}
	s.apply(r)
	if s.journal == nil || s.journal.Size() < longer*s.short+least {
		return nil
	}
	return s.shorten()
}

// A journal is written anew when it is that much longer than the last time.
const (
	longer = 2
	least  = 4 << 20
)

// shorten writes what is kept to the end of the journal, and drops what was before.
func (s *Store) shorten() error {
	const together = 1000
	before := s.journal.Size()
	for key, t := range s.tables {
		for some := range slices.Chunk(t.sorted, together) {
			if err := s.journal.Append(record{Table: key, Made: t.made, Put: some}); err != nil {
				return err
			}
		}
	}
	if err := s.journal.Drop(before); err != nil {
		return err
	}
	s.short = s.journal.Size()
	return nil
}

// Drop forgets the entities of a table. The caller holds the lock.
func (s *Store) Drop(key string) error {
	if s.tables[key] == nil {
		return nil
	}
	return s.write(record{Table: key, Dropped: true})
}

// Retain forgets the entities of all tables but those that are there, by their keys with when they were made. The caller holds the lock.
func (s *Store) Retain(there map[string]string) error {
	for key, t := range s.tables {
		if made, ok := there[key]; !ok || made != t.made {
			if err := s.Drop(key); err != nil {
				return err
			}
		}
	}
	return nil
}

// From yields the entities of a table from a key on. The caller holds the lock, and writes nothing meanwhile.
func (s *Store) From(t Table, first entity.Key) iter.Seq[entity.Entity] {
	return func(yield func(entity.Entity) bool) {
		r := s.tables[t.Key]
		if r == nil || r.made != t.Made {
			return
		}
		i, _ := r.find(first)
		for _, e := range r.sorted[i:] {
			if !yield(e) {
				return
			}
		}
	}
}

// Writes are changes of a table that are written together, or not at all.
type Writes struct {
	store   *Store
	table   Table
	changed map[entity.Key]*entity.Entity // nil for a deleted one
	grown   int
}

// Begin begins changes of a table. The caller holds the lock until [Writes.Commit].
func (s *Store) Begin(t Table) *Writes {
	return &Writes{store: s, table: t, changed: map[entity.Key]*entity.Entity{}}
}

// Get returns an entity, as the changes have left it.
func (w *Writes) Get(k entity.Key) (e entity.Entity, there bool) {
	if changed, ok := w.changed[k]; ok {
		if changed == nil {
			return e, false
		}
		return *changed, true
	}
	r := w.store.tables[w.table.Key]
	if r == nil || r.made != w.table.Made {
		return e, false
	}
	i, there := r.find(k)
	if !there {
		return e, false
	}
	return r.sorted[i], true
}

// Put writes an entity at a time, and returns it with its time.
func (w *Writes) Put(e entity.Entity, now time.Time) entity.Entity {
	e.Stamp = now.UTC().Truncate(odata.Tick)
	if !e.Stamp.After(w.store.last) {
		e.Stamp = w.store.last.Add(odata.Tick)
	}
	w.store.last = e.Stamp
	w.grown += e.Size()
	if old, there := w.Get(e.Key); there {
		w.grown -= old.Size()
	}
	w.changed[e.Key] = &e
	return e
}

// Delete deletes an entity.
func (w *Writes) Delete(k entity.Key) { w.changed[k] = nil }

// mostKept is how many bytes all entities may have together: they are in memory.
const mostKept = 512 << 20

// Commit writes the changes.
func (w *Writes) Commit() error {
	if w.grown > 0 && w.store.size+w.grown > mostKept {
		return behaviour.Refusal(http.StatusConflict, "QuotaExceeded",
			"The entities of the local Azure have %d bytes. At most %d are allowed.", w.store.size, mostKept)
	}
	r := record{Table: w.table.Key, Made: w.table.Made}
	for k, e := range w.changed {
		if e == nil {
			r.Gone = append(r.Gone, k)
		} else {
			r.Put = append(r.Put, *e)
		}
	}
	if len(w.changed) == 0 {
		return nil
	}
	return w.store.write(r)
}
