package world

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/journal"
	"kaz/internal/localazure/core/keep"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/operation"
	"kaz/internal/localazure/core/store"
)

// stateFormat is what a state file says it is.
const stateFormat = "kaz local azure state 1"

// stateFile is the text of a saved Azure.
type stateFile struct {
	Format       string          `json:"format"`
	Subscription string          `json:"subscription"`
	Tenant       string          `json:"tenant"`
	Commit       uint64          `json:"commit"` // the last one of the journal that is included
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
	Version  string           `json:"version,omitempty"`
	Canceled bool             `json:"canceled,omitempty"`
	Output   json.RawMessage  `json:"output,omitempty"`
	Body     behaviour.Object `json:"body,omitempty"`
	Notes    behaviour.Object `json:"notes,omitempty"`
	Old      behaviour.Object `json:"old,omitempty"`
	// Caller is the principal that began the operation. An operation without a caller, of an older file, has no rights.
	Caller behaviour.Caller `json:"caller,omitzero"`
}

// Save writes everything this Azure knows, running operations too, as JSON text.
func (w *World) Save(to io.Writer) error {
	_, err := w.save(to)
	return err
}

// save is Save. It returns the size of the journal's records that the text includes.
func (w *World) save(to io.Writer) (int64, error) {
	w.EndDue()
	var file stateFile
	var err error
	var size int64 // of the journal
	w.Read(func(t *Transaction) {
		file, err = t.state()
		file.Commit = w.persistence.commits
		if w.persistence.journal != nil {
			size = w.persistence.journal.Size()
		}
	})
	if err != nil {
		return 0, fmt.Errorf("state of the local Azure: %w", err)
	}
	if err := encodeState(to, file); err != nil {
		return 0, fmt.Errorf("state of the local Azure: %w", err)
	}
	return size, nil
}

func (t *Transaction) state() (stateFile, error) {
	file := stateFile{Format: stateFormat, Subscription: t.Subscription(), Tenant: t.Tenant(), Resources: []savedResource{},
		Operations: []savedOp{}}
	var err error
	if file.Random, err = t.Parts.Random.Save(); err != nil {
		return file, err
	}
	for _, e := range t.All() {
		file.Resources = append(file.Resources, saveResource(e))
	}
	for _, o := range t.Parts.Queue.All() {
		file.Operations = append(file.Operations, saveOperation(o))
	}
	return file, nil
}

func saveResource(e *store.Entry) savedResource {
	return savedResource{ID: e.ID, Seq: e.Seq, Changes: e.Count, Etag: e.Etag, Hidden: e.Hidden, Document: e.Text}
}

func saveOperation(o *operation.Operation) savedOp {
	saved := savedOp{ID: o.ID, Verb: o.Verb, Resource: o.Resource, Location: o.Location, Start: o.Start, Due: o.Due,
		Error: o.Error, Fault: o.Fault, Canceled: o.Canceled, Body: o.Body, Notes: o.Notes, Old: o.Old, Caller: o.Caller,
		Version: o.Version}
	if !o.End.IsZero() {
		saved.End = &o.End
	}
	saved.Output, _ = o.Output.(json.RawMessage)
	return saved
}

// Load reads a saved state into an empty Azure. A state with a fault in it changes
// nothing.
func (w *World) Load(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("state of the local Azure: %w", err)
	}
	file, lost, err := decodeState(text)
	if err != nil {
		return err
	}
	return w.restore(file, &lost, firstLost)
}

// restore puts a state into an empty Azure. Records that do not fit are added to the unreadable ones. Before anything changes,
// accept decides whether the rest is loaded.
func (w *World) restore(file stateFile, lost *[]lostRecord, accept func([]lostRecord) error) error {
	if file.Subscription != "" && !strings.EqualFold(file.Subscription, w.Tenancy.Main) {
		return fmt.Errorf("state of the local Azure: it is of subscription %s, this one has %s", file.Subscription, w.Tenancy.Main)
	}
	err := w.Write(func(t *Transaction) error {
		if len(t.All()) > 0 {
			return errors.New("there are resources already")
		}
		restored := t.Parts.fitting(file)
		*lost = append(*lost, restored.lost...)
		if err := accept(*lost); err != nil {
			return err
		}
		return t.load(restored, file.Random)
	})
	if err != nil {
		return fmt.Errorf("state of the local Azure: %w", err)
	}
	w.persistence.commits = file.Commit
	return nil
}

// fitting are the records of a state that can be restored together, and those that cannot.
type fitting struct {
	entries    []*store.Entry
	docs       []behaviour.Object // of the entries
	operations []*operation.Operation
	lost       []lostRecord
}

func (p *Parts) fitting(file stateFile) fitting {
	var f fitting
	seen, gone := map[uint64]bool{}, map[string]bool{}
	for _, r := range file.Resources {
		entry, doc, err := r.entry(p.Kinds)
		switch {
		case err != nil:
		case seen[r.Seq] || r.Seq == 0:
			err = fmt.Errorf("resource %s: its place %d is taken", r.ID, r.Seq)
		case hasLostParent(r.ID, gone):
			err = fmt.Errorf("resource %s: the resource that it is in is unreadable", r.ID)
		}
		if err != nil {
			gone[r.ID.Key()] = true
			f.lost = append(f.lost, newLostRecord("resource", r, err))
			continue
		}
		seen[r.Seq] = true
		f.entries, f.docs = append(f.entries, entry), append(f.docs, doc)
	}
	for _, o := range file.Operations {
		k := p.Kinds.Of(o.Resource.Type())
		var err error
		switch {
		case k == nil:
			err = fmt.Errorf("operation %s on %s: its type is not known", o.ID, o.Resource)
		case o.End == nil && (gone[o.Resource.Key()] || hasLostParent(o.Resource, gone)):
			err = fmt.Errorf("operation %s on %s: the resource is unreadable", o.ID, o.Resource)
		}
		if err != nil {
			f.lost = append(f.lost, newLostRecord("operation", o, err))
			continue
		}
		f.operations = append(f.operations, o.operation(k))
	}
	return f
}

// hasLostParent reports whether a resource is inside of a lost one. A resource is saved after its parents.
func hasLostParent(id azure.ID, lost map[string]bool) bool {
	if len(lost) == 0 {
		return false
	}
	for up := id.Parent(); up != "" && up != id; id, up = up, up.Parent() {
		if lost[up.Key()] {
			return true
		}
	}
	return false
}

func (t *Transaction) load(f fitting, random []byte) error {
	if err := t.Parts.Random.Load(random); err != nil {
		return fmt.Errorf("random: %w", err)
	}
	for i, e := range f.entries {
		t.Restore(e, f.docs[i])
	}
	for _, o := range f.operations {
		t.Parts.Queue.Restore(o)
	}
	return nil
}

func (o savedOp) operation(k *kind.Kind) *operation.Operation {
	made := operation.New(behaviour.Operation{ID: o.ID, Verb: o.Verb, Resource: o.Resource, Location: o.Location, Start: o.Start,
		Error: o.Error, Canceled: o.Canceled}, k, o.Due)
	made.Body, made.Notes, made.Old, made.Fault, made.Caller, made.Version = o.Body, o.Notes, o.Old, o.Fault, o.Caller, o.Version
	if o.Output != nil {
		made.Output = o.Output
	}
	if o.End != nil {
		made.End = *o.End
	}
	return made
}

func (r savedResource) entry(kinds kind.Table) (*store.Entry, behaviour.Object, error) {
	id, err := azure.ParseID(string(r.ID))
	if err != nil {
		return nil, nil, err
	}
	k := kinds.Of(id.Type())
	if k == nil || k.Inline != "" {
		return nil, nil, fmt.Errorf("resource %s: its type %s is not known", id, id.Type())
	}
	var doc behaviour.Object
	if err := json.Unmarshal(r.Document, &doc); err != nil {
		return nil, nil, fmt.Errorf("document of %s: %w", id, err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, nil, fmt.Errorf("document of %s: %w", id, err)
	}
	return &store.Entry{ID: id, Kind: k, Seq: r.Seq, Count: r.Changes, Etag: r.Etag, Hidden: r.Hidden, Text: text}, doc, nil
}

// SaveFile saves to a file, which is replaced as a whole or not at all.
func (w *World) SaveFile(path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("state of the local Azure: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the error that counts is another
		}
	}()
	size, err := w.save(f)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("state of the local Azure: %w", err)
	}
	if j := w.persistence.journal; j != nil && w.persistence.path == path {
		return j.Drop(size)
	}
	return nil
}

// LoadFile loads from a file and the journal beside it. Missing files are an empty state. The files
// are only read.
func (w *World) LoadFile(path string) error {
	_, err := w.load(path, new([]lostRecord), firstLost)
	return err
}

// removeTemporary removes what a killed process left of [World.SaveFile] to a path, and of the journal beside it.
func removeTemporary(path string) error {
	name := regexp.QuoteMeta("."+filepath.Base(path)+".") + "[0-9]+|" + regexp.QuoteMeta(filepath.Base(journalOf(path))+journal.NewSuffix)
	return keep.RemoveTemporary(filepath.Dir(path), regexp.MustCompile(name))
}
