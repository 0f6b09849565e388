// Package app composes the application-gateway-controller from its flags. Layer L4.
package app

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"kaz/internal/component"
)

const name = "application-gateway-controller"

// Command returns the command of the program. lookup looks up environment variables.
func Command(lookup func(string) (string, bool)) *cobra.Command {
	o := newOptions()
	sets := o.flags()
	o.readEnvironment(sets, lookup)
	return component.Program{
		Name:  name,
		Short: "Serve Ingresses and the Gateway API with application gateways",
		Long: `The application-gateway-controller serves the Ingresses of its class with an Azure Application Gateway that exists,
and the Gateways of its classes, if the API server has the Gateway API, with that one and further ones. It takes the
annotations, the class and the environment variables of the Application Gateway Ingress Controller (AGIC).

What others have at the gateway stays as it is. A wrong object gets an Event or a condition, and all others are served.`,
		Example: `  # the Ingresses of the class azure-application-gateway
  application-gateway-controller --cloud-config=/etc/kubernetes/azure.json --gateway=web

  # in place of AGIC, whose children at the gateway are taken over
  application-gateway-controller --gateway=web --adopt-agic`,
		Flags: sets, Logging: o.logging, Validate: o.validate,
		Run: func(ctx context.Context, log *slog.Logger) error { return run(ctx, o, lookup, log) },
	}.Command()
}
