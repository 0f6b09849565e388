package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
)

const group = azure.ID("/subscriptions/s1/resourceGroups/g")

// cloud is a small Azure: resources refer to others, and documents show the resources that refer to
// them, as Azure's do.
type cloud struct {
	mu       sync.Mutex
	refs     map[azure.ID][]azure.ID
	version  map[azure.ID]int
	versions int
	reads    map[string]int
	refuse   error // of writes

	// random makes reads and writes take time; nil for none.
	random *rand.Rand
}

func newCloud() *cloud {
	return &cloud{refs: map[azure.ID][]azure.ID{}, version: map[azure.ID]int{}, reads: map[string]int{}}
}

// document returns a resource with its references, the resources that refer to it, and its children. A reference
// shows at both ends, as in Azure.
func (c *cloud) document(id azure.ID) azure.Document {
	doc := map[string]any{"id": id, "etag": fmt.Sprint(c.version[id]), "refs": c.refs[id]}
	var back []azure.ID
	for from, to := range c.refs {
		if slices.Contains(to, id) {
			back = append(back, from)
		}
	}
	slices.Sort(back)
	doc["back"] = back
	children := map[string]int{}
	for other, v := range c.version {
		if other.Parent() == id {
			children[string(other)] = v
		}
	}
	doc["children"] = children
	text, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return text
}

// wait lets simulated time pass, without a lock.
func (c *cloud) wait(ctx context.Context) error {
	if c.random == nil {
		return nil
	}
	c.mu.Lock()
	d := time.Duration(c.random.IntN(50)) * time.Millisecond
	c.mu.Unlock()
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// at does f at some moment between the request and its answer.
func (c *cloud) at(ctx context.Context, f func()) error {
	if err := c.wait(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	f()
	c.mu.Unlock()
	return c.wait(ctx)
}

func (c *cloud) Get(ctx context.Context, id azure.ID) (doc azure.Document, err error) {
	waited := c.at(ctx, func() {
		c.reads[id.Key()]++
		if _, ok := c.version[id]; !ok {
			err = &azure.Error{Kind: azure.NotFound, ID: id}
			return
		}
		doc = c.document(id)
	})
	return doc, or(err, waited)
}

func (c *cloud) List(ctx context.Context, q azure.Query) (docs []azure.Document, err error) {
	waited := c.at(ctx, func() {
		c.reads[q.Type]++
		for _, id := range slices.Sorted(maps.Keys(c.version)) {
			if id.Is(q.Type) && id.Under(q.Scope) {
				docs = append(docs, c.document(id))
			}
		}
	})
	return docs, waited
}

func (c *cloud) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	return azure.Immediate(func(ctx context.Context, r azure.Request) (azure.Document, error) {
		switch r.Verb {
		case azure.Delete:
			return nil, c.remove(ctx, r.ID)
		case azure.Post:
			return nil, c.act(ctx, r.ID, r.Action)
		}
		return c.put(ctx, r)
	}).Begin(ctx, r)
}

func (c *cloud) put(ctx context.Context, w azure.Write) (doc azure.Document, err error) {
	waited := c.at(ctx, func() {
		var body struct{ Refs []azure.ID }
		if err = or(c.refuse, json.Unmarshal(w.Body, &body)); err != nil {
			return
		}
		c.versions++
		c.version[w.ID], c.refs[w.ID] = c.versions, body.Refs
		doc = c.document(w.ID)
	})
	return doc, or(err, waited)
}

func (c *cloud) remove(ctx context.Context, id azure.ID) (err error) {
	waited := c.at(ctx, func() {
		if err = c.refuse; err != nil {
			return
		}
		for other := range c.version {
			if other.Under(id) {
				delete(c.version, other)
				delete(c.refs, other)
			}
		}
	})
	return or(err, waited)
}

func (c *cloud) act(ctx context.Context, id azure.ID, action string) error {
	return c.at(ctx, func() {
		if strings.HasPrefix(action, "list") {
			return
		}
		c.versions++
		c.version[id] = c.versions
	})
}

func or(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (c *cloud) read(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads[what]
}
