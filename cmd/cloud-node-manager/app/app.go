// Package app composes the cloud-node-manager from its flags. Layer L4. It is a package of its own so
// that the kaz command can run it too.
package app

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go's metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version metric

	"kaz/internal/component"
)

// name is the program's name.
const name = "cloud-node-manager"

// Command returns the program's command. lookup reads the environment.
func Command(lookup func(string) (string, bool)) *cobra.Command {
	o := newOptions()
	sets := o.flags()
	// An alias that users of the existing cloud-node-manager pass.
	global := sets.FlagSet("global")
	global.StringVar(&o.logging.Format, "log-format", o.logging.Format, "The same as --logging-format.")
	global.Lookup("log-format").Hidden = true
	return component.Program{
		Name:  name,
		Short: "Initialize and update Nodes from Azure's instance metadata",
		Long: `The cloud-node-manager runs on each node. It gives a new node its provider id, labels
and addresses from the machine's metadata service, then removes the taint that keeps
pods away. Afterwards it keeps the addresses up to date.`,
		Example: `  # as a pod on each node
  NODE_NAME=node-1 cloud-node-manager --node-name=node-1 --wait-routes=true

  # with the Azure API instead of the metadata service
  cloud-node-manager --node-name=node-1 --use-instance-metadata=false --cloud-config=/etc/kubernetes/azure.json`,
		Flags: sets, Logging: o.logging, Validate: o.validate,
		Run: func(ctx context.Context, log *slog.Logger) error {
			return asService(ctx, o, func(ctx context.Context) error { return run(ctx, o, lookup, log) })
		},
	}.Command()
}
