// Package fabric is the network data plane of the local Azure. The word is Azure's own: its fabric is the layer below the
// resources. Package fabric forwards packets as the documents of virtual networks, network interfaces, route tables,
// security groups, load balancers and public addresses say. Layer L2.
//
// Package wiring compiles the documents into the state of the kernel, package netns applies the state, and package health
// probes the backends of load balancers. Package fabric watches the local Azure and calls them. Every change takes the same
// path: wiring compiles all documents, and netns applies the difference.
package fabric

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/fabric/health"
	"kaz/internal/localazure/plane/fabric/netns"
	"kaz/internal/localazure/plane/fabric/wiring"
	"kaz/internal/localazure/plane/rounds"
)

// Azure is the local Azure with the documents.
type Azure interface {
	Look(f func(w behaviour.World))
	Subscribe() func(ctx context.Context, f func([]core.Change))
}

// Options are the options of a Fabric.
type Options struct {
	// Instance distinguishes fabrics on one machine: up to eight lower-case letters and digits.
	Instance string
	Azure    Azure
	// Outside is the path of the network namespace from which public addresses are reached, "" for the namespace of
	// this process.
	Outside string
	// Metadata answers HTTP requests to 169.254.169.254 from an interface's machine and its pods. nil answers none.
	Metadata func(from azure.ID) http.Handler
	// WireServer answers HTTP requests to 168.63.129.16 from an interface's machine, in the same way.
	WireServer func(from azure.ID) http.Handler
	// ProbeInterval replaces the intervals of all probes, so that tests wait less; 0 keeps them.
	ProbeInterval time.Duration
	// Log receives changes and errors. Nil is slog.Default.
	Log *slog.Logger
}

// Fabric forwards packets until it is closed.
type Fabric struct {
	options Options
	rounds  *rounds.Rounds
	stop    context.CancelFunc
	done    <-chan struct{} // closed when the fabric has stopped
	tasks   sync.WaitGroup
	prober  *health.Prober

	mu       sync.Mutex
	attached map[string]wiring.Attachment
	made     uint64
	net      wiring.Net
	broken   map[string]bool // machines to which not everything could be applied
	rounded  chan struct{}   // closed and replaced after every round

	// The following fields belong to the goroutine of run.
	docs   *wiring.Documents
	kernel netns.Kernel
	web    []*webServers
	dhcp   dhcpServers
}

// Start checks the requirements of the machine, removes what an earlier instance left, and starts to forward packets.
func Start(ctx context.Context, o Options) (*Fabric, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if err := checkInstance(o.Instance); err != nil {
		return nil, err
	}
	if err := netns.Sweep(ctx, o.Instance, o.Outside); err != nil {
		return nil, err
	}
	if err := netns.Check(ctx, o.Instance, o.Outside); err != nil {
		return nil, err
	}
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	f := &Fabric{options: o, stop: stop, done: inner.Done(), rounded: make(chan struct{}), rounds: rounds.New(),
		docs:     wiring.NewDocuments(),
		attached: map[string]wiring.Attachment{}, broken: map[string]bool{}}
	f.web = []*webServers{
		f.webServers("instance metadata", wiring.Metadata, o.Metadata),
		f.webServers("the wire server", wiring.Platform, o.WireServer),
	}
	f.dhcp = dhcpServers{lease: f.lease, log: o.Log, servers: map[string]net.PacketConn{}}
	f.prober = health.New(f.requestRound)
	changes := o.Azure.Subscribe() // before the first round
	f.tasks.Go(func() { f.run(inner) })
	f.tasks.Go(func() { f.watch(inner, changes) })
	if err := f.Settle(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func checkInstance(name string) error {
	const longest = 8
	ok := len(name) > 0 && len(name) <= longest
	for _, c := range name {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9')
	}
	if !ok {
		return fmt.Errorf("instance %q of the network: want 1 to %d lower-case letters and digits", name, longest)
	}
	return nil
}

// watch starts a round of run after every change of a network document.
func (f *Fabric) watch(ctx context.Context, changes func(context.Context, func([]core.Change))) {
	matters := map[string]bool{}
	for _, t := range wiring.Types() {
		matters[strings.ToLower(t)] = true
	}
	changes(ctx, func(batch []core.Change) {
		for _, c := range batch {
			if matters[strings.ToLower(c.ID.Type())] {
				f.requestRound()
				return
			}
		}
	})
}

func (f *Fabric) requestRound() { f.rounds.Request() }

// run executes rounds until the context ends.
func (f *Fabric) run(ctx context.Context) {
	f.rounds.Run(ctx, f.round, func(err error) {
		f.options.Log.Warn("cannot apply the network of the local azure; trying again", "error", err)
	})
}

// round applies the present documents and state to the kernel.
func (f *Fabric) round(ctx context.Context) error {
	var problems []error
	f.mu.Lock()
	attached, held := maps.Clone(f.attached), map[string]bool{}
	f.mu.Unlock()
	for nic := range attached {
		held[nic] = true
	}
	f.docs.Hold(held)
	f.options.Azure.Look(func(w behaviour.World) {
		problems = f.docs.Read(func(yield func(azure.ID, map[string]any) bool) {
			for _, t := range wiring.Types() {
				for id, doc := range w.List(azure.SubscriptionID(w.Subscription()), t) {
					if !yield(id, doc) {
						return
					}
				}
			}
		})
	})
	for _, err := range problems {
		f.options.Log.Error("network document cannot be read", "error", err)
	}
	state := wiring.State{Instance: f.options.Instance, Outside: f.options.Outside, Healthy: f.prober.Healthy(), Attached: attached}
	want := wiring.Compile(f.docs, state)
	if f.options.ProbeInterval > 0 {
		for i := range want.Probes {
			want.Probes[i].Interval = f.options.ProbeInterval
		}
	}
	start := time.Now()
	err := f.kernel.Apply(ctx, want)
	f.options.Log.Debug("network brought up to date", "duration", time.Since(start))
	f.prober.Set(ctx, want.Probes)
	for _, w := range f.web {
		if !w.update(want.Routers) {
			f.requestRound()
		}
	}
	if !f.dhcp.update(want.Routers) {
		f.requestRound()
	}
	f.mu.Lock()
	f.net = want
	f.broken = map[string]bool{}
	for _, s := range want.Namespaces {
		if s.Guest && !f.kernel.Holds(s.Name) {
			f.broken[s.Name] = true
		}
	}
	close(f.rounded)
	f.rounded = make(chan struct{})
	f.mu.Unlock()
	return err
}

// Settle waits until all earlier changes are in force.
func (f *Fabric) Settle(ctx context.Context) error {
	err := f.rounds.Settle(ctx)
	if errors.Is(err, rounds.ErrClosed) {
		return errClosed
	}
	return err
}

var errClosed = errors.New("the network of the local Azure is closed")

// Machine is the place to which an interface is attached.
type Machine struct {
	// Namespace is the path of the machine's network namespace, which must exist until the interface is detached.
	Namespace string
	// Device is the name of the interface in the namespace, such as eth0.
	Device string
	// Index is 0 for the machine's primary interface, which has the default route.
	Index int
}

// Port describes an attached interface in its machine.
type Port struct {
	MAC       string
	Addresses []netip.Prefix // in each family the primary address first
	Gateways  []netip.Addr
	// Resolver is the address of Azure's name server.
	Resolver netip.Addr
}

// Attach connects an interface to a machine, with its addresses and routes. When it returns, packets flow. It first
// detaches the interface from another machine.
func (f *Fabric) Attach(ctx context.Context, nic azure.ID, m Machine) (Port, error) {
	if _, err := os.Stat(m.Namespace); err != nil {
		return Port{}, fmt.Errorf("attach network interface %s: network namespace of the machine: %w", nic, err)
	}
	f.mu.Lock()
	f.made++
	f.attached[nic.Key()] = wiring.Attachment{Namespace: m.Namespace, Device: m.Device, Index: m.Index, Made: f.made}
	f.mu.Unlock()
	err := f.Settle(ctx)
	f.mu.Lock()
	port, ok := f.port(nic, m)
	broken := f.broken[m.Namespace]
	f.mu.Unlock()
	switch {
	case !ok:
		err = errors.Join(errors.New("it has no address in a virtual network"), err)
	case !broken:
		return port, nil
	}
	return Port{},
		errors.Join(fmt.Errorf("attach network interface %s to %s: %w", nic, m.Namespace, err), f.Detach(context.WithoutCancel(ctx), nic))
}

func (f *Fabric) port(nic azure.ID, m Machine) (Port, bool) {
	p := Port{Resolver: wiring.Platform}
	known := slices.ContainsFunc(f.net.Routers, func(r wiring.Router) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(r.Interfaces)), nic.Equal)
	})
	for _, l := range f.net.Links {
		if l.B.Namespace == m.Namespace && l.B.Name == m.Device {
			p.MAC = l.B.MAC
		}
	}
	guest := slices.IndexFunc(f.net.Namespaces, func(s wiring.Namespace) bool { return s.Guest && s.Name == m.Namespace })
	if !known || guest < 0 {
		return p, false
	}
	for _, a := range f.net.Namespaces[guest].Addresses {
		if a.Device == m.Device {
			p.Addresses = append(p.Addresses, a.Prefix)
		}
	}
	for _, r := range f.net.Namespaces[guest].Routes {
		if r.Device == m.Device && r.Via.IsValid() {
			p.Gateways = append(p.Gateways, r.Via)
		}
	}
	return p, len(p.Addresses) > 0
}

// Detach disconnects an interface from its machine. It does nothing for an interface that is not attached.
func (f *Fabric) Detach(ctx context.Context, nic azure.ID) error {
	f.mu.Lock()
	delete(f.attached, nic.Key())
	f.mu.Unlock()
	// An error is left to the next round. The interface itself is gone with its link.
	err := f.Settle(ctx)
	if ctx.Err() != nil || errors.Is(err, errClosed) {
		return fmt.Errorf("detach network interface %s: %w", nic, err)
	}
	return nil
}

// Balancers returns the load balancing rules in force, with their healthy backends.
func (f *Fabric) Balancers() []wiring.Balancer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.net.Balancers)
}

// Wait returns when until accepts the load balancing rules in force.
func (f *Fabric) Wait(ctx context.Context, until func([]wiring.Balancer) bool) error {
	for {
		f.mu.Lock()
		all, next := slices.Clone(f.net.Balancers), f.rounded
		f.mu.Unlock()
		if until(all) {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		case <-f.done:
			return errClosed
		}
	}
}

// Close stops the fabric and removes its namespaces and links.
func (f *Fabric) Close() error {
	f.stop()
	f.tasks.Wait()
	f.prober.Close()
	for _, w := range f.web {
		w.close()
	}
	f.dhcp.close()
	return netns.Sweep(context.Background(), f.options.Instance, f.options.Outside)
}
