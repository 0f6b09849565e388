// Package fabric is the network data plane of the local Azure: it makes packets meet
// what the documents of virtual networks, network interfaces, route tables, security
// groups, load balancers and public addresses say. Layer L2.
//
// Package wiring says what the kernel must be told, package netns tells it, package
// health asks the receivers of load balancers. This package watches the local Azure
// and brings them together: every change goes the same way, whole documents in, what
// is different into the kernel.
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
	"syscall"
	"time"

	"kaz/internal/azure"
	"kaz/internal/emulator"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/plane/fabric/health"
	"kaz/internal/emulator/plane/fabric/netns"
	"kaz/internal/emulator/plane/fabric/wiring"
)

// Azure is the local Azure whose packets these are.
type Azure interface {
	Look(f func(w behaviour.World))
	Subscribe() func(ctx context.Context, f func([]emulator.Change))
}

// Options say which fabric this is.
type Options struct {
	// Instance tells apart fabrics on one machine: up to eight small letters and digits.
	Instance string
	Azure    Azure
	// Outside is the path of the network namespace from which public addresses are
	// reached, "" for that of this process.
	Outside string
	// Metadata answers HTTP requests to 169.254.169.254 that come by an interface, from
	// its machine or from pods on it; nobody can ask for another's. Nil for nobody.
	Metadata func(from azure.ID) http.Handler
	// Log gets what changed and what went wrong; nil is slog.Default.
	Log *slog.Logger
}

// Fabric carries packets until it is closed.
type Fabric struct {
	options Options
	wake    chan struct{}
	stop    context.CancelFunc
	done    <-chan struct{} // closed when nothing is carried any more
	tasks   sync.WaitGroup
	prober  *health.Prober

	mu       sync.Mutex
	attached map[string]wiring.Attachment
	made     uint64
	waiting  []chan error
	net      wiring.Net
	broken   map[string]bool // guests that could not be told everything
	rounded  chan struct{}   // closed, and made anew, after every round

	// What follows is the loop's own.
	docs     *wiring.Documents
	kernel   netns.Kernel
	services map[string]*http.Server
	serving  sync.WaitGroup
}

// Start checks that the machine can do it, removes what an earlier instance of the
// name left, and carries packets from then on.
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
	f := &Fabric{options: o, stop: stop, done: inner.Done(), rounded: make(chan struct{}), wake: make(chan struct{}, 1), docs: wiring.NewDocuments(),
		attached: map[string]wiring.Attachment{}, broken: map[string]bool{}, services: map[string]*http.Server{}}
	f.prober = health.New(f.poke)
	changes := o.Azure.Subscribe() // before the first look
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
		return fmt.Errorf("instance %q of the network: want 1 to %d small letters and digits", name, longest)
	}
	return nil
}

// watch wakes the loop when documents of networks change.
func (f *Fabric) watch(ctx context.Context, changes func(context.Context, func([]emulator.Change))) {
	matters := map[string]bool{}
	for _, t := range wiring.Types() {
		matters[strings.ToLower(t)] = true
	}
	changes(ctx, func(batch []emulator.Change) {
		for _, c := range batch {
			if matters[strings.ToLower(c.ID.Type())] {
				f.poke()
				return
			}
		}
	})
}

func (f *Fabric) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run carries out rounds, one after the other, until the context ends.
func (f *Fabric) run(ctx context.Context) {
	const again = time.Second
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		case <-retry:
		}
		retry = nil
		f.mu.Lock()
		waiting := f.waiting
		f.waiting = nil
		f.mu.Unlock()
		err := f.round(ctx)
		if err != nil && ctx.Err() == nil {
			f.options.Log.Warn("network of the local azure is not what it should be", "error", err)
			retry = time.After(again)
		}
		for _, w := range waiting {
			w <- err
		}
	}
}

// round brings everything that is known now into force.
func (f *Fabric) round(ctx context.Context) error {
	var problems []error
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
	state := wiring.State{Instance: f.options.Instance, Outside: f.options.Outside, Healthy: f.prober.Healthy()}
	f.mu.Lock()
	state.Attached = maps.Clone(f.attached)
	f.mu.Unlock()
	want := wiring.Compile(f.docs, state)
	start := time.Now()
	err := f.kernel.Apply(ctx, want)
	f.options.Log.Debug("network brought up to date", "duration", time.Since(start))
	f.prober.Set(ctx, want.Probes)
	f.serve(want)
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

// Settle returns when everything that happened before is in force.
func (f *Fabric) Settle(ctx context.Context) error {
	done := make(chan error, 1)
	f.mu.Lock()
	f.waiting = append(f.waiting, done)
	f.mu.Unlock()
	f.poke()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-f.done:
		return errClosed
	}
}

var errClosed = errors.New("the network of the local Azure is closed")

// Machine is where an interface is attached.
type Machine struct {
	// Namespace is the path of the machine's network namespace, which must stay until the
	// interface is detached.
	Namespace string
	// Device is the name that the interface gets in it, such as eth0.
	Device string
	// Index is 0 for the machine's primary interface, by which it reaches the world.
	Index int
}

// Port is what a machine has of an interface that is attached. All of it is set up.
type Port struct {
	MAC       string
	Addresses []netip.Prefix // the primary one first of its family
	Gateways  []netip.Addr
	// Resolver is the address at which Azure resolves names.
	Resolver netip.Addr
}

// Attach gives a machine an interface, with its addresses and routes. When it
// returns, packets flow. An interface that is attached elsewhere is detached there.
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
	return Port{}, errors.Join(fmt.Errorf("attach network interface %s to %s: %w", nic, m.Namespace, err), f.Detach(context.WithoutCancel(ctx), nic))
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

// Detach takes an interface from its machine. One that is not attached stays so.
func (f *Fabric) Detach(ctx context.Context, nic azure.ID) error {
	f.mu.Lock()
	delete(f.attached, nic.Key())
	f.mu.Unlock()
	// What goes wrong elsewhere is tried again; here nothing can: what is gone is gone.
	err := f.Settle(ctx)
	if ctx.Err() != nil || errors.Is(err, errClosed) {
		return fmt.Errorf("detach network interface %s: %w", nic, err)
	}
	return nil
}

// Balancers are the rules of load balancers with their healthy receivers, as they
// are in force.
func (f *Fabric) Balancers() []wiring.Balancer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.net.Balancers)
}

// Wait returns when the rules of load balancers, as they are in force, are as until
// says.
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

// router is that of a virtual network.
func (f *Fabric) router(network azure.ID) (wiring.Router, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.net.Routers {
		if r.Network.Equal(network) {
			return r, nil
		}
	}
	return wiring.Router{}, fmt.Errorf("virtual network %s is not there", network)
}

// Dial connects to a machine, or to what the routes of a network lead to, from the
// platform's place in the network: 168.63.129.16. Security groups see it as the load
// balancer's probe.
func (f *Fabric) Dial(ctx context.Context, network azure.ID, protocol, address string) (c net.Conn, err error) {
	r, err := f.router(network)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{}
	if to, err := netip.ParseAddrPort(address); err == nil && to.Addr().Is4() {
		dialer.LocalAddr = from(protocol)
	}
	if r.Mark != 0 {
		dialer.Control = netns.WithMark(r.Mark)
	}
	err = netns.Do(r.Namespace, func() error {
		c, err = dialer.DialContext(ctx, protocol, address)
		return err
	})
	return c, err
}

func from(protocol string) net.Addr {
	if strings.HasPrefix(protocol, "udp") {
		return &net.UDPAddr{IP: wiring.Platform.AsSlice()}
	}
	return &net.TCPAddr{IP: wiring.Platform.AsSlice()}
}

// Listen listens in a virtual network, at an address of the platform such as
// 168.63.129.16:53: machines reach it whatever their security groups say.
func (f *Fabric) Listen(ctx context.Context, network azure.ID, protocol, address string) (l net.Listener, err error) {
	r, err := f.router(network)
	if err != nil {
		return nil, err
	}
	err = netns.Do(r.Namespace, func() error {
		l, err = (&net.ListenConfig{}).Listen(ctx, protocol, address)
		return err
	})
	return l, err
}

// ListenPacket is Listen for datagrams.
func (f *Fabric) ListenPacket(ctx context.Context, network azure.ID, protocol, address string) (c net.PacketConn, err error) {
	r, err := f.router(network)
	if err != nil {
		return nil, err
	}
	err = netns.Do(r.Namespace, func() error {
		c, err = (&net.ListenConfig{}).ListenPacket(ctx, protocol, address)
		return err
	})
	return c, err
}

// Sender is the interface that has an address in a virtual network. Interfaces that
// may not forward cannot send with other addresses than theirs; for those that may,
// ask [Fabric.Caller].
func (f *Fabric) Sender(network azure.ID, address netip.Addr) (azure.ID, bool) {
	r, err := f.router(network)
	if err != nil {
		return "", false
	}
	id, ok := r.Interfaces[address.Unmap()]
	return id, ok
}

// Caller is the interface by which a connection came to a listener of the network,
// whatever its source address: also that of a node whose pod connected.
func (f *Fabric) Caller(network azure.ID, c net.Conn) (azure.ID, bool) {
	if s, ok := c.(syscall.Conn); ok {
		if mark := netns.Mark(s); mark != 0 {
			return f.Sender(network, wiring.AddressOf(mark))
		}
	}
	return "", false
}

// Close stops everything and removes all that was made.
func (f *Fabric) Close() error {
	f.stop()
	f.tasks.Wait()
	f.prober.Close()
	for _, s := range f.services {
		_ = s.Close() // the machines are gone
	}
	f.serving.Wait()
	return netns.Sweep(context.Background(), f.options.Instance, f.options.Outside)
}
