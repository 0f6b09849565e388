package local

import (
	"context"
	_ "embed" // the manifests of storage
	"fmt"
	"os/exec"

	"kaz/internal/local/azureserver"
	"kaz/internal/local/controlplane"
	"kaz/internal/local/process"
	"kaz/internal/local/realnodes"
	"kaz/internal/local/share"
)

// DiskDriver is the name of the disk driver, and of its process with the controller.
const DiskDriver = "azuredisk-csi-driver"

//go:embed storage.yaml
var storageClasses []byte

// chooseDisks decides whether the cluster has disks, and reports the reason if this machine cannot have them.
func (n *realNodes) chooseDisks() {
	if n.without(DiskDriver) {
		return
	}
	err := realnodes.CheckDisks()
	if err != nil {
		n.progress.say("pods can have no disks: %v", err)
	}
	n.disks = err == nil
}

// chooseShares decides whether file shares are served over SMB and NFS, and reports the reason if this machine cannot serve them.
func (c *cluster) chooseShares(o *azureserver.Options) {
	if err := share.Check(); err != nil {
		c.progress.say("pods can have no file shares: %v", err)
		return
	}
	o.SMBAddress, o.NFSAddress = "127.0.0.1:0", "127.0.0.1:0"
}

// startStorage starts the controller of the disk driver, and the programs that connect it with the API server.
func (n *realNodes) startStorage(ctx context.Context) error {
	if !n.disks {
		return nil
	}
	if err := n.applyStorage(ctx); err != nil {
		return err
	}
	socket := n.path("csi.sock")
	kubeconfig, err := n.controlPlane.IssueKubeconfig(DiskDriver, "kaz:"+DiskDriver, "system:masters")
	if err != nil {
		return err
	}
	if _, err := n.group.Start(process.Spec{
		Name: DiskDriver, Path: n.Program, Env: n.components().environment(),
		Args: []string{
			DiskDriver, "--mode=controller", "--endpoint=unix://" + socket, "--cloud-config=" + n.path(cloudConfigFile),
			"--kubeconfig=" + kubeconfig, "--kube-api-qps=50", "--kube-api-burst=100",
		},
	}); err != nil {
		return err
	}
	for _, name := range controlplane.StoragePrograms() {
		if err := n.startBeside(name, socket); err != nil {
			return err
		}
	}
	return nil
}

// startBeside starts a program beside the disk driver. It waits for the driver's socket by itself.
func (n *realNodes) startBeside(name, socket string) error {
	kubeconfig, err := n.controlPlane.IssueKubeconfig(name, "kaz:"+name, "system:masters")
	if err != nil {
		return err
	}
	args := []string{"--kubeconfig=" + kubeconfig, "--kube-api-qps=50", "--kube-api-burst=100", "--v=2"}
	if name != controlplane.SnapshotController {
		args = append(args, "--csi-address="+socket, "--timeout="+storageTimeouts()[name])
	}
	switch name {
	case controlplane.Provisioner:
		args = append(args, "--extra-create-metadata", "--strict-topology", "--feature-gates=Topology=true", "--default-fstype=ext4")
	case controlplane.Attacher:
		args = append(args, "--default-fstype=ext4")
	case controlplane.Resizer:
		args = append(args, "--handle-volume-inuse-error=false")
	case controlplane.Snapshotter:
		args = append(args, "--extra-create-metadata")
	}
	_, err = n.group.Start(process.Spec{
		Name: name, Path: n.binaries[name], Args: args, Env: []string{"HOME=" + n.group.Dir(), "PATH=/usr/local/bin:/usr/bin:/bin"},
	})
	return err
}

// storageTimeouts returns the longest time of a request to the driver, by program. Azure may need minutes to attach.
func storageTimeouts() map[string]string {
	return map[string]string{
		controlplane.Provisioner: "30s", controlplane.Attacher: "600s", controlplane.Resizer: "240s", controlplane.Snapshotter: "600s",
	}
}

// applyStorage creates the definitions of snapshots, and then the classes.
func (n *realNodes) applyStorage(ctx context.Context) error {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("definitions of snapshots: %w", err)
	}
	definitions, err := controlplane.SnapshotCRDs(ctx, goCommand)
	if err != nil {
		return err
	}
	if err := n.apply(ctx, definitions); err != nil {
		return err
	}
	if err := n.kubectl(ctx, nil, "wait", "--for=condition=Established", "--timeout=1m",
		"crd/volumesnapshotclasses.snapshot.storage.k8s.io", "crd/volumesnapshots.snapshot.storage.k8s.io",
		"crd/volumesnapshotcontents.snapshot.storage.k8s.io"); err != nil {
		return err
	}
	return n.apply(ctx, storageClasses)
}
