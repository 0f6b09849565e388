package local

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // the manifests of the name server
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/emulator/plane/fabric"
	"kaz/internal/emulator/plane/fabric/netns"
	"kaz/internal/emulator/plane/fabric/wiring"
	"kaz/internal/emulator/plane/names"
	"kaz/internal/local/controlplane"
	"kaz/internal/local/image"
	vm "kaz/internal/local/machine"
	"kaz/internal/local/process"
)

// inside is where nodes and pods reach the API server: at the platform's address,
// which no security group can cut off.
func inside() netip.AddrPort { return netip.AddrPortFrom(wiring.Platform, 6443) }

// nameServer is the address of the cluster's name server, which coredns.yaml has too.
func nameServer() netip.Addr { return netip.MustParseAddr("10.96.0.10") }

//go:embed coredns.yaml
var coredns []byte

// reality is what a cluster with real nodes has beside the rest.
type reality struct {
	held    *process.Lock // while it is on this machine
	network *fabric.Fabric
	fleet   *fleet
	images  []string
	egress  net.Listener
}

// vnet is the cluster's virtual network.
func (c *cluster) vnet() azure.ID {
	return c.memory.Site.network("virtualNetworks", c.memory.Site.VNet)
}

// egressSocket is where the API server finds the way to nodes.
func (c *cluster) egressSocket() string {
	if !c.real() {
		return ""
	}
	return c.path("egress.sock")
}

// startNetwork makes packets meet what Azure has.
func (c *cluster) startNetwork(ctx context.Context, binaries controlplane.Binaries) error {
	var err error
	if c.reality.images, err = makeImages(ctx, binaries[controlplane.CoreDNS]); err != nil {
		return err
	}
	c.reality.images = append(c.reality.images, c.Images...)
	if c.reality.held, err = holdAlone(ctx, c.memory.Instance); err != nil {
		return err
	}
	c.reality.network, err = fabric.Start(ctx, fabric.Options{
		Instance: c.memory.Instance, Azure: c.azure.emulator, Metadata: c.azure.metadataOf, Log: slog.Default(),
	})
	if err != nil {
		return err
	}
	socket := c.egressSocket()
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return err
	}
	c.reality.egress, err = net.Listen("unix", socket)
	return err
}

// makeImages makes the images that machines have from the start, once for a user.
func makeImages(ctx context.Context, nameServer string) ([]string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	dir := filepath.Join(user, "kaz", "images")
	own, err := image.Make(ctx, dir, goCommand)
	if err != nil {
		return nil, err
	}
	dns, err := image.Wrap(dir, image.CoreDNS, nameServer)
	return []string{own, dns}, err
}

// startNameServer lets the cluster have its own.
func (c *cluster) startNameServer(ctx context.Context, binaries controlplane.Binaries) error {
	return c.apply(ctx, binaries, coredns)
}

// apply gives manifests to the cluster as a person would.
func (c *cluster) apply(ctx context.Context, binaries controlplane.Binaries, manifests []byte) error {
	apply := exec.CommandContext(ctx, binaries[controlplane.Kubectl], "--kubeconfig", c.plane.Kubeconfig, "apply", "--server-side", "--field-manager=kaz", "--force-conflicts", "-f", "-")
	apply.Stdin, apply.Env = bytes.NewReader(manifests), []string{"HOME=" + c.group.Dir()}
	if out, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// startFleet boots a machine for each that Azure has, from now on.
func (c *cluster) startFleet(ctx context.Context, binaries controlplane.Binaries) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	ctx, c.stopTasks = context.WithCancel(ctx)
	api, err := c.reality.network.Listen(ctx, c.vnet(), "tcp", inside().String())
	if err != nil {
		return fmt.Errorf("the API server inside the virtual network: %w", err)
	}
	log := slog.Default()
	c.tasks.Go(func() error { return vm.Relay(ctx, api, hostOf(c.plane.Server), log) })
	c.tasks.Go(func() error {
		return vm.Egress{Log: log, Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return c.reality.network.Dial(ctx, c.vnet(), "tcp", address)
		}}.Serve(ctx, c.reality.egress)
	})
	if err := c.serveNames(ctx); err != nil {
		return err
	}
	if err := publishAPIServer(ctx, client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)); err != nil {
		return err
	}
	describe, err := c.describer(binaries)
	if err != nil {
		return err
	}
	c.reality.fleet = &fleet{
		group: c.group, program: c.Program, dir: c.path(machinesDir), network: c.reality.network, instance: c.memory.Instance,
		describe: describe, log: log, keepers: map[string]*keeper{},
	}
	c.tasks.Go(func() error { return c.tellNetwork(ctx) })
	changed := c.azure.machineChanges(ctx)
	c.tasks.Go(func() error {
		defer c.reality.fleet.wait()
		for {
			machines, err := c.azure.machines(ctx)
			if err == nil {
				c.reality.fleet.set(ctx, machines)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
			}
		}
	})
	return nil
}

// describer says of machines what they have in common, and issues each its identity.
func (c *cluster) describer(binaries controlplane.Binaries) (func(machine) (vm.Spec, error), error) {
	proxy, err := c.plane.IssueInsideKubeconfig(controlplane.KubeProxy, "system:kube-proxy")
	if err != nil {
		return nil, err
	}
	programs, err := vm.HostPrograms()
	if err != nil {
		return nil, err
	}
	programs[vm.Kubelet], programs[vm.KubeProxy], programs[vm.NodeManager] = binaries[controlplane.Kubelet], binaries[controlplane.KubeProxy], c.Program
	manager := ""
	if !c.without(CloudNodeManager) {
		if manager, err = c.plane.IssueInsideKubeconfig(CloudNodeManager, "system:cloud-node-manager", "system:masters"); err != nil {
			return nil, err
		}
	}
	site := c.memory.Site
	return func(m machine) (vm.Spec, error) {
		kubelet, err := c.plane.IssueInsideKubeconfig("kubelet-"+m.Name, "system:node:"+m.Name, "system:nodes")
		return vm.Spec{
			PodRanges: site.podRanges(), ServiceRanges: site.serviceRanges(), Network: site.networkRanges(), DNS: nameServer(),
			Search: names.Domain, AzureCA: c.azure.Info().CAFile, Tenant: c.memory.Site.Tenant,
			ClientCA: c.plane.CAFile, Kubelet: kubelet, Proxy: proxy, NodeManager: manager, WaitRoutes: !c.without(CloudControllerManager),
			Labels:   m.labels(site.group()),
			Programs: programs, Images: c.reality.images, PauseImage: image.Pause,
		}, err
	}, nil
}

// endpointSlices is what publishing the API server takes.
type endpointSlices interface {
	Create(ctx context.Context, s *discoveryv1.EndpointSlice, o metav1.CreateOptions) (*discoveryv1.EndpointSlice, error)
	Update(ctx context.Context, s *discoveryv1.EndpointSlice, o metav1.UpdateOptions) (*discoveryv1.EndpointSlice, error)
}

// publishAPIServer leads the kubernetes Service to the API server: it cannot do so
// itself, for it listens on loopback.
func publishAPIServer(ctx context.Context, client endpointSlices) error {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{inside().Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(inside().Port())), Protocol: new(corev1.ProtocolTCP)}},
	}
	_, err := client.Create(ctx, s, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = client.Update(ctx, s, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("lead the kubernetes Service to the API server: %w", err)
	}
	return nil
}

// stopReality ends what startNetwork began.
func (c *cluster) stopReality(ctx context.Context) error {
	var problems []error
	if c.reality.egress != nil {
		if err := c.reality.egress.Close(); !errors.Is(err, net.ErrClosed) {
			problems = append(problems, err)
		}
	}
	if c.reality.network != nil {
		problems = append(problems, c.reality.network.Close())
	}
	if c.reality.held != nil {
		problems = append(problems, sweepInstance(ctx, c.memory.Instance, c.reality.held))
	}
	return errors.Join(problems...)
}

// Kinds of nodes.
const (
	NodesReal   = "real"
	NodesHollow = "hollow"
)

// chooseNodes decides which kind of nodes there will be, and says why. A cluster keeps
// the kind that it has.
func (c *cluster) chooseNodes(ctx context.Context) error {
	defer func() { c.memory.NodesKind = c.NodesKind }()
	if c.memory.Instance == "" {
		c.memory.Instance = newInstance()
	}
	kept := c.memory.NodesKind
	if kept == "" && len(c.memory.Site.ScaleSets) > 0 {
		kept = NodesHollow // there was no choice then
	}
	wanted, err := c.wantedNodes(kept)
	if err != nil {
		return err
	}
	if wanted == NodesHollow {
		c.NodesKind = NodesHollow
		return nil
	}
	if err := sweep(ctx, c.memory); err != nil {
		return err
	}
	problems := vm.Check(c.path(machinesDir), cmp.Or(c.Nodes, defaultNodes))
	if err := c.sweepAbandoned(ctx); err != nil {
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		if err := netns.Check(ctx, c.memory.Instance, ""); err != nil {
			problems = append(problems, err)
		}
	}
	switch {
	case len(problems) == 0:
		c.NodesKind = NodesReal
		c.progress.say("nodes are real: namespaces of this machine, each with a kubelet and a containerd")
	case len(c.Images) > 0:
		return fmt.Errorf("--image: only real nodes run images, and there can be none: %w", errors.Join(problems...))
	case wanted == NodesReal:
		return fmt.Errorf("real nodes: %w\nin another directory, --nodes-kind hollow simulates nodes", errors.Join(problems...))
	default:
		c.NodesKind = NodesHollow
		c.progress.say("nodes are hollow, which is simulated, because for real ones")
		for _, p := range problems {
			c.progress.say("  %v", p)
		}
	}
	return nil
}

// sweepAbandoned makes room for real nodes.
func (c *cluster) sweepAbandoned(ctx context.Context) error {
	abandoned, err := SweepAbandoned(ctx)
	for _, name := range abandoned {
		c.progress.say("removed what is left of %s, a kaz that was killed", name)
	}
	return err
}

// wantedNodes is the kind of nodes that a cluster must have that has nodes of the kind
// kept, "" for the one that is possible.
func (c *cluster) wantedNodes(kept string) (string, error) {
	if kept != "" && c.NodesKind != "" && c.NodesKind != kept {
		return "", fmt.Errorf("--nodes-kind %s: the cluster in %s has %s nodes, and that cannot be changed", c.NodesKind, c.group.Dir(), kept)
	}
	wanted := cmp.Or(c.NodesKind, kept)
	if len(c.Images) == 0 {
		return wanted, nil
	}
	if wanted == NodesHollow {
		return "", fmt.Errorf("--image: the cluster in %s has %s nodes, which are simulated and run no images; allowed with real nodes, which a cluster in another --dir can have", c.group.Dir(), kept)
	}
	return NodesReal, nil
}

func (c *cluster) real() bool { return c.NodesKind == NodesReal }

// leftOut are the programs of which a cluster with such nodes has none.
func (c *cluster) leftOut() []string {
	if c.real() {
		return []string{controlplane.KWOK}
	}
	return []string{controlplane.Kubelet, controlplane.KubeProxy, controlplane.CoreDNS}
}
