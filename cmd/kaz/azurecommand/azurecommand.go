// Package azurecommand has the commands of kaz local azure. Layer L4: flags to options, nothing else.
package azurecommand

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/server"
)

// New returns the command kaz local azure.
func New() *cobra.Command {
	var r options
	command := &cobra.Command{
		Use:   "azure",
		Short: "Run a local Azure without a cluster, for any client of Azure",
		Long: `Serves a local Azure over HTTPS and HTTP until Ctrl-C: Azure Resource Manager,
the login, managed identities, instance metadata, container registries and file shares.

With --detach it serves in the background, with the state in --dir, until kaz local azure stop.

It prints one line of JSON when it serves: its addresses, a bearer token and a service
principal with all rights, and the values of IDENTITY_ENDPOINT and IDENTITY_HEADER.
It logs to stderr. Whoever has these secrets is the owner of this Azure.

With --machines-dir the machines run what their custom data and run commands say, as
root of this machine. So whoever may write machines in this Azure is root here.`,
		Example: `  kaz local azure
  kaz local azure --state state.json --ca-file ca.pem --address 127.0.0.1:8443
  kaz local azure --detach                             # in the background, with its state
  kaz local azure --latency azure --throttle azure     # the delays and rate limits of the real Azure
  kaz local azure --latency 0.1 --faults faults.json   # a tenth of the delays, and injected faults

  # clients with fixed endpoints
  kaz local azure --proxy-address 127.0.0.1:8081 --ca-file ca.pem
  HTTPS_PROXY=http://127.0.0.1:8081 SSL_CERT_FILE=ca.pem some-client

  # machines that boot, with two releases of Kubernetes
  kaz local azure --machines-dir /var/lib/kaz-machines --kubernetes 1.36.3,1.35.4

  # read its resources
  kaz local azure list
  kaz local azure list loadBalancers -o yaml
  kaz local azure show /subscriptions/.../resourceGroups/kaz

  # let a client log in to it
  eval "$(kaz local azure env)"

  # let requests fail from now on
  kaz local azure fault add --method PUT --type loadBalancers --status 429 --times 3

  # create a resource
  kaz local azure put /subscriptions/.../resourceGroups/other <<< '{"location":"westeurope"}'`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return r.run(command) },
	}
	r.flags(command)
	command.AddCommand(listCommand(), showCommand(), putCommand(), envCommand())
	command.AddCommand(statusCommand(), stopCommand(), deleteCommand(), resetCommand())
	command.AddCommand(setCommand(), faultCommand(), webCommand())
	return command
}

// BehaviourFlags defines the flags for the behaviour of a local Azure.
func BehaviourFlags(command *cobra.Command, o *server.Options) {
	f := command.Flags()
	f.StringVar(&o.Latency, "latency", "off", "delays of Azure: off, azure (those of the real one), or a factor of those such as 0.1")
	f.StringVar(&o.Throttle, "throttle", "off", "rate limits of Azure: off, or azure (those of the real one)")
	f.BoolVar(&o.WebWrite, "web-write", false, "let the web page add and remove fault rules (default it only shows)")
	f.StringVar(&o.AccessControl, "access-control", "off", "enforcement of role assignments: on or off")
}

// serverFlags defines the flags for the addresses and the files of a local Azure.
func serverFlags(command *cobra.Command, o *server.Options) {
	f := command.Flags()
	f.StringVar(&o.Address, "address", "127.0.0.1:0", "IP:PORT to serve HTTPS at; port 0 is any free port")
	f.StringVar(&o.HTTPAddress, "http-address", "127.0.0.1:0", "IP:PORT to serve plain HTTP at")
	f.StringVar(&o.ProxyAddress, "proxy-address", "127.0.0.1:0",
		"IP:PORT of a proxy that leads Azure's public login, management, registry, storage and vault hosts to this Azure; empty for none")
	f.StringVar(&o.DNSAddress, "dns-address", "127.0.0.1:0",
		"IP:PORT of the name server of public DNS zones, over UDP and TCP; empty for none")
	f.StringVar(&o.SMBAddress, "smb-address", "",
		"IP:PORT to serve file shares over SMB at, which needs root and Samba (default none)")
	f.StringVar(&o.NFSAddress, "nfs-address", "",
		"IP:PORT to serve file shares over NFS 4.1 at, which needs root and nfs-ganesha (default none)")
	f.StringVar(&o.DevelopmentStorage, "development-storage", "",
		"IP:PORT of blobs for clients of storage emulators, such as 127.0.0.1:10000; queues and tables have the next ports (default none)")
	f.StringVar(&o.CAFile, "ca-file", "",
		"file of the certificate authority for clients, created with its key beside it if missing (default a temporary file)")
	f.StringVar(&o.Subscription, "subscription", "", "id of the subscription (default 00000000-0000-0000-0000-000000000001)")
	f.StringArrayVar(&o.OtherSubscriptions, "other-subscription", nil,
		"a further subscription: its id, or ID=TENANT in another tenant; can be repeated")
	f.StringVar(&o.Identities, "identities", "", "file (YAML or JSON) with applications, managed identities, their credentials and roles")
	f.StringArrayVar(&o.Quotas, "quota", nil,
		"limit of vCPUs in each region, as NAME=N with a name that az vm list-usage shows; can be repeated")
	f.StringVar(&o.Faults, "faults", "", "file (JSON) with rules that make requests fail")
	f.StringVar(&o.RequestLog, "request-log", "", "file to which a line of JSON is appended for each request")
	f.StringVar(&o.State, "state", "",
		"file of the state, read at the start and written after changes; its directory is created, but no parent (default none)")
	f.StringVar(&o.RegistrySuffix, "registry-suffix", "",
		"domain of registries for clients of this address, beside azurecr.io (default azurecr.localhost)")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of random latencies, ids and addresses")
}

func listCommand() *cobra.Command {
	var selected selection
	var output string
	command := &cobra.Command{
		Use:   "list [TYPE]",
		Short: "List the resources in a running local Azure, or those of one type",
		Example: `  kaz local azure list
  kaz local azure list loadBalancers
  kaz local azure list Microsoft.Compute/virtualMachineScaleSets/virtualMachines -o yaml`,
		Args: cli.Wants(0, 1, "one type, such as loadBalancers, or none for all"),
		RunE: selected.with(func(command *cobra.Command, client *client.Client, args []string) error {
			resources, err := client.List(command.Context(), strings.Join(args, ""))
			if err != nil {
				return err
			}
			return cli.PrintAs(command.OutOrStdout(), output, resources, resources.Write)
		}),
	}
	selected.define(command)
	cli.OutputFlag(command, &output)
	return command
}

func putCommand() *cobra.Command {
	var selected selection
	command := &cobra.Command{
		Use:   "put ID",
		Short: "Create or replace a resource in a running local Azure, from a document on standard input",
		Example: `  kaz local azure put /subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/other \
    <<< '{"location":"westeurope"}'`,
		Args: cli.Wants(1, 1, "one resource, by its id"),
		RunE: selected.with(func(command *cobra.Command, client *client.Client, args []string) error {
			document, err := io.ReadAll(command.InOrStdin())
			if err != nil {
				return err
			}
			if _, err := client.Put(command.Context(), args[0], document); err != nil {
				return err
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), "created or replaced", args[0])
			return err
		}),
	}
	selected.define(command)
	return command
}

func showCommand() *cobra.Command {
	var selected selection
	var output string
	command := &cobra.Command{
		Use:   "show ID",
		Short: "Show a resource in a running local Azure",
		Example: `  kaz local azure show /subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/kaz
  kaz local azure show kaz-vnet
  kaz local azure show loadBalancers/kaz -o json`,
		Args: cli.Wants(1, 1, "one resource, by its name, TYPE/NAME or id"),
		RunE: selected.with(func(command *cobra.Command, client *client.Client, args []string) error {
			document, err := client.Show(command.Context(), args[0])
			if err != nil {
				return err
			}
			if output == "text" {
				output = "yaml" // the text of a document
			}
			return cli.PrintAs(command.OutOrStdout(), output, document, nil)
		}),
	}
	selected.define(command)
	cli.OutputFlag(command, &output)
	return command
}
