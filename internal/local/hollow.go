package local

import (
	"context"
	"log/slog"
	"slices"

	"kaz/internal/local/azureserver"
	"kaz/internal/local/controlplane"
	"kaz/internal/local/hollow"
	"kaz/internal/local/inventory"
)

// hollowNodes starts simulated nodes.
type hollowNodes struct{ *cluster }

func (n hollowNodes) unused() []string {
	return slices.Concat([]string{controlplane.Kubelet, controlplane.KubeProxy, controlplane.CoreDNS},
		controlplane.MachinePrograms(), controlplane.StoragePrograms())
}

func (n hollowNodes) prepareAzure(*azureserver.Options) {}

func (n hollowNodes) beforeControlPlane() []step { return nil }

func (n hollowNodes) afterControlPlane(manager step) []step {
	return []step{
		{"nodes", n.register}, manager,
		{CloudNodeManager, n.components().startCloudNodeManager},
		{"nodes ready", n.waitNodes},
	}
}

// register begins to register a Node for each machine.
func (n hollowNodes) register(ctx context.Context) error {
	client, err := newClient(n.controlPlane.Kubeconfig)
	if err != nil {
		return err
	}
	ctx, n.stopTasks = context.WithCancel(ctx)
	r := hollow.Registrar{
		Client: client, Group: n.record.Site.Group(), Machines: n.machines, Changed: inventory.Changes(ctx, n.azure.Emulator()),
		Listed: n.components().writeNodeList, Log: slog.Default(),
	}
	n.tasks.Go(func() error { return r.Run(ctx) })
	return nil
}

// stop has nothing to do: hollow nodes have no network.
func (n hollowNodes) stop(context.Context) error { return nil }
