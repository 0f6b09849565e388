// Package app composes the health-probe-proxy: flags to options, and the proxy around
// what they name. Layer L4.
package app

import (
	"context"

	"github.com/spf13/cobra"

	"kaz/cmd/internal/commandline"
)

// name is the program's.
const name = "health-probe-proxy"

// Command is the program's command line.
func Command() *cobra.Command {
	o := newOptions()
	return commandline.Program{
		Name:  name,
		Short: "Answer health probes that come with a PROXY header",
		Long: `The health-probe-proxy runs on each node, in the host's network. A load balancer behind
a private link service with the PROXY protocol puts a PROXY header before its health
probes, too, and kube-proxy's health server does not understand it. This program takes
the header off, if there is one, and asks kube-proxy.`,
		Flags: o.flags(), Logging: o.logging, Validate: o.validate,
		Run: func(ctx context.Context) error { return run(ctx, o, nil) },
	}.Command()
}
