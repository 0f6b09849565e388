// Package app composes the azurefile-csi-driver from its flags. Layer L4.
package app

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"kaz/cmd/internal/driver"
	"kaz/internal/component"
)

const name = "azurefile-csi-driver"

// knownMetrics is the prefix of the metrics of the driver that this one replaces.
const knownMetrics = "azurefile_csi_driver"

// Command returns the command of the program. lookup looks up environment variables.
func Command(lookup func(string) (string, bool)) *cobra.Command {
	o := newOptions()
	return component.Program{
		Name:  name,
		Short: "Create shares of Azure Files and mount them by SMB and NFS",
		Long: `The azurefile-csi-driver is the CSI driver file.csi.azure.com. Its controller creates storage accounts, shares and
snapshots. Its node service, on each node, mounts shares by SMB and NFS.`,
		Example: `  # the controller, beside external-provisioner, external-resizer and external-snapshotter
  azurefile-csi-driver --mode=controller --endpoint=unix:///csi/csi.sock

  # the node service, beside node-driver-registrar
  azurefile-csi-driver --mode=node --endpoint=unix:///csi/csi.sock --nodeid=$(KUBE_NODE_NAME)`,
		Flags: o.flags(), Logging: o.Logging, Validate: o.validate,
		Run: func(ctx context.Context, log *slog.Logger) error {
			p, err := driver.Open(name, &o.Options, lookup, log)
			if err != nil {
				return err
			}
			return p.Run(ctx, knownMetrics, o.services)
		},
	}.Command()
}
