// Package emulator is the local Azure: an HTTP server that answers as Azure
// Resource Manager and its providers do. Layer L2: azure and the standard library,
// never the client side, so that the judge does not share the mistakes of the
// judged.
//
// A request is parsed by the grammar of ARM ids, checked, and carried out in a
// transaction on the store by the core and the [behaviour.Type] it is for.
// Operations end lazily: whoever touches the store first ends those that are due,
// so there is no goroutine per operation and tests can run under testing/synctest.
package emulator

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/catalog"
)

// Options say which Azure this is. The zero value is a useful one.
type Options struct {
	// Subscription and Tenant are the ids of the subscription that this Azure is for, and
	// of its tenant. Subscriptions are there besides, each in a tenant.
	Subscription, Tenant string
	Subscriptions        []Subscription
	// Providers are the resource types; package providers has the table of all.
	Providers []behaviour.Provider
	// Authenticator checks bearer tokens; nil lets every request in as an owner.
	Authenticator Authenticator
	// Latency is how long things take: 0 no time, 1 as long as on Azure.
	Latency float64
	// Throttle refuses too many requests as Azure does.
	Throttle bool
	// AccessControl enforces role assignments on principals that are no owners.
	AccessControl bool
	// Faults are rules that make requests go wrong.
	Faults []Fault
	// Crash is called by faults of that kind, in tests that run in the process.
	Crash func(Fault)
	// RequestLog gets a JSON line for every request.
	RequestLog io.Writer
	// Seed of everything random; 0 is a seed like any other.
	Seed uint64
	// Log gets what goes wrong inside; nil is slog.Default.
	Log *slog.Logger
}

// Subscription is one besides the main one. Without a tenant it is in the main one's.
type Subscription struct{ ID, Tenant string }

// tenantOf is the tenant that a subscription trusts, "" for a subscription that is not
// there.
func (o *Options) tenantOf(subscription string) string {
	if strings.EqualFold(subscription, o.Subscription) {
		return o.Tenant
	}
	for _, s := range o.Subscriptions {
		if strings.EqualFold(subscription, s.ID) {
			return cmp.Or(s.Tenant, o.Tenant)
		}
	}
	return ""
}

// Default ids.
const (
	DefaultSubscription = "00000000-0000-0000-0000-000000000001"
	DefaultTenant       = "11111111-1111-1111-1111-111111111111"
)

// Emulator is one local Azure. It is an http.Handler.
type Emulator struct {
	options    Options
	kinds      kinds
	groups     *kind
	routes     []route
	store      *store
	operations *operations
	random     *random
	weather    *random // for latencies, faults and request ids
	latency    latency
	throttle   *throttle
	faults     *faults
	log        *requestLog  // nil for none
	due        atomic.Int64 // when the next operation ends, in Unix ns, 0 for none
	watchers   watchers
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
	e := &Emulator{options: o, store: newStore(), operations: newOperations(), random: newRandom(o.Seed)}
	// What requests draw is drawn elsewhere, so that reads do not change what the
	// resources get.
	e.weather = newRandom(o.Seed + 1)
	e.latency = latency{factor: o.Latency, table: table, random: e.weather}
	e.throttle = &throttle{on: o.Throttle, buckets: map[string]*bucket{}}
	e.faults = &faults{random: e.weather}
	if o.RequestLog != nil {
		e.log = &requestLog{to: o.RequestLog}
	}
	if err := e.SetFaults(o.Faults); err != nil {
		return nil, err
	}
	if err := e.register(o.Providers); err != nil {
		return nil, fmt.Errorf("resource types of the local Azure: %w", err)
	}
	return e, nil
}

func (e *Emulator) register(providers []behaviour.Provider) (err error) {
	types := []behaviour.Type{e.permissionsType()}
	for _, p := range providers {
		types = append(types, p.Types...)
		for _, r := range p.Routes {
			e.routes = append(e.routes, newRoute(r))
		}
	}
	if e.kinds, err = newKinds(types); err != nil {
		return err
	}
	if e.groups = e.kinds.of("Microsoft.Resources/resourceGroups"); e.groups == nil {
		return errors.New("resource groups are missing")
	}
	return nil
}

// Do lets in-process callers, such as a data plane, change the world as a
// behaviour does. An error takes the changes back.
func (e *Emulator) Do(f func(w behaviour.World) error) error {
	e.endDue()
	return e.write(func(t *transaction) error { return f(t) })
}

// Look lets in-process callers read the world.
func (e *Emulator) Look(f func(w behaviour.World)) {
	e.endDue()
	e.read(func(t *transaction) { f(t) })
}

// Apply implements [behaviour.World]. What it did before an error is taken back.
func (t *transaction) Apply(id azure.ID, body behaviour.Object) error {
	mark, events := len(t.undone), len(t.events)
	err := t.apply(id, body)
	if err != nil {
		t.undoTo(mark)
		t.events = t.events[:events]
	}
	return err
}

func (t *transaction) apply(id azure.ID, body behaviour.Object) error {
	r, err := t.parseID(id)
	if err != nil {
		return err
	}
	r.body = behaviour.Clone(body)
	if err := t.put(r); err != nil {
		return err
	}
	for _, o := range append([]*operation(nil), t.operations.byKey[holderOf(r.kind, r.id).Key()]...) {
		if !o.Resource.Equal(r.id) {
			continue
		}
		t.unqueue(o)
		o.End = t.now
		if err := t.settle(o); err != nil {
			return err
		}
		t.retire(o)
	}
	return nil
}
