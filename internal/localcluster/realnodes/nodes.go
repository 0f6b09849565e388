package realnodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"kaz/internal/azure"
	"kaz/internal/host/process"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/inventory"
	"kaz/internal/localazure/plane/block"
	"kaz/internal/localazure/plane/fabric"
	"kaz/internal/localazure/plane/fabric/wiring"
	"kaz/internal/localazure/plane/gateway"
	"kaz/internal/localazure/plane/names"
	"kaz/internal/localazure/server"
	"kaz/internal/localcluster/boot"
	vm "kaz/internal/localcluster/machine"
)

// APIServer returns the address at which nodes and pods reach the API server: the platform's address, which no security
// group can block.
func APIServer() netip.AddrPort { return netip.AddrPortFrom(wiring.Platform, 6443) }

// Config describes the real nodes of a cluster.
type Config struct {
	// Instance is part of the names of the namespaces and cgroups.
	Instance string
	Azure    *server.Server
	// VNet is the virtual network of the cluster.
	VNet azure.ID
	// Dir is the directory of the cluster. The disks of the machines are in it.
	Dir string
	// Program is the kaz executable, which runs machines.
	Program   string
	Processes *process.Group
	// Disks gives managed disks their content. See [CheckDisks].
	Disks bool
	Log   *slog.Logger
}

// EgressSocket returns the Unix socket through which the API server of a cluster reaches its nodes.
func EgressSocket(dir string) string { return filepath.Join(dir, "egress.sock") }

// Nodes are the real nodes of a running cluster.
type Nodes struct {
	config  Config
	lock    *process.Lock // of the instance
	network *fabric.Fabric
	web     *gateway.Service // application gateways
	disks   *block.Block     // nil without disks
	egress  net.Listener
	watch   sync.WaitGroup // until the network closes
}

// Start starts the network of the machines. The caller stops it.
func Start(ctx context.Context, c Config) (*Nodes, error) {
	n := &Nodes{config: c}
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
	}
	return n, nil
}

func (n *Nodes) start(ctx context.Context) error {
	var err error
	if n.lock, err = waitInstance(ctx, n.config.Instance); err != nil {
		return err
	}
	if err := vm.RaiseLimits(); err != nil {
		n.config.Log.Warn("few machines can run here", "error", err)
	}
	n.network, err = fabric.Start(ctx, fabric.Options{
		Instance: n.config.Instance, Azure: n.config.Azure.Emulator(), Metadata: n.config.Azure.Metadata,
		WireServer: n.config.Azure.WireServer, Log: n.config.Log,
	})
	if err != nil {
		return err
	}
	n.watch.Go(func() {
		_ = n.network.Wait(context.WithoutCancel(ctx), func(all []wiring.Balancer) bool { // an error says that the network is closed
			n.config.Azure.ShowBalancers(all)
			return false
		})
	})
	n.web = gateway.Start(ctx, gateway.Options{Azure: n.config.Azure.Emulator(), Network: fabric.ApplicationGateways{Fabric: n.network},
		Log: n.config.Log})
	if n.config.Disks {
		if n.disks, err = startDisks(ctx, n.config); err != nil {
			return err
		}
	}
	socket := EgressSocket(n.config.Dir)
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return err
	}
	n.egress, err = net.Listen("unix", socket)
	return err
}

// Stop stops the network and removes everything of the instance from this machine.
func (n *Nodes) Stop(ctx context.Context) error {
	var problems []error
	if n.egress != nil {
		if err := n.egress.Close(); !errors.Is(err, net.ErrClosed) {
			problems = append(problems, err)
		}
	}
	if n.disks != nil {
		n.disks.Close()
	}
	if n.web != nil {
		problems = append(problems, n.web.Close())
	}
	if n.network != nil {
		problems = append(problems, n.network.Close())
		n.watch.Wait()
	}
	if n.lock != nil {
		problems = append(problems, sweepInstance(ctx, n.config.Instance, n.lock))
	}
	return errors.Join(problems...)
}

// Connect connects the virtual network with the API server at a host:port in both directions, until ctx is done. It also
// connects the network with Azure's hosts and name server.
func (n *Nodes) Connect(ctx context.Context, tasks *errgroup.Group, server string) error {
	api, err := n.network.Listen(ctx, n.config.VNet, "tcp", APIServer().String())
	if err != nil {
		return fmt.Errorf("the API server inside the virtual network: %w", err)
	}
	tasks.Go(func() error { return vm.Relay(ctx, api, server, n.config.Log) })
	tasks.Go(func() error {
		return vm.Egress{Log: n.config.Log, Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return n.network.Dial(ctx, n.config.VNet, "tcp", address)
		}}.Serve(ctx, n.egress)
	})
	return n.serveNames(ctx, tasks, n.config.VNet)
}

// Answers is where application gateways reach the server of [Nodes.Listen] that answers with status codes.
func Answers() netip.AddrPort { return netip.AddrPortFrom(wiring.Platform, 8124) }

// Listen listens inside the cluster's virtual network.
func (n *Nodes) Listen(ctx context.Context, address netip.AddrPort) (net.Listener, error) {
	return n.network.Listen(ctx, n.config.VNet, "tcp", address.String())
}

// serveNames serves Azure's name server and the hosts of Azure itself at the platform's address, in a network.
func (n *Nodes) serveNames(ctx context.Context, tasks *errgroup.Group, network azure.ID) error {
	platform := func(port uint16) string { return netip.AddrPortFrom(wiring.Platform, port).String() }
	const dns, https = 53, 443
	arm, err := n.network.Listen(ctx, network, "tcp", platform(https))
	if err != nil {
		return fmt.Errorf("azure inside the virtual network: %w", err)
	}
	tasks.Go(func() error { return vm.Relay(ctx, arm, client.HostOf(n.config.Azure.Info().ARM), n.config.Log) })
	if err := n.serveShares(ctx, tasks); err != nil {
		return err
	}
	connections, err := n.network.Listen(ctx, network, "tcp", platform(dns))
	if err != nil {
		return fmt.Errorf("name server of the virtual network: %w", err)
	}
	datagrams, err := n.network.ListenPacket(ctx, network, "udp", platform(dns))
	if err != nil {
		connections.Close()
		return fmt.Errorf("name server of the virtual network: %w", err)
	}
	server := &names.Server{
		Network: network, World: n.config.Azure.Look, Own: n.config.Azure.OwnsHost, At: wiring.Platform, Log: n.config.Log,
	}
	tasks.Go(func() error { return server.Serve(ctx, connections, datagrams) })
	return nil
}

// serveShares leads the ports of SMB and NFS at the platform's address to the share servers.
func (n *Nodes) serveShares(ctx context.Context, tasks *errgroup.Group) error {
	const smb, nfs = 445, 2049
	info := n.config.Azure.Info()
	for port, server := range map[uint16]string{smb: info.SMB, nfs: info.NFS} {
		if server == "" {
			continue
		}
		l, err := n.network.Listen(ctx, n.config.VNet, "tcp", netip.AddrPortFrom(wiring.Platform, port).String())
		if err != nil {
			return fmt.Errorf("file shares inside the virtual network: %w", err)
		}
		tasks.Go(func() error { return vm.Relay(ctx, l, server, n.config.Log) })
	}
	return nil
}

// Boot keeps the machines as Azure describes them, until ctx is done. The function describe returns the part of a spec that
// all machines of the cluster share.
func (n *Nodes) Boot(ctx context.Context, tasks *errgroup.Group, describe func(inventory.Machine) (vm.Spec, error)) {
	n.keep(ctx, tasks, func(m inventory.Machine, at vm.Place, resolver netip.Addr) ([]string, error) {
		s, err := describe(m)
		if err != nil {
			return nil, err
		}
		s.Place, s.Addresses, s.Resolver = at, m.Addresses, resolver
		file, err := s.Write()
		return []string{"machine", "run", file}, err
	}, func(inventory.Machine) bool { return true })
}

// BootImages keeps the machines that have custom data as Azure describes them, until ctx is done. They boot from images.
// The function choose returns the image of a new machine. A machine keeps its image: the layers below its own files must
// not change.
func (n *Nodes) BootImages(ctx context.Context, tasks *errgroup.Group, choose func(inventory.Machine) (boot.Image, error)) {
	tasks.Go(func() error { return n.runScripts(ctx) })
	platform := &platforms{nodes: n, tasks: tasks, served: map[string]service{}}
	n.keep(ctx, tasks, func(m inventory.Machine, at vm.Place, _ netip.Addr) ([]string, error) {
		if err := platform.serve(ctx, m.Boot.Network); err != nil {
			return nil, err
		}
		spec, err := boot.Read(boot.SpecFile(at.Dir))
		if err != nil || spec.ID != m.Boot.ID { // it has not booted yet
			if spec.Image, err = choose(m); err != nil {
				return nil, err
			}
		}
		file, err := boot.Spec{
			Place: at, Image: spec.Image, ID: m.Boot.ID, Host: m.Name, User: m.Boot.User, CustomData: m.Boot.CustomData,
			AzureCA: n.config.Azure.Info().CAFile,
		}.Write()
		return []string{"machine", "start", file}, err
	}, func(m inventory.Machine) bool { return m.Boot != nil })
}

// platforms serves the platform's services in networks.
type platforms struct {
	nodes  *Nodes
	tasks  *errgroup.Group
	mu     sync.Mutex
	served map[string]service // by network
}

// service is the platform's services in a network.
type service struct {
	namespace string // that of the network, which another network of the same name does not have
	stop      context.CancelFunc
}

// serve serves the platform's services in a network, once. A network that was deleted and made again gets them anew.
func (p *platforms) serve(ctx context.Context, network azure.ID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	namespace, err := p.nodes.network.Namespace(network)
	if err != nil {
		return err
	}
	before, served := p.served[network.Key()]
	if served && before.namespace == namespace {
		return nil
	}
	if served {
		before.stop()
	}
	ctx, stop := context.WithCancel(ctx)
	if err := p.nodes.serveNames(ctx, p.tasks, network); err != nil {
		stop()
		return err
	}
	p.served[network.Key()] = service{namespace, stop}
	return nil
}

// keep keeps the machines that wanted accepts as Azure describes them, until ctx is done.
func (n *Nodes) keep(ctx context.Context, tasks *errgroup.Group,
	describe func(inventory.Machine, vm.Place, netip.Addr) ([]string, error), wanted func(inventory.Machine) bool,
) {
	f := &fleet{config: n.config, network: n.network, describe: describe, runners: map[string]*runner{}}
	changed := inventory.Changes(ctx, n.config.Azure.Emulator())
	tasks.Go(func() error {
		defer f.wait()
		for {
			machines, err := inventory.List(ctx, n.config.Azure.Emulator())
			if err == nil {
				f.update(ctx, slices.DeleteFunc(machines, func(m inventory.Machine) bool { return !wanted(m) }))
			}
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
			}
		}
	})
}

// WaitBalancers calls f with the load balancer rules after each change, until f returns true.
func (n *Nodes) WaitBalancers(ctx context.Context, f func([]wiring.Balancer) bool) error {
	return n.network.Wait(ctx, f)
}

// DisksDir returns the directory with the disks of a cluster's machines.
func DisksDir(dir string) string { return filepath.Join(dir, "machines") }

// Disks returns the names of the machines that have a disk in the directory of a cluster.
func Disks(dir string) ([]string, error) {
	entries, err := os.ReadDir(DisksDir(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			all = append(all, e.Name())
		}
	}
	return all, nil
}
