// Package app composes the azuredisk-csi-driver from its flags. Layer L4.
package app

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"kaz/cmd/internal/driver"
	"kaz/internal/component"
)

const name = "azuredisk-csi-driver"

// knownMetrics is the prefix of the metrics of the driver that this one replaces.
const knownMetrics = "azuredisk_csi_driver"

// Command returns the command of the program. lookup looks up environment variables.
func Command(lookup func(string) (string, bool)) *cobra.Command {
	o := newOptions()
	return component.Program{
		Name:  name,
		Short: "Create Azure disks, attach them to machines and mount them",
		Long: `The azuredisk-csi-driver is the CSI driver disk.csi.azure.com. Its controller creates managed disks and
snapshots and attaches disks to machines. Its node service, on each node, formats and mounts them.`,
		Example: `  # the controller, beside external-provisioner, external-attacher, external-resizer and external-snapshotter
  azuredisk-csi-driver --mode=controller --endpoint=unix:///csi/csi.sock

  # the node service, beside node-driver-registrar
  azuredisk-csi-driver --mode=node --endpoint=unix:///csi/csi.sock --nodeid=$(KUBE_NODE_NAME)`,
		Flags: o.flags(), Logging: o.Logging, Validate: o.validate,
		Run: func(ctx context.Context, log *slog.Logger) error { return run(ctx, o, lookup, log) },
	}.Command()
}

// run serves the driver until ctx ends.
func run(ctx context.Context, o *options, lookup func(string) (string, bool), log *slog.Logger) error {
	p, err := driver.Open(name, &o.Options, lookup, log)
	if err != nil {
		return err
	}
	if o.stopHook {
		return o.awaitDetachment(ctx, p)
	}
	return p.Run(ctx, knownMetrics, o.services)
}
