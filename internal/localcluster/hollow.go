package localcluster

import (
	"context"
	"log/slog"
	"slices"

	"kaz/internal/localazure/inventory"
	"kaz/internal/localazure/server"
	"kaz/internal/localcluster/controlplane"
	"kaz/internal/localcluster/hollow"
)

// hollowNodes starts simulated nodes.
type hollowNodes struct{ *cluster }

// unused returns the programs that simulated nodes do not need.
func (n hollowNodes) unused() []string {
	return slices.Concat([]string{controlplane.Kubelet, controlplane.KubeProxy, controlplane.CoreDNS},
		controlplane.MachinePrograms(), controlplane.StoragePrograms())
}

func (n hollowNodes) build(ctx context.Context) (controlplane.Binaries, error) {
	return n.buildPrograms(ctx, "control plane programs", n.unused())
}

// later has nothing to do: all that simulated nodes need is there when they are ready.
func (n hollowNodes) later(context.Context) {}

func (n hollowNodes) prepareAzure(*server.Options) {}

func (n hollowNodes) steps() []step {
	return append([]step{
		n.resourcesStep(), n.controlPlaneStep(n.unused()), {"nodes", n.register}, n.managerStep(),
		{CloudNodeManager, n.components().startCloudNodeManager},
		n.nodesReady(),
	}, n.gatewaySteps()...)
}

// register begins to register a Node for each machine.
func (n hollowNodes) register(ctx context.Context) error {
	client, err := newClient(n.kubeconfig())
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

func (n hollowNodes) describe(_ context.Context, s *Status) error {
	n.describeSite(s)
	return nil
}

// stop has nothing to do: hollow nodes have no network.
func (n hollowNodes) stop(context.Context) error { return nil }
