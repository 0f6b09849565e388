// Package cache keeps what was read from Azure, for as long as its type allows and until a write makes it stale.
// Layer L2.
//
// A [Cache] stands in front of an ARM client and is one itself. The table of package types says what a write of each
// type makes stale, so callers never drop entries by hand. Changes that others make in Azure show when an entry
// expires, or through [Cache.Fresh]. Writes are conditional: Azure refuses a decision from an old document, and it is
// made again from a fresh one.
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

	"kaz/internal/arm/types"
	"kaz/internal/azure"
)

// Client is what stands behind a cache.
type Client interface {
	azure.Reader
	azure.Writer
}

// Options of a cache. The zero value keeps nothing.
type Options struct {
	// TTL is how long a document that was read may be used, by type or the start of a type. The longest match counts,
	// and "" matches all types. Types without a match are always read from Azure.
	TTL map[string]time.Duration
	// Bytes bounds the size of the documents kept, 32 MiB when 0. The least recently used documents go first.
	Bytes int
	// Registerer takes the metrics, nil for none.
	Registerer prometheus.Registerer
}

// Cache reads through to an ARM client and keeps what was read. It is safe for concurrent use.
type Cache struct {
	azure.Verbs // over Begin
	client      Client
	ttl         map[string]time.Duration
	types       types.Index
	asks        map[string]bool
	reads       *prometheus.CounterVec

	mu      sync.Mutex
	kept    kept
	flights map[*flight]struct{}
	joined  map[string]*flight
	writing map[string]*overlap
	clock   uint64 // orders reads and writes
}

var _ Client = (*Cache)(nil)

// Over puts a cache in front of an ARM client.
func Over(client Client, o Options) (*Cache, error) {
	c := &Cache{
		client:  client,
		ttl:     map[string]time.Duration{},
		types:   types.NewIndex(),
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
	c.Verbs = azure.Verbs{Writer: c}
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

func (c *Cache) get(from azure.Reader, id azure.ID) read {
	return read{
		key: id.Key(), scope: id, typ: strings.ToLower(id.Type()),
		fetch: func(ctx context.Context) ([]azure.Document, error) {
			doc, err := from.Get(ctx, id)
			return []azure.Document{doc}, err
		},
	}
}

func (c *Cache) list(from azure.Reader, q azure.Query) read {
	return read{
		key:   strings.Join([]string{q.Scope.Key(), strings.ToLower(q.Type), q.Expand, q.Filter}, "\n"),
		scope: q.Scope, typ: strings.ToLower(q.Type), list: true,
		fetch: func(ctx context.Context) ([]azure.Document, error) { return from.List(ctx, q) },
	}
}

// lifetime is how long a document of a type may be used.
func (c *Cache) lifetime(typ string) time.Duration {
	for t := typ; t != ""; t = t[:max(strings.LastIndexByte(t, '/'), 0)] {
		if d, ok := c.ttl[t]; ok {
			return d
		}
	}
	return c.ttl[""]
}

// Get reads one resource.
func (c *Cache) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return only(c.through(ctx, c.get(c.client, id)))
}

// List reads all pages of a list.
func (c *Cache) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	docs, err := c.through(ctx, c.list(c.client, q))
	return slices.Clone(docs), err
}

// Fresh reads past the cache. Its result is kept for callers that read through the cache.
func (c *Cache) Fresh() azure.Reader { return fresh{c, c.client} }

type fresh struct {
	cache *Cache
	from  azure.Reader
}

// At returns a reader that reads with a priority.
func (f fresh) At(p azure.Priority) azure.Reader { return fresh{f.cache, azure.At(f.cache.client, p)} }

func (f fresh) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return only(f.cache.past(ctx, f.cache.get(f.from, id)))
}

func (f fresh) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	docs, err := f.cache.past(ctx, f.cache.list(f.from, q))
	return slices.Clone(docs), err
}

func only(docs []azure.Document, err error) (azure.Document, error) {
	if err != nil {
		return nil, err
	}
	return docs[0], nil
}

// Begin begins a change. When the change has ended, the cache forgets what it made stale.
func (c *Cache) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	if r.Verb == azure.Get || r.Verb == azure.Post && c.asks[strings.ToLower(r.Action)] {
		return c.client.Begin(ctx, r)
	}
	return azure.Around(c.client, c.change).Begin(ctx, r)
}

// overlap counts the writes of one resource that are under way.
type overlap struct {
	running int
	several bool // at once, so that their order is not known
}

// change notes that a write is under way. When the write has ended, the cache forgets what it made stale. It does so
// after a failure too: the write may have succeeded in Azure, and a refused precondition shows that the kept document
// is old. If Azure answers with the whole resource and no other write overlaps, the answer is kept.
func (c *Cache) change(_ context.Context, r azure.Request) (ended func(azure.Document, error), err error) {
	row := c.types.Of(r.ID.Type())
	w := write{id: r.ID, typ: strings.ToLower(r.ID.Type()), stale: row.Stale}
	top := r.ID.TopLevel().Key()
	o := c.begin(top)
	answers := (r.Verb == azure.Put || r.Verb == azure.Patch) && row.Answer == types.Whole
	return func(doc azure.Document, err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if o.running--; o.running == 0 {
			delete(c.writing, top)
		}
		c.forget(w)
		if err == nil && answers && !o.several && doc.ID().Equal(r.ID) {
			c.clock++
			c.keep(c.get(c.client, r.ID), []azure.Document{doc}, c.clock)
		}
	}, nil
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

// forget drops what a write made stale. It also marks reads under way as stale, because they may have seen Azure
// before the write.
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
