package localcluster

import (
	"context"
	_ "embed" // the classes of the drivers
	"strings"

	"kaz/internal/host/process"
	"kaz/internal/localazure/server"
	"kaz/internal/localazure/share"
	"kaz/internal/localcluster/controlplane"
	"kaz/internal/localcluster/prebuilt"
	"kaz/internal/localcluster/realnodes"
)

// Components of storage: the names of the CSI drivers, and of their processes with the controllers.
const (
	DiskDriver = "azuredisk-csi-driver"
	FileDriver = "azurefile-csi-driver"
)

//go:embed storage_disks.yaml
var diskClasses []byte

//go:embed storage_shares.yaml
var shareClasses []byte

// driver is a CSI driver. Its controller runs beside the API server, and its node service in each machine.
type driver struct {
	component string
	kind      string   // the end of the names of the programs beside it
	beside    []string // programs that connect it with the API server
	classes   []byte
}

// drivers returns the drivers that the cluster runs.
func (n *realNodes) drivers() []driver {
	var all []driver
	if n.disks {
		all = append(all, driver{
			DiskDriver, "disk", []string{controlplane.Provisioner, controlplane.Attacher, controlplane.Resizer, controlplane.Snapshotter},
			diskClasses,
		})
	}
	if n.shares {
		all = append(all, driver{
			FileDriver, "file", []string{controlplane.Provisioner, controlplane.Resizer, controlplane.Snapshotter}, shareClasses,
		})
	}
	return all
}

// chooseStorage decides whether the cluster has disks and file shares, and reports the reason if this machine cannot have them.
func (n *realNodes) chooseStorage() {
	n.serves = n.possible("pods can have no file shares", share.Check())
	n.shares = n.serves && !n.without(FileDriver)
	n.disks = !n.without(DiskDriver) && n.possible("pods can have no disks", realnodes.CheckDisks())
	if n.shares {
		n.possible("pods cannot mount file shares", share.CheckClients())
	}
}

// possible reports whether err is nil, and says what is impossible otherwise.
func (n *realNodes) possible(otherwise string, err error) bool {
	if err != nil {
		n.progress.say("%s: %s", otherwise, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return err == nil
}

// prepareAzure has file shares served over SMB and NFS.
func (n *realNodes) prepareAzure(o *server.Options) {
	if n.serves {
		o.SMBAddress, o.NFSAddress = "127.0.0.1:0", "127.0.0.1:0"
	}
}

// startStorage starts the controllers of the drivers, and the programs that connect them with the API server.
func (n *realNodes) startStorage(ctx context.Context) error {
	all := n.drivers()
	if len(all) == 0 {
		return nil
	}
	if err := n.applySnapshots(ctx); err != nil {
		return err
	}
	for _, d := range all {
		if err := n.startDriver(ctx, d); err != nil {
			return err
		}
	}
	return n.startBeside(controlplane.SnapshotController, controlplane.SnapshotController)
}

func (n *realNodes) startDriver(ctx context.Context, d driver) error {
	if err := n.apply(ctx, d.classes); err != nil {
		return err
	}
	kubeconfig, err := n.controlPlane.IssueKubeconfig(d.component, "kaz:"+d.component, "system:masters")
	if err != nil {
		return err
	}
	socket := n.path("csi-" + d.kind + ".sock")
	if _, err := n.group.Start(process.Spec{
		Name: d.component, Path: n.Program,
		// This machine cannot resolve the names of storage accounts. The proxy leads to them.
		Env: append(n.components().environment(), "HTTPS_PROXY="+n.azure.Info().Proxy),
		Args: []string{
			d.component, "--mode=controller", "--endpoint=unix://" + socket, "--cloud-config=" + n.path(cloudConfigFile),
			"--kubeconfig=" + kubeconfig, "--kube-api-qps=50", "--kube-api-burst=100",
		},
	}); err != nil {
		return err
	}
	for _, program := range d.beside {
		args := append([]string{"--csi-address=" + socket}, sidecarFlags(program)...)
		if err := n.startBeside(program, program+"-"+d.kind, args...); err != nil {
			return err
		}
	}
	return nil
}

// sidecarFlags returns the flags of a program beside a driver. The timeout is for a request to the driver: Azure may need minutes.
func sidecarFlags(program string) []string {
	return map[string][]string{
		controlplane.Provisioner: {
			"--timeout=30s", "--extra-create-metadata", "--strict-topology", "--feature-gates=Topology=true", "--default-fstype=ext4",
		},
		controlplane.Attacher:    {"--timeout=600s", "--default-fstype=ext4"},
		controlplane.Resizer:     {"--timeout=240s", "--handle-volume-inuse-error=false"},
		controlplane.Snapshotter: {"--timeout=600s", "--extra-create-metadata"},
	}[program]
}

// startBeside starts a program that connects a driver with the API server. It waits for the driver's socket by itself.
func (n *realNodes) startBeside(program, name string, args ...string) error {
	kubeconfig, err := n.controlPlane.IssueKubeconfig(name, "kaz:"+name, "system:masters")
	if err != nil {
		return err
	}
	_, err = n.group.Start(process.Spec{
		Name: name, Path: n.binaries[program],
		Args: append([]string{"--kubeconfig=" + kubeconfig, "--kube-api-qps=50", "--kube-api-burst=100", "--v=2"}, args...),
		Env:  []string{"HOME=" + n.group.Dir(), "PATH=/usr/local/bin:/usr/bin:/bin"},
	})
	return err
}

// applySnapshots creates the definitions of snapshots.
func (n *realNodes) applySnapshots(ctx context.Context) error {
	definitions, err := controlplane.SnapshotCRDs(ctx, controlplane.BuildOptions{Prebuilt: prebuilt.Beside(n.Program)})
	if err != nil {
		return err
	}
	if err := n.apply(ctx, definitions); err != nil {
		return err
	}
	return n.kubectl(ctx, nil, "wait", "--for=condition=Established", "--timeout=1m",
		"crd/volumesnapshotclasses.snapshot.storage.k8s.io", "crd/volumesnapshots.snapshot.storage.k8s.io",
		"crd/volumesnapshotcontents.snapshot.storage.k8s.io")
}
