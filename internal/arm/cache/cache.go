// Package cache keeps what was read from Azure, for as long as its type allows and
// until a write makes it stale. Layer L2.
//
// A [Cache] stands in front of a door and is one itself. It knows by one table
// (stale.go) what the write of each type makes stale, so no caller ever drops
// anything by hand. What others change in Azure it sees when the time of an entry
// is over, or through [Cache.Fresh]; writes are conditional, so that a decision
// from an old document is refused and made again from a fresh one.
package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/azure"
)

// Door is what stands behind a cache.
type Door interface {
	azure.Reader
	azure.Writer
}

// Options of a cache. The zero value keeps nothing.
type Options struct {
	// TTL is how long what is read of a type may be used, by type or the start of
	// one; the longest that fits counts, "" fits all. Types that nothing fits are
	// always read from Azure.
	TTL map[string]time.Duration
	// Bytes bounds the documents kept, 32 MiB when 0. What was not used for longest
	// goes first.
	Bytes int
	// Registerer takes the metrics, nil for none.
	Registerer prometheus.Registerer
}

// Cache reads through to a door and remembers. It is safe for concurrent use.
type Cache struct {
	door  Door
	ttl   map[string]time.Duration
	rules rules
	asks  map[string]bool
	reads *prometheus.CounterVec

	mu      sync.Mutex
	kept    kept
	flights map[*flight]struct{}
	joined  map[string]*flight
	writing map[string]*overlap
	clock   uint64 // orders reads and writes
}

var _ Door = (*Cache)(nil)

// Over puts a cache in front of a door.
func Over(door Door, o Options) (*Cache, error) {
	c := &Cache{
		door:    door,
		ttl:     map[string]time.Duration{},
		rules:   newRules(),
		asks:    asks(),
		kept:    newKept(o.Bytes),
		flights: map[*flight]struct{}{},
		joined:  map[string]*flight{},
		writing: map[string]*overlap{},
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kaz_arm_cache_reads_total",
			Help: "Reads by where the answer came from: kept, shared with a read under way, or azure.",
		}, []string{"source"}),
	}
	for t, d := range o.TTL {
		if d < 0 {
			return nil, fmt.Errorf("cache of %s: a time to live of %v is less than none", t, d)
		}
		c.ttl[strings.ToLower(t)] = d
	}
	if o.Registerer == nil {
		return c, nil
	}
	err := o.Registerer.Register(c.reads)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ok := already.ExistingCollector.(*prometheus.CounterVec); ok {
			c.reads, err = existing, nil
		}
	}
	return c, err
}

// read is a question to Azure.
type read struct {
	key   string
	scope azure.ID // the resource, or where the list is
	typ   string   // lower case
	list  bool
	fetch func(context.Context) ([]azure.Document, error)
}

func (c *Cache) get(id azure.ID) read {
	return read{
		key: id.Key(), scope: id, typ: strings.ToLower(id.Type()),
		fetch: func(ctx context.Context) ([]azure.Document, error) {
			doc, err := c.door.Get(ctx, id)
			return []azure.Document{doc}, err
		},
	}
}

func (c *Cache) list(q azure.Query) read {
	return read{
		key:   strings.Join([]string{q.Scope.Key(), strings.ToLower(q.Type), q.Expand, q.Filter}, "\n"),
		scope: q.Scope, typ: strings.ToLower(q.Type), list: true,
		fetch: func(ctx context.Context) ([]azure.Document, error) { return c.door.List(ctx, q) },
	}
}

// lifetime is how long what is read of a type may be used.
func (c *Cache) lifetime(typ string) time.Duration {
	for t := typ; t != ""; t = parentType(t) {
		if d, ok := c.ttl[t]; ok {
			return d
		}
	}
	return c.ttl[""]
}

// Get reads one resource.
func (c *Cache) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return only(c.through(ctx, c.get(id)))
}

// List reads all pages of a list.
func (c *Cache) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	docs, err := c.through(ctx, c.list(q))
	return slices.Clone(docs), err
}

// Fresh reads past the cache. What it finds is kept for those who read through it.
func (c *Cache) Fresh() azure.Reader { return fresh{c} }

type fresh struct{ cache *Cache }

func (f fresh) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return only(f.cache.past(ctx, f.cache.get(id)))
}

func (f fresh) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	docs, err := f.cache.past(ctx, f.cache.list(q))
	return slices.Clone(docs), err
}

func only(docs []azure.Document, err error) (azure.Document, error) {
	if err != nil {
		return nil, err
	}
	return docs[0], nil
}

// Put creates or replaces a resource.
func (c *Cache) Put(ctx context.Context, w azure.Write) (azure.Document, error) {
	return c.change(w.ID, func() (azure.Document, error) { return c.door.Put(ctx, w) }, true)
}

// Patch merges a body into a resource.
func (c *Cache) Patch(ctx context.Context, w azure.Write) (azure.Document, error) {
	return c.change(w.ID, func() (azure.Document, error) { return c.door.Patch(ctx, w) }, true)
}

// Delete removes a resource.
func (c *Cache) Delete(ctx context.Context, id azure.ID) error {
	_, err := c.change(id, func() (azure.Document, error) { return nil, c.door.Delete(ctx, id) }, false)
	return err
}

// Post runs an action of a resource.
func (c *Cache) Post(ctx context.Context, id azure.ID, action string, body azure.Document) (azure.Document, error) {
	if c.asks[strings.ToLower(action)] {
		return c.door.Post(ctx, id, action, body)
	}
	return c.change(id, func() (azure.Document, error) { return c.door.Post(ctx, id, action, body) }, false)
}

// overlap counts the writes of one resource that are under way.
type overlap struct {
	running int
	several bool // at once, so that nobody knows which came last
}

// change does a write and forgets what it made stale, also when it failed: it may
// have come through all the same, and a refused precondition tells that what is
// kept is old. A resource that answers for itself is kept as it answered.
func (c *Cache) change(id azure.ID, do func() (azure.Document, error), answers bool) (azure.Document, error) {
	w := write{id: id, typ: strings.ToLower(id.Type())}
	w.stale = c.rules.of(w.typ)
	top := id.TopLevel().Key()
	o := c.begin(top)
	doc, err := do()

	c.mu.Lock()
	defer c.mu.Unlock()
	if o.running--; o.running == 0 {
		delete(c.writing, top)
	}
	c.forget(w)
	if err == nil && answers && !o.several && wholeAnswers(w.typ) && doc.ID().Equal(id) {
		c.clock++
		c.keep(c.get(id), []azure.Document{doc}, c.clock)
	}
	return doc, err
}

func (c *Cache) begin(top string) *overlap {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.writing[top]
	if !ok {
		o = &overlap{}
		c.writing[top] = o
	}
	o.running++
	o.several = o.several || o.running > 1
	return o
}

// wholeAnswers reports whether Azure answers a write of the type with what a read
// would answer. Others leave fields out.
func wholeAnswers(typ string) bool {
	switch typ {
	case "microsoft.compute/availabilitysets":
		return false
	}
	return within(typ, "microsoft.network") || within(typ, "microsoft.compute")
}

// forget drops what a write made stale, and makes sure that reads under way, which
// may have seen Azure before it, are not kept.
func (c *Cache) forget(w write) {
	for _, e := range c.kept.entries {
		if w.reaches(e.read) {
			c.kept.drop(e)
		}
	}
	for f := range c.flights {
		if w.reaches(f.read) {
			f.stale = true
			c.unjoin(f)
		}
	}
}
