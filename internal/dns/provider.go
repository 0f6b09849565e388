package dns

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/plan/records"
)

// Access reads and writes Azure.
type Access interface {
	azure.Writer
	// Fresh returns a reader past all caches.
	Fresh() azure.Reader
}

// Config describes a provider.
type Config struct {
	Azure Access
	Zones Zones
	records.Options

	Refresh  time.Duration // how long zones and record sets that were read are used
	Deadline time.Duration // of a request of ExternalDNS, which waits 15 s by default
	Parallel int           // writes at once in a zone
	// PublicWrites and PrivateWrites are the writes in a minute in a zone. Azure takes 200 and 60.
	PublicWrites, PrivateWrites int
	DryRun                      bool
	// Lease is how long the contributions of Options.Cluster to shared names are good without a renewal.
	Lease time.Duration

	Log     *slog.Logger
	Metrics *Metrics // nil counts nothing
}

// Defaults of a provider.
const (
	Refresh       = 10 * time.Minute
	Deadline      = 12 * time.Second
	Parallel      = 8
	PublicWrites  = 190
	PrivateWrites = 57
	DefaultTTL    = 300 // seconds, as the provider that ExternalDNS has for Azure
	MostDeleted   = 20  // percent
)

// longestRead is the time for one read of all zones, which goes on if the request that needs it has ended.
const longestRead = 5 * time.Minute

// Provider serves the zones of Azure DNS. It is safe for concurrent use.
type Provider struct {
	config Config
	// turn is held by what reads or writes zones. It is a channel so that waiting ends with a context.
	turn    chan struct{}
	refused refusals

	mu      sync.Mutex // guards what follows, and is never held while waiting
	state   state
	reading *reading
	paces   map[string]*pace
	failure error // of the last read
	// removed counts how often claims of this cluster were removed, and shown is what it was when ExternalDNS last read the records.
	removed, shown int
}

// state is what is known of the zones.
type state struct {
	found time.Time // when the zones were found
	zones []records.Zone
	read  map[string]zoneState // by the key of the zone's id
}

type zoneState struct {
	at   time.Time // zero if the record sets must be read again
	sets map[records.Key]records.Set
}

// reading is a read of the zones that is under way.
type reading struct {
	done  chan struct{}
	state records.Snapshot
	err   error
}

// New returns a provider.
func New(c Config) *Provider {
	return &Provider{
		config: c, turn: make(chan struct{}, 1), paces: map[string]*pace{}, refused: refusals{at: map[string]time.Time{}},
		state: state{read: map[string]zoneState{}},
	}
}

// Ready reports whether the zones were read the last time.
func (p *Provider) Ready(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state.found.IsZero() && p.failure == nil {
		return errors.New("the zones have not been read yet")
	}
	return p.failure
}

// Filter is the filter of domains that ExternalDNS asks for at its start.
type Filter struct {
	Include []string `json:"include,omitempty"`
}

// Filter returns the names of the zones.
func (p *Provider) Filter(ctx context.Context) (Filter, error) {
	s, err := p.snapshot(ctx)
	if err != nil {
		return Filter{}, err
	}
	if len(s.Zones) == 0 {
		return Filter{}, errors.New("no zone is found: without a name, ExternalDNS would believe that all names are served")
	}
	var f Filter
	for _, z := range s.Zones {
		f.Include = append(f.Include, z.Name)
	}
	slices.Sort(f.Include)
	return f, nil
}

// Records returns the records of all zones, in the order of their names.
func (p *Provider) Records(ctx context.Context) ([]records.Endpoint, error) {
	p.mu.Lock()
	removed := p.removed
	p.mu.Unlock()
	s, err := p.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.shown = removed
	p.mu.Unlock()
	return s.Endpoints(p.config.Cluster), nil
}

// Adjust returns endpoints as Azure can have them.
func (p *Provider) Adjust(ctx context.Context, endpoints []records.Endpoint) ([]records.Endpoint, error) {
	s, err := p.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	adjusted, problems := records.Adjust(s.Zones, endpoints, p.config.Cluster)
	p.report(ctx, problems)
	return adjusted, nil
}

// report logs problems and counts them.
func (p *Provider) report(ctx context.Context, problems []records.Problem) {
	for _, one := range problems {
		p.config.Metrics.problem(one.Reason)
		p.config.Log.WarnContext(ctx, "record not written as wanted", "name", one.Name, "type", one.Type, "reason", string(one.Reason),
			"message", one.Message)
	}
}

// take waits for the turn.
func (p *Provider) take(ctx context.Context) (release func(), err error) {
	select {
	case p.turn <- struct{}{}:
		return func() { <-p.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
