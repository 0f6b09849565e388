package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	mdns "github.com/miekg/dns"
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"kaz/internal/dns/explain"
)

// nameOptions are the flags of kaz explain name.
type nameOptions struct {
	explanation
	groups []string
	server string
}

func explainNameCommand() *cobra.Command {
	var o nameOptions
	command := o.define(&cobra.Command{
		Use:   "name HOST",
		Short: "Show what DNS answers for a name, and which clusters contribute to it",
		Long: `Reads the zones of Azure DNS that contain a name: its record sets, what each cluster
contributes to them, the leases of these clusters, and the TXT records of ExternalDNS that own
them. Then it asks a name server of each public zone. It writes nothing, and needs no
Kubernetes: azure.json is enough.

Exit status 0: the name is answered as it is to be. 2: something must happen, which is shown.
1: there is a problem, which is shown, or the command failed.

The azure.json is selected as by kaz explain service.`,
		Example: `  kaz explain name app.example.com
  kaz explain name app.example.com --zone-resource-group dns --cloud-config azure.json
  kaz explain name app.example.com --server 127.0.0.1:5354 -o json`,
	}, o.checkName, o.run)
	f := command.Flags()
	f.StringSliceVar(&o.groups, "zone-resource-group", nil,
		"resource groups with zones: names in the subscription of azure.json, or /subscriptions/ID/resourceGroups/NAME (default that of "+
			"azure.json)")
	f.StringVar(&o.server, "server", "",
		"name server to ask, HOST:PORT (default that of the local Azure, or the first one of each public zone)")
	return command
}

func (o *nameOptions) checkName(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d names are given: want one, such as app.example.com", len(args))
	}
	if _, ok := mdns.IsDomainName(args[0]); !ok || !strings.Contains(args[0], ".") {
		return fmt.Errorf("%q: want a DNS name, such as app.example.com", args[0])
	}
	if o.server != "" {
		if host, port, err := net.SplitHostPort(o.server); err != nil || host == "" || port == "" {
			return fmt.Errorf("--server %s: want HOST:PORT", o.server)
		}
	}
	return nil
}

// run explains a name.
func (o *nameOptions) run(ctx context.Context, args []string, out, _ io.Writer) error {
	path, local, err := o.cluster.findAzure(ctx, os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if err != nil {
		return err
	}
	from, config, err := openAzure(ctx, path)
	if err != nil {
		return err
	}
	zones := zonesOf(config.SubscriptionID, config.ResourceGroup, o.groups)
	facts, err := explain.Gather(ctx, from.Fresh(), zones, args[0], cmp.Or(o.server, local), explain.AskServer)
	if errors.Is(err, explain.ErrNoZone) {
		return fmt.Errorf("%w of %v; --zone-resource-group names others", err, zones.Groups)
	}
	if err != nil {
		return err
	}
	n := facts.Explain()
	return o.print(out, n, len(n.Problems) > 0, len(n.Waits) > 0)
}
