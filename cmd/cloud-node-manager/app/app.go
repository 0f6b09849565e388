// Package app composes the cloud-node-manager: flags to options, and the node
// manager around what they name. Layer L4; it is a package of its own so that kaz can
// run it too.
package app

import (
	"context"

	"github.com/spf13/cobra"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go's metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version metric

	"kaz/cmd/internal/commandline"
)

// name is the program's.
const name = "cloud-node-manager"

// Command is the program's command line. lookup reads the environment.
func Command(lookup func(string) (string, bool)) *cobra.Command {
	o := newOptions()
	sets := o.flags()
	// The name that it has in the cloud-controller-manager of before.
	global := sets.FlagSet("global")
	global.StringVar(&o.logging.Format, "log-format", o.logging.Format, "The same as --logging-format.")
	global.Lookup("log-format").Hidden = true
	return commandline.Program{
		Name:  name,
		Short: "Tell Kubernetes of the machine under a node",
		Long: `The cloud-node-manager runs on each node. It gives a new node its provider id, labels
and addresses from the machine's own metadata service, takes off the taint that keeps
work away until then, and keeps the addresses right.`,
		Example: `  # as a pod on each node
  NODE_NAME=node-1 cloud-node-manager --node-name=node-1 --wait-routes=true

  # with Azure's API in place of the machine's metadata
  cloud-node-manager --node-name=node-1 --use-instance-metadata=false --cloud-config=/etc/kubernetes/azure.json`,
		Flags: sets, Logging: o.logging, Validate: o.validate,
		Run: func(ctx context.Context) error {
			return asService(ctx, o, func(ctx context.Context) error { return run(ctx, o, lookup) })
		},
	}.Command()
}
