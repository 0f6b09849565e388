// Package gateway is the data plane of application gateways. It serves what the stored documents say: HTTP/1.1, HTTP/2 and WebSocket,
// with and without TLS, and plain streams. Package routing compiles the documents and decides about requests. Package gateway watches
// the local Azure, listens, probes the backends and passes requests on. Layer L2.
//
// A change of a document takes effect when its operation ends. Connections and requests in flight go on.
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/rounds"
)

// Azure is the local Azure with the documents.
type Azure interface {
	Look(f func(w behaviour.World))
	Do(f func(w behaviour.World) error) error
	Subscribe() func(ctx context.Context, f func([]core.Change))
}

// Network has the frontends of gateways, and the ways to their backends.
type Network interface {
	// Listen listens at a frontend of a gateway.
	Listen(ctx context.Context, gateway azure.ID, frontend netip.AddrPort) (net.Listener, error)
	// Dial connects to host:port from a gateway.
	Dial(ctx context.Context, gateway azure.ID, address string) (net.Conn, error)
}

// Options are the options of a Service.
type Options struct {
	Azure   Azure
	Network Network
	// ExactPaths compares paths with regard to case. Whether Azure does is not documented; the default is that it does not.
	ExactPaths bool
	// After replaces time.After for the times between probes and for draining, in tests.
	After func(time.Duration) <-chan time.Time
	// Log receives changes and errors. Nil is slog.Default.
	Log *slog.Logger
}

// Service serves all gateways until it is closed.
type Service struct {
	options Options
	rounds  *rounds.Rounds
	stop    context.CancelFunc
	tasks   sync.WaitGroup

	mu       sync.Mutex
	gateways map[string]*gateway
}

// Start begins to serve.
func Start(ctx context.Context, o Options) *Service {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.After == nil {
		o.After = time.After
	}
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Service{options: o, rounds: rounds.New(), stop: stop, gateways: map[string]*gateway{}}
	changes := o.Azure.Subscribe() // before the first round
	s.tasks.Go(func() { s.run(inner) })
	s.tasks.Go(func() { changes(inner, s.changed) })
	s.requestRound()
	return s
}

// gatewayType is the type of application gateways.
const gatewayType = "Microsoft.Network/applicationGateways"

// matters are the types of the documents that decide about traffic.
var matters = []string{gatewayType, "Microsoft.Network/publicIPAddresses", "Microsoft.Network/networkInterfaces",
	"Microsoft.KeyVault/vaults/secrets"}

// changed starts a round if one of the documents matters.
func (s *Service) changed(batch []core.Change) {
	if slices.ContainsFunc(batch, func(c core.Change) bool { return slices.ContainsFunc(matters, c.ID.Is) }) {
		s.requestRound()
	}
}

func (s *Service) requestRound() { s.rounds.Request() }

// run executes rounds until the context ends, and closes all gateways then.
func (s *Service) run(ctx context.Context) {
	defer s.closeAll()
	s.rounds.Run(ctx, s.round, func(err error) {
		s.options.Log.Warn("an application gateway does not serve as its document says; trying again", "error", err)
	})
}

// round brings what is served up to date with the documents, and writes the health of the backends.
func (s *Service) round(ctx context.Context) error {
	wanted, kept := s.read()
	var problems []error
	for key, have := range s.known() {
		if wanted[key] == nil && !kept[key] {
			have.close()
			s.mu.Lock()
			delete(s.gateways, key)
			s.mu.Unlock()
			s.options.Log.Info("application gateway stopped", "gateway", string(have.id))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		g := s.known()[key]
		if g == nil {
			g = newGateway(ctx, wanted[key].id, s.options, s.requestRound)
			s.mu.Lock()
			s.gateways[key] = g
			s.mu.Unlock()
		}
		if err := g.apply(ctx, wanted[key]); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(append(problems, s.saveHealth())...)
}

func (s *Service) known() map[string]*gateway {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.gateways)
}

// read returns the gateways to serve. Those in kept have an operation and serve as before until it ends.
func (s *Service) read() (wanted map[string]*source, kept map[string]bool) {
	wanted, kept = map[string]*source{}, map[string]bool{}
	s.options.Azure.Look(func(w behaviour.World) {
		for id, doc := range behaviour.Everywhere(w, gatewayType) {
			switch state := behaviour.Text(doc, "properties.provisioningState"); {
			case !strings.EqualFold(behaviour.Text(doc, "properties.operationalState"), "Running"):
			case state == "Succeeded":
				wanted[id.Key()] = gather(w, id, doc)
			case state != "Deleting":
				kept[id.Key()] = true
			}
		}
	})
	return wanted, kept
}

// Settle waits until all earlier changes are in force.
func (s *Service) Settle(ctx context.Context) error {
	err := s.rounds.Settle(ctx)
	if errors.Is(err, rounds.ErrClosed) {
		return errors.New("the application gateways of the local Azure are closed")
	}
	return err
}

// Close stops serving and waits for all goroutines.
func (s *Service) Close() error {
	s.stop()
	s.tasks.Wait()
	return nil
}

func (s *Service) closeAll() {
	for _, g := range s.known() {
		g.close()
	}
}
