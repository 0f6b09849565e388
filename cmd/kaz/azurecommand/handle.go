package azurecommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/directory"
)

// Status is what kaz local azure status says. It has nothing secret.
type Status struct {
	ARM          string `json:"arm"`
	ARMHTTP      string `json:"armHTTP"`
	Proxy        string `json:"proxy,omitempty"`
	DNS          string `json:"dns,omitempty"`
	SMB          string `json:"smb,omitempty"`
	NFS          string `json:"nfs,omitempty"`
	CAFile       string `json:"caFile"`
	Tenant       string `json:"tenant"`
	Subscription string `json:"subscription"`
	Boots        bool   `json:"boots"`
	client.Status
}

func newStatus(i client.Info, s client.Status) Status {
	return Status{ARM: i.ARM, ARMHTTP: i.ARMHTTP, Proxy: i.Proxy, DNS: i.DNS, SMB: i.SMB, NFS: i.NFS, CAFile: i.CAFile,
		Tenant: i.Tenant, Subscription: i.Subscription, Boots: i.Boots, Status: s}
}

// Write prints the status as text.
func (s Status) Write(w io.Writer) error {
	var quotas []string
	for _, name := range slices.Sorted(maps.Keys(s.Quotas)) {
		quotas = append(quotas, fmt.Sprintf("%s=%d", name, s.Quotas[name]))
	}
	machines := "documents"
	if s.Boots {
		machines = "boot"
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"Azure", s.ARM},
		{"plain HTTP", s.ARMHTTP},
		{"proxy", s.Proxy},
		{"name server", s.DNS},
		{"SMB", s.SMB},
		{"NFS", s.NFS},
		{"certificate authority", s.CAFile},
		{"tenant", s.Tenant},
		{"subscription", s.Subscription},
		{"machines", machines},
		{"resources", fmt.Sprint(s.Resources)},
		{"since", s.Since.Local().Format(time.DateTime)},
		{"version", s.Version},
		{"latency", s.Latency},
		{"throttle", s.Throttle},
		{"quotas", strings.Join(quotas, " ")},
		{"fault rules", fmt.Sprint(s.Faults)},
	} {
		if line[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(t, "%s\t%s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	return t.Flush()
}

func statusCommand() *cobra.Command {
	var selected selection
	var output string
	command := &cobra.Command{
		Use:   "status",
		Short: "Show a running local Azure: addresses, number of resources, settings; exit status 3 if none runs",
		Example: `  kaz local azure status
  kaz local azure status -o json
  kaz local azure status --endpoint https://127.0.0.1:8443    # if several run`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, args []string) error {
			err := selected.with(func(command *cobra.Command, client *client.Client, _ []string) error {
				s, err := client.Status(command.Context())
				if err != nil {
					return err
				}
				all := newStatus(client.Info(), s)
				return cli.PrintAs(command.OutOrStdout(), output, all, all.Write)
			})(command, args)
			if errors.Is(err, client.ErrNotRunning) {
				fmt.Fprintln(command.ErrOrStderr(), err)
				return cli.ExitCode(3)
			}
			return err
		},
	}
	selected.defineOwn(command)
	cli.OutputFlag(command, &output)
	return command
}

// line returns a function that prints one line.
func line(format string, args ...any) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprintf(w, format+"\n", args...)
		return err
	}
}

// stopTimeout bounds the stop of a local Azure.
const stopTimeout = 2 * time.Minute

func stopCommand() *cobra.Command {
	var dir, output string
	command := &cobra.Command{
		Use:   "stop",
		Short: "Stop the local Azure that runs with --dir, and keep its state",
		Long: `Stops the local Azure that kaz local azure --detach started, or one that runs with --dir, and
keeps its state: the next start with --dir continues with it. Ctrl-C ends one without --dir.`,
		Example: `  kaz local azure stop
  kaz local azure stop --dir /tmp/azure`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), stopTimeout)
			defer cancel()
			stopped, err := directory.Stop(ctx, dir)
			if err != nil {
				return err
			}
			answer := struct {
				Dir     string `json:"dir"`
				Stopped bool   `json:"stopped"`
			}{dir, stopped}
			text := line("nothing was running in %s", dir)
			if stopped {
				text = line("stopped the local Azure of %s", dir)
			}
			return cli.PrintAs(command.OutOrStdout(), output, answer, text)
		},
	}
	dirFlag(command, &dir)
	cli.OutputFlag(command, &output)
	return command
}

func deleteCommand() *cobra.Command {
	var dir, output string
	var yes bool
	command := &cobra.Command{
		Use:   "delete",
		Short: "Stop the local Azure that runs with --dir, and remove its directory",
		Long: `Stops the local Azure of --dir, if it runs, and removes its state, keys, certificate authority
and log. The directory goes if nothing else is in it. Nothing brings them back.`,
		Example: `  kaz local azure delete --yes
  kaz local azure delete --yes --dir /tmp/azure`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if !yes {
				return fmt.Errorf("all resources and keys of the local Azure in %s would be lost: confirm with --yes", dir)
			}
			ctx, cancel := context.WithTimeout(command.Context(), stopTimeout)
			defer cancel()
			stopped, kept, err := directory.Delete(ctx, dir)
			if err != nil {
				return err
			}
			answer := struct {
				Dir     string   `json:"dir"`
				Stopped bool     `json:"stopped"`
				Kept    []string `json:"kept,omitempty"` // files of others
			}{dir, stopped, kept}
			text := line("removed %s", dir)
			if len(kept) > 0 {
				text = line("removed the local Azure of %s; these are not its files and stay: %s", dir, strings.Join(kept, ", "))
			}
			return cli.PrintAs(command.OutOrStdout(), output, answer, text)
		},
	}
	dirFlag(command, &dir)
	cli.OutputFlag(command, &output)
	command.Flags().BoolVarP(&yes, "yes", "y", false, "confirm that all of it may be lost")
	return command
}

func resetCommand() *cobra.Command {
	var selected selection
	var output string
	var yes bool
	command := &cobra.Command{
		Use:   "reset",
		Short: "Remove all resources of a running local Azure",
		Long: `Removes all resources of a running local Azure, also locked ones, with what they hold. Addresses,
credentials, settings, fault rules and the role assignments of --identities stay.

The Azure of kaz local up loses its cluster.`,
		Example: `  kaz local azure reset --yes
  kaz local azure reset --yes --endpoint https://127.0.0.1:8443`,
		Args: cobra.NoArgs,
		RunE: selected.with(func(command *cobra.Command, client *client.Client, _ []string) error {
			if !yes {
				s, err := client.Status(command.Context())
				if err != nil {
					return err
				}
				return fmt.Errorf("%d resources of the local Azure at %s would be lost: confirm with --yes", s.Resources, client.Info().ARM)
			}
			removed, err := client.Reset(command.Context())
			if err != nil {
				return err
			}
			return cli.PrintAs(command.OutOrStdout(), output, removed, line("removed %d resources", removed.Resources))
		}),
	}
	selected.defineOwn(command)
	cli.OutputFlag(command, &output)
	command.Flags().BoolVarP(&yes, "yes", "y", false, "confirm that all resources may be lost")
	return command
}

func setCommand() *cobra.Command {
	var selected selection
	var change client.Settings
	var latency, throttle, output string
	command := &cobra.Command{
		Use:   "set",
		Short: "Change latency, rate limits or quotas of a running local Azure, until its end",
		Example: `  kaz local azure set --latency azure --throttle azure
  kaz local azure set --latency off --throttle off
  kaz local azure set --quota cores=10 --quota standardDSv5Family=4`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, args []string) error {
			for name, of := range map[string]struct {
				text *string
				to   **string
			}{"latency": {&latency, &change.Latency}, "throttle": {&throttle, &change.Throttle}} {
				if command.Flags().Changed(name) {
					*of.to = of.text
				}
			}
			if change.Latency == nil && change.Throttle == nil && len(change.Quotas) == 0 {
				return errors.New("set: nothing to change: want --latency, --throttle or --quota")
			}
			return selected.with(func(command *cobra.Command, client *client.Client, _ []string) error {
				s, err := client.Set(command.Context(), change)
				if err != nil {
					return err
				}
				all := newStatus(client.Info(), s)
				return cli.PrintAs(command.OutOrStdout(), output, all, all.Write)
			})(command, args)
		},
	}
	selected.defineOwn(command)
	cli.OutputFlag(command, &output)
	f := command.Flags()
	f.StringVar(&latency, "latency", "", "delays of Azure: off, azure (those of the real one), or a factor of those such as 0.1")
	f.StringVar(&throttle, "throttle", "", "rate limits of Azure: off, or azure (those of the real one)")
	f.StringArrayVar(&change.Quotas, "quota", nil,
		"limit of vCPUs in each region, as NAME=N with a name that az vm list-usage shows; can be repeated")
	return command
}
