// Package app composes the health-probe-proxy from its flags. Layer L4.
package app

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"kaz/internal/component"
)

// name is the program's name.
const name = "health-probe-proxy"

// Command returns the program's command.
func Command() *cobra.Command {
	o := newOptions()
	return component.Program{
		Name:  name,
		Short: "Answer health probes that come with a PROXY header",
		Long: `The health-probe-proxy runs on each node, in the host's network. A load balancer behind
a private link service with the PROXY protocol also prepends a PROXY header to its health
probes, which kube-proxy's health server does not understand. This program removes the
header, if there is one, and forwards the probe to kube-proxy.`,
		Flags: o.flags(), Logging: o.logging, Validate: o.validate,
		Run: func(ctx context.Context, log *slog.Logger) error { return run(ctx, o, log, nil) },
	}.Command()
}
