package volumes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

// memo reads each resource once. Lists fill it, too.
type memo struct {
	azure.Reader
	mu    sync.Mutex // guards known, and is not held while reading
	known map[string]azure.Document
}

// list notes the documents of a list. A list of what does not exist has none.
func (m *memo) list(ctx context.Context, q azure.Query) error {
	docs, err := m.List(ctx, q)
	if err != nil && !azure.IsNotFound(err) {
		return fmt.Errorf("list %s of %s: %w", q.Type, q.Scope, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, doc := range docs {
		m.known[doc.ID().Key()] = doc
	}
	return nil
}

// Get implements [azure.Reader].
func (m *memo) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	m.mu.Lock()
	doc, ok := m.known[id.Key()]
	m.mu.Unlock()
	if ok {
		return doc, nil
	}
	doc, err := m.Reader.Get(ctx, id)
	if err == nil {
		m.mu.Lock()
		m.known[id.Key()] = doc
		m.mu.Unlock()
	}
	return doc, err
}

// watched notes the first read that failed, other than because there is no such resource.
type watched struct {
	azure.Reader
	mu    sync.Mutex // guards first
	first error
}

func (w *watched) note(err error) error {
	if err != nil && !azure.IsNotFound(err) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.first == nil {
			w.first = err
		}
	}
	return err
}

func (w *watched) fault() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}

// Get implements [azure.Reader].
func (w *watched) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	doc, err := w.Reader.Get(ctx, id)
	return doc, w.note(err)
}

// List implements [azure.Reader].
func (w *watched) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	docs, err := w.Reader.List(ctx, q)
	return docs, w.note(err)
}

// notes is an Azure that notes writes and refuses them.
type notes struct {
	mu     sync.Mutex // guards writes
	writes []string
}

// Begin implements [azure.Writer]. The driver attaches a disk without reading it, and reads it when Azure refuses that because another
// machine has the disk. So an attachment is refused in this way.
func (n *notes) Begin(_ context.Context, r azure.Request) (*azure.Operation, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.writes = append(n.writes, texts(r)...)
	kind := azure.Denied
	if r.Verb == azure.Post {
		kind = azure.InUse
	}
	return nil, &azure.Error{Kind: kind, Op: r.Op(), ID: r.ID, Message: "nothing is written beside other controllers"}
}

// all returns each write once, and detachments before attachments.
func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	slices.Sort(n.writes)
	slices.Reverse(n.writes)
	return slices.Compact(n.writes)
}

// texts say what a request writes.
func texts(r azure.Request) (all []string) {
	switch r.Verb {
	case azure.Put:
		return []string{"create " + string(r.ID)}
	case azure.Patch:
		return []string{"change " + string(r.ID)}
	case azure.Delete:
		return []string{"delete " + string(r.ID)}
	}
	var disks compute.AttachDetach
	if err := json.Unmarshal(r.Body, &disks); err != nil || len(disks.Attach)+len(disks.Detach) == 0 {
		return []string{r.Action + " " + string(r.ID)}
	}
	for _, d := range disks.Detach {
		all = append(all, fmt.Sprintf("detach %s from %s", d.DiskID, r.ID))
	}
	for _, d := range disks.Attach {
		all = append(all, fmt.Sprintf("attach %s to %s", d.DiskID, r.ID))
	}
	return all
}
