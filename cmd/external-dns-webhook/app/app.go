// Package app composes the external-dns-webhook from its flags. Layer L4.
package app

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"kaz/internal/component"
)

const name = "external-dns-webhook"

// Command returns the command of the program. lookup looks up environment variables.
func Command(lookup func(string) (string, bool)) *cobra.Command {
	o := newOptions()
	return component.Program{
		Name:  name,
		Short: "Serve ExternalDNS with zones of Azure DNS",
		Long: `The external-dns-webhook is the provider that ExternalDNS calls with --provider=webhook. It serves public and private zones
of Azure DNS, in place of the providers azure and azure-private-dns of ExternalDNS, whose azure.json it reads.

It writes a record set only if it is what ExternalDNS saw, within the limits of the zone. It answers 503 rather than a part of a list.`,
		Example: `  # the public zones of the resource group in azure.json
  external-dns-webhook --cloud-config=/etc/kubernetes/azure.json

  # the public and private zones of two groups that have a tag
  external-dns-webhook --zone-type=all --zone-resource-group=dns,web --zone-tag=cluster=prod

  # share names with other clusters
  external-dns-webhook --cloud-config=/etc/kubernetes/azure.json --cluster-id=west`,
		Flags: o.flags(), Logging: o.logging, Validate: o.validate,
		Run: func(ctx context.Context, log *slog.Logger) error { return run(ctx, o, lookup, log) },
	}.Command()
}
