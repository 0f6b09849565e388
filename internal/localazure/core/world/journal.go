package world

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/core/journal"
	"kaz/internal/localazure/core/operation"
	"kaz/internal/localazure/core/store"
)

// commit is what a transaction changed, as the journal has it. Each record has all of a resource or an operation, so a
// record that is already in the state file does no harm.
type commit struct {
	Number     uint64          `json:"commit"`
	Random     []byte          `json:"random"`
	Resources  []savedResource `json:"resources,omitempty"`
	Removed    []azure.ID      `json:"removed,omitempty"`
	Operations []savedOp       `json:"operations,omitempty"`
	Dropped    []string        `json:"dropped,omitempty"`
}

// persistence is the file of the state and the journal beside it.
type persistence struct {
	path    string // of the state file, "" while there is none
	journal *journal.Journal
	commits uint64 // the number of the last commit
}

// journalOf is the journal beside a state file.
func journalOf(path string) string {
	return strings.TrimSuffix(path, filepath.Ext(path)) + "-journal.jsonl"
}

// Open loads the state from a file and the journal beside it, as LoadFile does. From now on it writes every change to the
// journal before the change is acknowledged. SaveFile to the same path shortens the journal.
//
// A record that cannot be read is named in the log and appended to a file beside the state, and all others are loaded.
func (w *World) Open(path string) error {
	if err := removeTemporary(path); err != nil {
		return fmt.Errorf("state of the local Azure: %w", err)
	}
	var lost []lostRecord
	size, err := w.load(path, &lost, func(all []lostRecord) error { return setAside(path, all) })
	if err != nil {
		return err
	}
	for _, u := range lost {
		w.Log.Warn("a record of the state is unreadable and was set aside", "record", u.What, "error", u.Error, "file", asideOf(path))
	}
	j, err := journal.Open(journalOf(path), size)
	if err != nil {
		return fmt.Errorf("state of the local Azure: %w", err)
	}
	err = w.Write(func(*Transaction) error {
		w.persistence.path, w.persistence.journal = path, j
		return nil
	})
	if err == nil && len(lost) > 0 {
		err = w.SaveFile(path) // without the records that are set aside
	}
	return err
}

// Close ends the journal. Later changes are not written.
func (w *World) Close() (err error) {
	_ = w.Write(func(*Transaction) error { // the store's lock keeps commits out
		if w.persistence.journal != nil {
			err = w.persistence.journal.Close()
			w.persistence.journal = nil
		}
		return nil
	})
	return err
}

// record writes what a transaction changed to the journal.
func (w *World) record(tx *store.Transaction) error {
	p := &w.persistence
	touched := w.Queue.TakeTouched()
	if p.journal == nil || len(tx.Touched) == 0 && len(touched) == 0 {
		return nil
	}
	c := commit{Number: p.commits + 1}
	var err error
	if c.Random, err = w.Random.Save(); err != nil {
		return err
	}
	for _, id := range tx.Touched {
		if entry := tx.Entry(id); entry != nil {
			c.Resources = append(c.Resources, saveResource(entry))
		} else {
			c.Removed = append(c.Removed, id)
		}
	}
	for _, o := range touched {
		if w.Queue.Has(o) {
			c.Operations = append(c.Operations, saveOperation(o))
		} else {
			c.Dropped = append(c.Dropped, o.ID)
		}
	}
	if err := p.journal.Append(c); err != nil {
		return err
	}
	p.commits++
	return nil
}

// load reads a state file and its journal into an empty Azure. It returns the size of the journal's records. It adds the
// records that cannot be read to lost, and asks accept whether the others are loaded.
func (w *World) load(path string, lost *[]lostRecord, accept func([]lostRecord) error) (size int64, err error) {
	file, err := readState(path, lost)
	if err != nil {
		return 0, err
	}
	m := newMerge(file)
	size, err = journal.Read(journalOf(path), m.add, m.lose)
	if err != nil {
		return 0, fmt.Errorf("state of the local Azure: %w", err)
	}
	*lost = append(*lost, m.lost...)
	merged := m.state()
	if merged.Format == "" {
		if err := accept(*lost); err != nil {
			return 0, fmt.Errorf("%s: state of the local Azure: %w", path, err)
		}
		return size, nil // neither file is there
	}
	if err := w.restore(merged, lost, accept); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return size, nil
}

// readState reads a state file. A missing file is an empty state.
func readState(path string, lost *[]lostRecord) (file stateFile, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return file, nil
	}
	if err != nil {
		return file, fmt.Errorf("state of the local Azure: %w", err)
	}
	file, unread, err := decodeState(text)
	if err != nil {
		return file, fmt.Errorf("%s: %w", path, err)
	}
	*lost = append(*lost, unread...)
	return file, nil
}

// merge adds the commits of a journal to a saved state.
type merge struct {
	file       stateFile
	resources  map[string]savedResource // by the keys of their ids
	operations map[string]savedOp       // by their ids
	order      []string                 // of the operations, by their last change
	lost       []lostRecord             // lines of the journal
	gap        uint64                   // how many changes the lost lines may have had
}

func newMerge(file stateFile) *merge {
	m := &merge{file: file, resources: map[string]savedResource{}, operations: map[string]savedOp{}}
	for _, r := range file.Resources {
		m.resources[r.ID.Key()] = r
	}
	for _, o := range file.Operations {
		m.put(o)
	}
	return m
}

func (m *merge) put(o savedOp) {
	m.operations[o.ID] = o
	m.order = append(m.order, o.ID)
}

// lose notes a line of the journal that is damaged.
func (m *merge) lose(line int, text []byte) {
	m.loseLine(line, text, errors.New("its checksum is wrong, and later changes follow it"))
}

func (m *merge) loseLine(line int, text []byte, why error) {
	where := fmt.Sprintf("line %d of the journal", line)
	m.lost = append(m.lost, lostRecord{What: where, Error: where + ": " + why.Error(), Record: text})
	m.gap++
}

// add applies a record of the journal. Records that the state file includes are left out.
func (m *merge) add(line int, record []byte) error {
	var c commit
	if err := json.Unmarshal(record, &c); err != nil {
		m.loseLine(line, record, err)
		return nil
	}
	if c.Number <= m.file.Commit {
		return nil
	}
	missing := c.Number - m.file.Commit - 1
	if missing > m.gap {
		return fmt.Errorf("it has change %d, and change %d is missing", c.Number, m.file.Commit+1)
	}
	m.gap -= missing
	m.file.Commit, m.file.Random = c.Number, c.Random
	m.file.Format = stateFormat
	for _, r := range c.Resources {
		m.resources[r.ID.Key()] = r
	}
	for _, id := range c.Removed {
		delete(m.resources, id.Key())
	}
	for _, o := range c.Operations {
		m.put(o)
	}
	for _, id := range c.Dropped {
		delete(m.operations, id)
	}
	return nil
}

// state is the saved state with all commits: resources by their age, and operations as a queue lists them.
func (m *merge) state() stateFile {
	m.file.Resources, m.file.Operations = nil, nil
	for _, r := range m.resources {
		m.file.Resources = append(m.file.Resources, r)
	}
	slices.SortFunc(m.file.Resources, func(a, b savedResource) int { return cmp.Compare(a.Seq, b.Seq) })
	last := map[string]int{}
	for i, id := range m.order {
		last[id] = i
	}
	var running []savedOp
	for i, id := range m.order {
		o, ok := m.operations[id]
		switch {
		case !ok || last[id] != i:
		case o.End == nil:
			running = append(running, o)
		default:
			m.file.Operations = append(m.file.Operations, o)
		}
	}
	m.file.Operations = append(operation.Latest(m.file.Operations), running...)
	return m.file
}
