// Package core is the local Azure: an HTTP server that answers as Azure Resource Manager and its providers do. Layer
// L2: azure and the standard library. It never uses the client side: it tests that side and must not share its mistakes.
//
// A request goes one way through four packages, of which none imports an earlier one:
//
//   - front: HTTP in and out
//   - checks: what may refuse a request to a resource
//   - verbs: what carries it out, with the [behaviour.Type] of its target
//   - world: documents and operations, in transactions
//
// Operations end lazily: the next call that touches the world ends the operations that are due. No operation needs a goroutine,
// so tests can run under testing/synctest. This package composes the four.
package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/catalog"
	"kaz/internal/localazure/core/fault"
	"kaz/internal/localazure/core/front"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/latency"
	"kaz/internal/localazure/core/random"
	"kaz/internal/localazure/core/store"
	"kaz/internal/localazure/core/throttle"
	"kaz/internal/localazure/core/verbs"
	"kaz/internal/localazure/core/world"
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
	// Users are the users of the directory.
	Users []behaviour.User
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
	// Written, when not nil, receives the resources that were written, under the lock of the store.
	Written func([]Written)
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

// Written is a resource after a write.
type Written = world.Written

// FaultField is a member of a fault rule that users give as a text.
type FaultField = fault.Field

// FaultFields are the members of fault rules.
func FaultFields() []FaultField { return fault.Fields() }

// FaultKinds are the kinds of [Fault] with what they do.
func FaultKinds() []fault.Kind { return fault.Kinds() }

// Budget is what is left of a rate limit.
type Budget = throttle.Budget

// Subscription is a subscription other than the main subscription.
type Subscription = world.Subscription

// Authenticator finds the principal of a bearer token.
type Authenticator = front.Authenticator

// Downloader gets the content at a URI that a request names.
type Downloader = front.Downloader

// Download is the [Downloader] of a server. It reaches public addresses only, and uses no proxy.
func Download(ctx context.Context, uri string) ([]byte, error) { return front.Download(ctx, uri) }

// Emulator is a local Azure. It is an http.Handler.
type Emulator struct {
	*world.World
	*front.Front
	routes []behaviour.Route
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
	kinds, routes, err := register(o.Providers)
	if err != nil {
		return nil, fmt.Errorf("resource types of the local Azure: %w", err)
	}
	// What requests draw is drawn elsewhere, so that reads do not change what the
	// resources get.
	draws := random.New(o.Seed + 1)
	faults := fault.NewRules(draws)
	if err := faults.Set(o.Faults); err != nil {
		return nil, err
	}
	w := world.New(world.Parts{
		Tenancy: world.Tenancy{Main: o.Subscription, MainTenant: o.Tenant, Others: o.Subscriptions, Quotas: o.Quotas,
			Users: o.Users, Booting: o.Boots},
		AccessControl: o.AccessControl, Kinds: kinds, Groups: kinds.Of(groups), Random: random.New(o.Seed), Faults: faults,
		Latency: latency.Model{Factor: latency.NewFactor(o.Latency), Table: table, Random: draws}, Log: o.Log, MostStored: o.MostStored,
		Written:    o.Written,
		Behaviours: verbs.Inside,
	})
	f := front.New(w, front.Options{Authenticator: o.Authenticator, Routes: routes, Throttle: o.Throttle, Crash: o.Crash,
		RequestLog: o.RequestLog, Draws: draws, Download: o.Download})
	return &Emulator{w, f, routes}, nil
}

const groups = "Microsoft.Resources/resourceGroups"

func register(providers []behaviour.Provider) (kinds kind.Table, routes []behaviour.Route, err error) {
	types := []behaviour.Type{verbs.PermissionsType()}
	for _, p := range providers {
		types = append(types, p.Types...)
		routes = append(routes, p.Routes...)
	}
	if kinds, err = kind.NewTable(types); err != nil {
		return nil, nil, err
	}
	if kinds.Of(groups) == nil {
		return nil, nil, errors.New("resource groups are missing")
	}
	return kinds, routes, nil
}

// SetFaults replaces the rules that make requests go wrong.
func (e *Emulator) SetFaults(rules []Fault) error { return e.Faults.Set(rules) }
