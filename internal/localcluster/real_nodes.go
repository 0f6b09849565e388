package localcluster

import (
	"bytes"
	"context"
	_ "embed" // manifests
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kaz/internal/localazure/client"
	"kaz/internal/localazure/inventory"
	"kaz/internal/localazure/plane/names"
	"kaz/internal/localcluster/controlplane"
	"kaz/internal/localcluster/example"
	"kaz/internal/localcluster/image"
	vm "kaz/internal/localcluster/machine"
	"kaz/internal/localcluster/prebuilt"
	"kaz/internal/localcluster/realnodes"
)

// nameServer is the address of the cluster's name server. coredns.yaml has the same address.
func nameServer() netip.Addr { return netip.MustParseAddr("10.96.0.10") }

//go:embed apiserver.yaml
var apiServer []byte // with the address of realnodes.APIServer

//go:embed coredns.yaml
var coredns []byte

// realNodes starts nodes that are namespaces of this machine.
type realNodes struct {
	*cluster
	images []string
	// disks and shares say whether the cluster has disks and file shares; serves, whether the local Azure serves shares over SMB and NFS.
	disks, shares, serves bool
	// storageLater says that the programs beside the drivers are not built yet. They are built while the cluster runs.
	storageLater bool
	network      *realnodes.Nodes
}

// unused returns the programs that real nodes do not need for the first answer of a Service.
func (n *realNodes) unused() []string {
	return slices.Concat(controlplane.MachinePrograms(), []string{controlplane.KWOK}, controlplane.StoragePrograms())
}

// unusedByStorage returns the programs that are not beside a driver.
func unusedByStorage() []string {
	return slices.DeleteFunc(controlplane.Programs(), func(name string) bool {
		return slices.Contains(controlplane.StoragePrograms(), name)
	})
}

// build builds what the first answer of a Service needs. It takes the programs beside the drivers if they are in the cache.
func (n *realNodes) build(ctx context.Context) (controlplane.Binaries, error) {
	built, err := n.buildPrograms(ctx, "control plane programs", n.unused())
	if err != nil || len(n.drivers()) == 0 {
		return built, err
	}
	beside, complete, err := controlplane.Find(ctx, controlplane.BuildOptions{
		Without: unusedByStorage(), Prebuilt: prebuilt.Beside(n.Program),
	})
	maps.Copy(built, beside)
	n.storageLater = !complete
	return built, err
}

func (n *realNodes) steps() []step {
	first := []step{
		n.resourcesStep(), {"network", n.startNetwork}, n.controlPlaneStep(n.unused()), {"machines", n.startMachines}, n.managerStep(),
	}
	if !n.storageLater {
		first = append(first, step{"storage", n.startStorage})
	}
	first = append(first, n.gatewaySteps()...)
	return append(first, step{"name server", n.startNameServer}, n.nodesReady(), step{"example", n.startExample})
}

// later builds the programs beside the drivers and starts storage, if the start left that out. The cluster runs without storage
// if it fails.
func (n *realNodes) later(ctx context.Context) {
	if !n.storageLater {
		return
	}
	n.progress.say("the cluster is usable; disks and file shares for pods follow")
	err := n.buildStorage(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		n.progress.say("storage: %v; the cluster runs without disks and file shares, and the next start tries again", err)
	default:
		n.progress.say("disks and file shares are ready")
	}
}

func (n *realNodes) buildStorage(ctx context.Context) error {
	built, err := n.buildPrograms(ctx, "programs of storage", unusedByStorage())
	if err != nil {
		return err
	}
	maps.Copy(n.binaries, built)
	if err := n.startStorage(ctx); err != nil {
		return err
	}
	if !n.disks || n.example == "" {
		return nil
	}
	return n.apply(ctx, example.Disk)
}

func (n *realNodes) describe(ctx context.Context, s *Status) error {
	n.describeSite(s)
	return n.describeMachines(ctx, s)
}

// startNetwork prepares the images of the machines and starts their network.
func (n *realNodes) startNetwork(ctx context.Context) error {
	own, err := n.makeImages(ctx)
	if err != nil {
		return err
	}
	n.images = append(own, n.Images...)
	site := n.record.Site
	n.network, err = realnodes.Start(ctx, realnodes.Config{
		Instance: n.record.Instance, Azure: n.azure, VNet: site.Network("virtualNetworks", site.VNet), Dir: n.group.Dir(),
		Program: n.Program, Processes: n.group, Disks: n.disks, Log: slog.Default(),
	})
	return err
}

// makeImages makes the images that each machine imports at boot, once for each user.
func (n *realNodes) makeImages(ctx context.Context) ([]string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	own, err := image.Make(ctx, image.Options{Prebuilt: prebuilt.Beside(n.Program)})
	if err != nil {
		return nil, err
	}
	dns, err := image.Wrap(filepath.Join(user, "kaz", "images"), image.CoreDNS, n.binaries[controlplane.CoreDNS])
	return []string{own, dns}, err
}

// startMachines connects the virtual network with the API server, and begins to boot the machines of Azure.
func (n *realNodes) startMachines(ctx context.Context) error {
	ctx, n.stopTasks = context.WithCancel(ctx)
	if err := n.network.Connect(ctx, n.tasks, client.HostOf(n.controlPlane.Server)); err != nil {
		return err
	}
	if err := n.apply(ctx, apiServer); err != nil {
		return fmt.Errorf("publish the API server as the endpoint of the kubernetes Service: %w", err)
	}
	describe, err := n.describer(ctx)
	if err != nil {
		return err
	}
	if len(n.gatewaySteps()) > 0 {
		if err := n.serveAnswers(ctx); err != nil {
			return err
		}
	}
	n.tasks.Go(func() error { return n.writeNetworkStatus(ctx, n.network) })
	n.kubeletsSince = time.Now()
	n.network.Boot(ctx, n.tasks, describe)
	return nil
}

// describer returns a function that returns what all machines share, and issues the identity of a machine's kubelet.
func (n *realNodes) describer(ctx context.Context) (func(inventory.Machine) (vm.Spec, error), error) {
	proxy, err := n.controlPlane.IssueInsideKubeconfig(controlplane.KubeProxy, "system:kube-proxy")
	if err != nil {
		return nil, err
	}
	programs, err := vm.HostPrograms()
	if err != nil {
		return nil, err
	}
	programs[vm.Kubelet], programs[vm.KubeProxy] = n.binaries[controlplane.Kubelet], n.binaries[controlplane.KubeProxy]
	programs[vm.NodeManager] = n.Program
	manager := ""
	if !n.without(CloudNodeManager) {
		if manager, err = n.controlPlane.IssueInsideKubeconfig(CloudNodeManager, "system:cloud-node-manager",
			"system:masters"); err != nil {
			return nil, err
		}
	}
	files := ""
	if n.shares {
		if files, err = n.controlPlane.IssueInsideKubeconfig(FileDriver+"-node", "kaz:"+FileDriver+"-node", "system:masters"); err != nil {
			return nil, err
		}
	}
	client, err := newClient(n.kubeconfig())
	if err != nil {
		return nil, err
	}
	site := n.record.Site
	return func(m inventory.Machine) (vm.Spec, error) {
		kubelet, err := n.controlPlane.IssueInsideKubeconfig("kubelet-"+m.Name, "system:node:"+m.Name, "system:nodes")
		return vm.Spec{
			PodRanges: site.PodRanges(), ServiceRanges: site.ServiceRanges(), Network: site.NetworkRanges(), DNS: nameServer(),
			Search: names.Domain, AzureCA: n.azure.Info().CAFile, Tenant: site.Tenant,
			ClientCA: n.controlPlane.CAFile, Kubelet: kubelet, Proxy: proxy, NodeManager: manager,
			WaitRoutes: !n.without(CloudControllerManager), Labels: m.NodeLabels(site.Group()),
			VCPUs: m.VCPUs, Memory: m.Memory,
			Disks: n.disks, DataDisks: m.DataDisks, Shares: files,
			Programs: programs, Images: slices.Concat(n.images, image.Kept(n.group.Dir())), PauseImage: image.Pause,
			NodeRanges: nodeRanges(ctx, client, m.Name),
		}, err
	}, nil
}

// nodeRanges returns the ranges of a Node's pods, none if there is no such Node yet. The kubelet finds out for itself what is not known.
func nodeRanges(ctx context.Context, client kubernetes.Interface, name string) []string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return node.Spec.PodCIDRs
}

// startNameServer applies the name server, and the pods of the example with it: they wait for the nodes together.
func (n *realNodes) startNameServer(ctx context.Context) error {
	return n.apply(ctx, bytes.Join(append([][]byte{coredns}, n.exampleManifests()...), []byte("\n---\n")))
}

func (n *realNodes) stop(ctx context.Context) error {
	if n.network == nil {
		return nil
	}
	return n.network.Stop(ctx)
}
