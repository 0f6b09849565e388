package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"kaz/internal/local"
)

func azureCommand() *cobra.Command {
	var o local.AzureOptions
	command := &cobra.Command{
		Use:   "azure",
		Short: "Run a local Azure only, for any client of Azure",
		Long: `Serves a local Azure over HTTPS and HTTP until Ctrl-C: Azure Resource Manager,
the login, managed identities, instance metadata, container registries.

When it serves it prints one line of JSON with what clients have to know:
addresses, a bearer token that works, a service principal that works, and what
goes into IDENTITY_ENDPOINT and IDENTITY_HEADER. Logs go to stderr.`,
		Example: `  kaz local azure
  kaz local azure --state azure.json --ca-file ca.pem --address 127.0.0.1:8443
  kaz local azure --latency azure --throttle azure     # as slow and as strict as the real one
  kaz local azure --latency 0.1 --faults faults.json   # ten times faster, and not always right

  # clients with fixed endpoints
  kaz local azure --proxy-address 127.0.0.1:8081 --ca-file ca.pem
  HTTPS_PROXY=http://127.0.0.1:8081 SSL_CERT_FILE=ca.pem some-client

  # what is in it
  kaz local azure list
  kaz local azure list loadBalancers -o yaml
  kaz local azure show /subscriptions/.../resourceGroups/kaz

  # more of it
  kaz local azure put /subscriptions/.../resourceGroups/other <<< '{"location":"westeurope"}'`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runAzure(command.Context(), o, command.OutOrStdout())
		},
	}
	f := command.Flags()
	f.StringVar(&o.Address, "address", "127.0.0.1:0", "where to serve HTTPS; port 0 is any free one")
	f.StringVar(&o.HTTPAddress, "http-address", "127.0.0.1:0", "where to serve plain HTTP")
	f.StringVar(&o.ProxyAddress, "proxy-address", "", "where to serve a proxy that leads Azure's public login, management and registry hosts here (default none)")
	f.StringVar(&o.CAFile, "ca-file", "", "file for the certificate authority that clients have to trust; its key is kept beside it and used again (default a temporary file)")
	f.StringVar(&o.Subscription, "subscription", "", "id of the subscription (default 00000000-0000-0000-0000-000000000001)")
	f.StringArrayVar(&o.OtherSubscriptions, "other-subscription", nil, "a further subscription: its id, or ID=TENANT for one in another tenant (can be repeated)")
	f.StringVar(&o.Latency, "latency", "off", "how long things take: off, azure (as on the real one), or a factor of that such as 0.1")
	f.StringVar(&o.Throttle, "throttle", "off", "whether requests are limited: off, or azure (as on the real one)")
	f.StringVar(&o.AccessControl, "access-control", "off", "whether role assignments are enforced: on or off")
	f.StringVar(&o.Identities, "identities", "", "file (YAML or JSON) with applications, managed identities, their credentials and roles")
	f.StringVar(&o.Faults, "faults", "", "file (JSON) with rules that make requests go wrong")
	f.StringVar(&o.RequestLog, "request-log", "", "file that gets a line of JSON for every request")
	f.StringVar(&o.State, "state", "", "file that the state is read from and kept in, whose directory is made if the one above is there (default the state is forgotten)")
	f.StringVar(&o.RegistrySuffix, "registry-suffix", "", "domain of registries that clients of this address are told, beside azurecr.io (default azurecr.localhost)")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of everything that is drawn: latencies, ids, addresses")
	command.AddCommand(azureListCommand(), azureShowCommand(), azurePutCommand())
	return command
}

// runAzure serves until ctx is done.
func runAzure(ctx context.Context, o local.AzureOptions, out io.Writer) error {
	var err error
	if o.AnnounceDir, err = local.AnnounceDir(); err != nil {
		return err
	}
	azure, err := local.StartAzure(ctx, o)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(azure.Info()); err != nil {
		return azure.Close()
	}
	<-ctx.Done()
	return azure.Close()
}

// azurePlace says which running local Azure a command is about.
type azurePlace struct {
	endpoint, token, caFile, subscription, dir string
}

func (p *azurePlace) flags(command *cobra.Command) {
	f := command.Flags()
	f.StringVar(&p.endpoint, "endpoint", "", "base URL of the local Azure (default the one that runs)")
	f.StringVar(&p.token, "token", "", "bearer token for --endpoint, for one that another user runs")
	f.StringVar(&p.caFile, "ca-file", "", "certificate authority of --endpoint, with --token")
	f.StringVar(&p.subscription, "subscription", "00000000-0000-0000-0000-000000000001", "subscription at --endpoint, with --token")
	dirFlag(command, &p.dir)
}

func (p *azurePlace) open(command *cobra.Command) (*local.AzureView, error) {
	if p.endpoint != "" && p.token != "" {
		return local.ViewAzure(local.AzureInfo{ARM: p.endpoint, Token: p.token, CAFile: p.caFile, Subscription: p.subscription})
	}
	dirs := []string{p.dir}
	if !command.Flags().Changed("dir") {
		announced, err := local.AnnounceDir()
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, announced)
	}
	info, err := local.FindAzure(command.Context(), p.endpoint, dirs...)
	if err != nil {
		return nil, err
	}
	return local.ViewAzure(info)
}

func azureListCommand() *cobra.Command {
	var place azurePlace
	var output string
	command := &cobra.Command{
		Use:   "list [TYPE]",
		Short: "List the resources in a running local Azure, or those of a type",
		Example: `  kaz local azure list
  kaz local azure list loadBalancers
  kaz local azure list Microsoft.Compute/virtualMachineScaleSets/virtualMachines -o yaml`,
		Args: wants(0, 1, "one type, such as loadBalancers, or none for all"),
		RunE: func(command *cobra.Command, args []string) error {
			view, err := place.open(command)
			if err != nil {
				return err
			}
			defer view.Close()
			resources, err := view.Resources(command.Context(), append(args, "")[0])
			if err != nil {
				return err
			}
			return printAs(command.OutOrStdout(), output, resources, resources.Write)
		},
	}
	place.flags(command)
	outputFlag(command, &output)
	return command
}

func azurePutCommand() *cobra.Command {
	var place azurePlace
	command := &cobra.Command{
		Use:     "put ID",
		Short:   "Make or replace a resource in a running local Azure, from a document on standard input",
		Example: `  kaz local azure put /subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/other <<< '{"location":"westeurope"}'`,
		Args:    wants(1, 1, "one resource, by its id"),
		RunE: func(command *cobra.Command, args []string) error {
			document, err := io.ReadAll(command.InOrStdin())
			if err != nil {
				return err
			}
			view, err := place.open(command)
			if err != nil {
				return err
			}
			defer view.Close()
			if _, err := view.Put(command.Context(), args[0], document); err != nil {
				return err
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), "it is there:", args[0])
			return err
		},
	}
	place.flags(command)
	return command
}

func azureShowCommand() *cobra.Command {
	var place azurePlace
	var output string
	command := &cobra.Command{
		Use:   "show ID",
		Short: "Show a resource in a running local Azure",
		Example: `  kaz local azure show /subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/kaz
  kaz local azure show kaz-vnet
  kaz local azure show loadBalancers/kaz -o json`,
		Args: wants(1, 1, "one resource, by its name, TYPE/NAME or id"),
		RunE: func(command *cobra.Command, args []string) error {
			view, err := place.open(command)
			if err != nil {
				return err
			}
			defer view.Close()
			document, err := view.Show(command.Context(), args[0])
			if err != nil {
				return err
			}
			return printAs(command.OutOrStdout(), output, document, func(w io.Writer) error {
				text, err := yaml.Marshal(document)
				if err != nil {
					return err
				}
				_, err = w.Write(text)
				return err
			})
		},
	}
	place.flags(command)
	outputFlag(command, &output)
	return command
}
