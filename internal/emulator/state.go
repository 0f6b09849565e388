package emulator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// stateFormat is what a state file says it is.
const stateFormat = "kaz local azure state 1"

// stateFile is the text of a saved Azure.
type stateFile struct {
	Format       string          `json:"format"`
	Subscription string          `json:"subscription"`
	Tenant       string          `json:"tenant"`
	Random       []byte          `json:"random"`
	Resources    []savedResource `json:"resources"`
	Operations   []savedOp       `json:"operations"`
}

type savedResource struct {
	ID       azure.ID        `json:"id"`
	Seq      uint64          `json:"seq"`
	Changes  int             `json:"changes"`
	Etag     string          `json:"etag,omitempty"`
	Hidden   bool            `json:"hidden,omitempty"`
	Document json.RawMessage `json:"document"`
}

type savedOp struct {
	ID       string           `json:"id"`
	Verb     behaviour.Verb   `json:"verb"`
	Resource azure.ID         `json:"resource"`
	Location string           `json:"location"`
	Start    time.Time        `json:"start"`
	Due      time.Time        `json:"due"`
	End      *time.Time       `json:"end,omitempty"`
	Error    *behaviour.Error `json:"error,omitempty"`
	Fault    *behaviour.Error `json:"fault,omitempty"`
	Canceled bool             `json:"canceled,omitempty"`
	Output   json.RawMessage  `json:"output,omitempty"`
	Body     behaviour.Object `json:"body,omitempty"`
	Notes    behaviour.Object `json:"notes,omitempty"`
	Old      behaviour.Object `json:"old,omitempty"`
}

// Save writes everything this Azure knows, running operations too, as JSON text.
func (e *Emulator) Save(w io.Writer) error {
	e.endDue()
	var file stateFile
	var err error
	e.read(func(t *transaction) { file, err = t.state() })
	if err != nil {
		return fmt.Errorf("state of the local Azure: %w", err)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(file); err != nil {
		return fmt.Errorf("state of the local Azure: %w", err)
	}
	return nil
}

func (t *transaction) state() (stateFile, error) {
	file := stateFile{Format: stateFormat, Subscription: t.options.Subscription, Tenant: t.options.Tenant, Resources: []savedResource{}, Operations: []savedOp{}}
	var err error
	if file.Random, err = t.random.save(); err != nil {
		return file, err
	}
	for _, e := range t.store.entries {
		file.Resources = append(file.Resources, savedResource{ID: e.id, Seq: e.seq, Changes: e.count, Etag: e.etag, Hidden: e.hidden, Document: e.text})
	}
	slices.SortFunc(file.Resources, func(a, b savedResource) int { return cmp.Compare(a.Seq, b.Seq) })
	running := slices.Clone(t.operations.running)
	slices.SortFunc(running, func(a, b *operation) int { return cmp.Compare(a.seq, b.seq) })
	for _, o := range slices.Concat(t.operations.ended, running) {
		saved := savedOp{ID: o.ID, Verb: o.Verb, Resource: o.Resource, Location: o.Location, Start: o.Start, Due: o.due,
			Error: o.Error, Fault: o.fault, Canceled: o.Canceled, Body: o.body, Notes: o.notes, Old: o.old}
		if !o.End.IsZero() {
			saved.End = &o.End
		}
		saved.Output, _ = o.Output.(json.RawMessage)
		file.Operations = append(file.Operations, saved)
	}
	return file, nil
}

// Load puts a saved state in place of an empty one. Nothing is loaded when there is
// anything wrong with it.
func (e *Emulator) Load(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("state of the local Azure: %w", err)
	}
	var file stateFile
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&file); err != nil {
		return fmt.Errorf("state of the local Azure: not a state file: %w", err)
	}
	if file.Format != stateFormat {
		return fmt.Errorf("state of the local Azure: format %q: want %q", file.Format, stateFormat)
	}
	if !strings.EqualFold(file.Subscription, e.options.Subscription) {
		return fmt.Errorf("state of the local Azure: it is of subscription %s, this one has %s", file.Subscription, e.options.Subscription)
	}
	err = e.write(func(t *transaction) error {
		if len(t.store.entries) > 0 {
			return errors.New("there are resources already")
		}
		return t.load(file)
	})
	if err != nil {
		return fmt.Errorf("state of the local Azure: %w", err)
	}
	return nil
}

func (t *transaction) load(file stateFile) error {
	entries := make([]*entry, len(file.Resources))
	seen := map[uint64]bool{}
	for i, r := range file.Resources {
		e, err := t.loadResource(r)
		if err != nil {
			return err
		}
		if seen[r.Seq] || r.Seq == 0 {
			return fmt.Errorf("resource %s: its place %d is taken", r.ID, r.Seq)
		}
		seen[r.Seq] = true
		entries[i] = e
	}
	operations := make([]*operation, len(file.Operations))
	for i, o := range file.Operations {
		k := t.kinds.of(o.Resource.Type())
		if k == nil {
			return fmt.Errorf("operation %s on %s: its type is not known", o.ID, o.Resource)
		}
		operations[i] = &operation{kind: k, due: o.Due, body: o.Body, notes: o.Notes, old: o.Old, fault: o.Fault, index: -1,
			Operation: behaviour.Operation{ID: o.ID, Verb: o.Verb, Resource: o.Resource, Location: o.Location, Start: o.Start, Error: o.Error, Canceled: o.Canceled}}
		if o.Output != nil {
			operations[i].Output = o.Output
		}
		if o.End != nil {
			operations[i].End = *o.End
		}
	}
	if err := t.random.load(file.Random); err != nil {
		return fmt.Errorf("random: %w", err)
	}
	for _, e := range entries {
		t.store.put(e)
		t.store.lastSeq = max(t.store.lastSeq, e.seq)
		t.changed(nil, e)
	}
	for _, o := range operations {
		if !o.End.IsZero() {
			t.register(o)
			t.operations.ended = append(t.operations.ended, o)
			continue
		}
		t.start(o)
	}
	return nil
}

func (t *transaction) loadResource(r savedResource) (*entry, error) {
	id, err := azure.ParseID(string(r.ID))
	if err != nil {
		return nil, err
	}
	k := t.kinds.of(id.Type())
	if k == nil || k.Inline != "" {
		return nil, fmt.Errorf("resource %s: its type %s is not known", id, id.Type())
	}
	var doc behaviour.Object
	if err := json.Unmarshal(r.Document, &doc); err != nil {
		return nil, fmt.Errorf("document of %s: %w", id, err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("document of %s: %w", id, err)
	}
	return &entry{id: id, kind: k, seq: r.Seq, count: r.Changes, etag: r.Etag, hidden: r.Hidden, text: text, refs: references(id, doc)}, nil
}

// SaveFile saves to a file, which is replaced as a whole or not at all.
func (e *Emulator) SaveFile(path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("state of the local Azure: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the error that counts is another
		}
	}()
	if err := errors.Join(e.Save(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("state of the local Azure: %w", err)
	}
	return nil
}

// LoadFile loads from a file; one that does not exist is an empty state. The file
// is only read.
func (e *Emulator) LoadFile(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("state of the local Azure: %w", err)
	}
	defer f.Close()
	if err := e.Load(f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
