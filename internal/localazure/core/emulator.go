// Package core is the local Azure: an HTTP server that answers as Azure Resource Manager and its providers do. Layer
// L2: azure and the standard library. It never uses the client side: it tests that side and must not share its mistakes.
//
// The function serve has the steps of a request in their order. It reads the request, finds its target by the grammar of
// ARM ids, and checks it. It then carries the request out in a transaction on the store, with the [behaviour.Type] of the
// target. Operations end lazily: the next call that touches the store ends the operations that are due. No operation needs
// a goroutine, so tests can run under testing/synctest.
//
// This package joins parts that do not import it:
//
//   - address: what a path means
//   - access: the rights of callers
//   - throttle, fault and latency: how requests are refused, fail and take their time
//   - store: the documents
//   - operation: the long-running operations
//   - document and kind: what all resources have in common
package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/catalog"
	"kaz/internal/localazure/core/fault"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/latency"
	"kaz/internal/localazure/core/operation"
	"kaz/internal/localazure/core/random"
	"kaz/internal/localazure/core/store"
	"kaz/internal/localazure/core/throttle"
)

// Options say which Azure this is. The zero value is a useful one.
type Options struct {
	// Subscription and Tenant are the ids of the main subscription and of its tenant.
	// Subscriptions are the other subscriptions, each in a tenant.
	Subscription, Tenant string
	Subscriptions        []Subscription
	// Quotas are the limits of vCPUs in each region, by the names that the list of usages has, such as "cores" or
	// "standardDSv5Family". Others are so large that they are never reached.
	Quotas map[string]int
	// Providers are the resource types. Package providers has the table of all.
	Providers []behaviour.Provider
	// Authenticator checks bearer tokens. Nil lets every request in as an owner.
	Authenticator Authenticator
	// Latency is how long things take: 0 no time, 1 as long as on Azure.
	Latency float64
	// Throttle refuses too many requests as Azure does.
	Throttle bool
	// Boots says that something boots the machines with custom data: operations wait for their software.
	Boots bool
	// AccessControl enforces role assignments on principals that are no owners.
	AccessControl bool
	// Faults are rules that make requests go wrong.
	Faults []Fault
	// Crash is called by faults of that kind, in tests that run in the process.
	Crash func(Fault)
	// Download gets what requests link to, such as templates. Nil is [Download].
	Download Downloader
	// RequestLog gets a JSON line for every request.
	RequestLog io.Writer
	// MostStored is how many bytes all documents may have; 0 is 1 GiB.
	MostStored int
	// Seed of everything random; 0 is a seed like any other.
	Seed uint64
	// Log receives internal errors. Nil is slog.Default.
	Log *slog.Logger
}

// Default ids.
const (
	DefaultSubscription = "00000000-0000-0000-0000-000000000001"
	DefaultTenant       = "11111111-1111-1111-1111-111111111111"
)

// Fault is a rule that makes requests go wrong.
type Fault = fault.Rule

// Kinds of [Fault].
const (
	FaultError     = fault.Error
	FaultOperation = fault.Operation
	FaultLost      = fault.Lost
	FaultStale     = fault.Stale
	FaultCrash     = fault.Crash
	FaultAbsent    = fault.Absent
	FaultOverlap   = fault.Overlap
	FaultDrop      = fault.Drop
	FaultAnswer    = fault.Answer

	FaultUnconditional = fault.Unconditional
)

// ParseFaults reads a JSON document {"faults": [...]}.
func ParseFaults(text []byte) ([]Fault, error) { return fault.Parse(text) }

// Change is a changed document.
type Change = store.Change

// Emulator is a local Azure. It is an http.Handler.
type Emulator struct {
	transactions
	front front
}

// transactions are the way to the store.
type transactions struct {
	parts
	store       *store.Store
	persistence *persistence
	paused      atomic.Int64 // until when no operation ends, Unix nanoseconds, because the last end was not saved
}

// parts are what every transaction needs in addition to the documents.
type parts struct {
	tenancy       tenancy
	accessControl bool
	kinds         kind.Table
	groups        *kind.Kind
	queue         *operation.Queue
	random        *random.Source
	faults        *fault.Rules
	latency       latency.Model
	log           *slog.Logger
	mostStored    int
}

// New makes an empty Azure.
func New(o Options) (*Emulator, error) {
	if o.Subscription == "" {
		o.Subscription = DefaultSubscription
	}
	if o.Tenant == "" {
		o.Tenant = DefaultTenant
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	table, err := catalog.ReadLatencies()
	if err != nil {
		return nil, err
	}
	// What requests draw is drawn elsewhere, so that reads do not change what the
	// resources get.
	draws := random.New(o.Seed + 1)
	e := &Emulator{transactions: transactions{persistence: &persistence{}}}
	e.parts = parts{
		tenancy:       tenancy{o.Subscription, o.Tenant, o.Subscriptions, o.Quotas, o.Boots},
		accessControl: o.AccessControl, queue: operation.NewQueue(), random: random.New(o.Seed), faults: fault.NewRules(draws),
		latency: latency.Model{Factor: o.Latency, Table: table, Random: draws}, log: o.Log,
		mostStored: cmp.Or(o.MostStored, mostStored),
	}
	e.front = front{
		transactions: &e.transactions, identity: authentication{o.Authenticator, &e.tenancy}, throttle: throttle.New(o.Throttle),
		faults: e.faults, crash: o.Crash, draws: draws,
		download: o.Download,
	}
	if o.Download == nil {
		e.front.download = Download
	}
	if o.RequestLog != nil {
		e.front.requests = &requestLog{to: o.RequestLog}
	}
	if err := e.SetFaults(o.Faults); err != nil {
		return nil, err
	}
	if err := e.register(o.Providers); err != nil {
		return nil, fmt.Errorf("resource types of the local Azure: %w", err)
	}
	e.store = store.New(store.Options{Kinds: e.kinds, Random: e.random, Log: e.log, KeepBefore: e.front.faults.Stale, Commit: e.record})
	e.queue.DueChanged = e.store.Watchers.Wake
	return e, nil
}

func (e *Emulator) register(providers []behaviour.Provider) (err error) {
	types := []behaviour.Type{permissionsType()}
	for _, p := range providers {
		types = append(types, p.Types...)
		for _, r := range p.Routes {
			e.front.routes = append(e.front.routes, newRoute(r))
		}
	}
	if e.kinds, err = kind.NewTable(types); err != nil {
		return err
	}
	if e.groups = e.kinds.Of("Microsoft.Resources/resourceGroups"); e.groups == nil {
		return errors.New("resource groups are missing")
	}
	return nil
}

// ServeHTTP answers one request.
func (e *Emulator) ServeHTTP(w http.ResponseWriter, hr *http.Request) { e.front.serveHTTP(w, hr) }

// SetFaults replaces the rules that make requests go wrong.
func (e *Emulator) SetFaults(rules []Fault) error { return e.front.faults.Set(rules) }

// Do lets in-process callers, such as a data plane, change the world as a
// behaviour does. An error takes the changes back.
func (e *Emulator) Do(f func(w behaviour.World) error) error {
	e.endDue()
	return e.write(func(t *transaction) error {
		if err := f(t); err != nil {
			return err
		}
		return t.checkSizes()
	})
}

// Look lets in-process callers read the world.
func (e *Emulator) Look(f func(w behaviour.World)) {
	e.endDue()
	e.read(func(t *transaction) { f(t) })
}

// read gives f a world that cannot be changed.
func (e *transactions) read(f func(t *transaction)) {
	e.store.Read(func(tx *store.Transaction) { f(newTransaction(tx, &e.parts)) })
}

// write gives f a world to change. Its error, or panic, takes all changes back.
func (e *transactions) write(f func(t *transaction) error) error {
	return e.store.Write(func(tx *store.Transaction) error { return f(newTransaction(tx, &e.parts)) })
}

// endPause is the time between attempts to end operations while their end cannot be saved, such as on a full disk.
const endPause = time.Second

// endDue ends all operations that are due, each in a transaction of its own. An operation whose end cannot be saved runs on, and so do
// later ones until the pause ends.
func (e *transactions) endDue() {
	now := time.Now()
	if !e.queue.Due(now) || now.UnixNano() < e.paused.Load() {
		return
	}
	for more := true; more; {
		err := e.write(func(t *transaction) error { // an operation keeps its own error
			more = t.runner.EndDue()
			return nil
		})
		if err != nil {
			e.paused.Store(now.Add(endPause).UnixNano())
			e.log.Error("operations of the local Azure run on because their end cannot be saved", "error", err)
			return
		}
	}
}

// nextDue is the time of the next call of endDue, Unix nanoseconds, 0 for none.
func (e *transactions) nextDue() int64 {
	if due := e.queue.NextDue(); due != 0 {
		return max(due, e.paused.Load())
	}
	return 0
}

// Changes calls f with every batch of changes from now on, in their order, until
// the context ends. Meanwhile operations end in time, requests or not.
func (e *Emulator) Changes(ctx context.Context, f func([]Change)) { e.Subscribe()(ctx, f) }

// Subscribe collects changes from now on. The function that it returns passes them on as Changes does. No change is missed
// between a Look after Subscribe and the first batch. The caller must call the function, once.
func (e *Emulator) Subscribe() func(ctx context.Context, f func([]Change)) {
	w := e.store.Watchers.Add()
	return func(ctx context.Context, f func([]Change)) {
		defer w.Close()
		for {
			e.endDue()
			if batch := w.Take(); len(batch) > 0 {
				f(batch)
			} else if !w.Wait(ctx, e.nextDue()) {
				return
			}
		}
	}
}
