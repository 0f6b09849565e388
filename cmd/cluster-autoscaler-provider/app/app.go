// Package app composes the cluster-autoscaler-provider from its flags. Layer L4.
package app

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"kaz/internal/component"
)

const name = "cluster-autoscaler-provider"

// Command returns the command of the program. lookup looks up environment variables.
func Command(lookup func(string) (string, bool)) *cobra.Command {
	o := newOptions()
	command := component.Program{
		Name:  name,
		Short: "Serve Azure's scale sets as the node groups of cluster-autoscaler",
		Long: `The cluster-autoscaler-provider makes scale sets of a resource group the node groups of an unmodified
cluster-autoscaler, which reaches it with --cloud-provider=externalgrpc.

The command "cluster-autoscaler-provider check" shows which scale sets are node groups, and why others are not. It changes nothing.`,
		Example: `  # beside cluster-autoscaler in one pod
  cluster-autoscaler-provider --cloud-config=/etc/kubernetes/azure.json --nodes=1:10:pool

  # all scale sets with a tag; their tags min and max are their limits
  cluster-autoscaler-provider --node-group-auto-discovery=label:cluster-autoscaler-enabled=true

  # what becomes of each scale set, and why
  cluster-autoscaler-provider check --node-group-auto-discovery=label:cluster-autoscaler-enabled=true`,
		Flags: o.flags(), Logging: o.logging, Validate: o.validate,
		Run: func(ctx context.Context, log *slog.Logger) error { return run(ctx, o, lookup, log) },
	}.Command()
	command.AddCommand(checkCommand(lookup))
	return command
}
