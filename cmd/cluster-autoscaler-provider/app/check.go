package app

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/metrics/legacyregistry"
	"sigs.k8s.io/yaml"

	"kaz/internal/autoscale"
)

// checkCommand returns the command that shows what becomes of each scale set.
func checkCommand(lookup func(string) (string, bool)) *cobra.Command {
	s := newOptions().source
	var output string
	command := &cobra.Command{
		Use: "check", Short: "Show which scale sets are node groups, and why others are not", Args: cobra.NoArgs,
		Long:         "check reads the scale sets of the resource group and changes nothing.",
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			selection, err := s.selection()
			if err != nil {
				return err
			}
			if output != "text" && output != "json" && output != "yaml" {
				return fmt.Errorf("--output %q: must be text, json or yaml", output)
			}
			log := slog.New(slog.NewTextHandler(command.ErrOrStderr(), nil))
			config, _, err := readConfig(s.cloudConfig, lookup, log)
			if err != nil {
				return err
			}
			client, err := open(command.Context(), config, legacyregistry.Registerer())
			if err != nil {
				return err
			}
			findings, err := autoscale.Check(command.Context(), client.Fresh(), groupOf(config), selection)
			if err != nil {
				return err
			}
			return print(command.OutOrStdout(), output, findings)
		},
	}
	var sets cliflag.NamedFlagSets
	s.addTo(sets.FlagSet("node groups"))
	sets.FlagSet("output").StringVarP(&output, "output", "o", "text", "Format of the output: text, json or yaml.")
	for _, set := range sets.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	cliflag.SetUsageAndHelpFunc(command, sets, 0)
	return command
}

// print writes findings in a format.
func print(w io.Writer, format string, findings []autoscale.Finding) error {
	text, err := yaml.Marshal(findings)
	if err != nil {
		return err
	}
	switch format {
	case "json":
		if text, err = yaml.YAMLToJSON(text); err != nil {
			return err
		}
		_, err = fmt.Fprintln(w, string(text))
		return err
	case "yaml":
		_, err = w.Write(text)
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "SCALE SET\tNODE GROUP\tMIN\tMAX\tCAPACITY\tSIZE\tREASON OR WARNINGS") // the writer keeps errors until Flush
	for _, f := range findings {
		if f.NodeGroup {
			_, _ = fmt.Fprintf(table, "%s\tyes\t%d\t%d\t%d\t%s\t%s\n",
				f.ScaleSet, f.Min, f.Max, f.Capacity, f.Size, strings.Join(f.Warnings, "; "))
		} else {
			_, _ = fmt.Fprintf(table, "%s\tno\t\t\t%d\t%s\t%s\n", f.ScaleSet, f.Capacity, f.Size, f.Reason)
		}
	}
	return table.Flush()
}
