package azurecommand

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/core"
)

func faultCommand() *cobra.Command {
	return cli.Group("fault", "List, add and remove rules that make requests to a running local Azure fail",
		faultListCommand(), faultAddCommand(), faultRemoveCommand(), faultClearCommand())
}

// faultRules are the rules as a command prints them.
type faultRules struct {
	Faults []core.CountedFault `json:"faults"`
}

// Write prints the rules as a table.
func (f faultRules) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(t, "ID\tFAULT\tMETHOD\tTYPE\tNAME\tACTION\tSTATUS\tTIMES\tMATCHED\tAPPLIED"); err != nil {
		return err
	}
	for _, r := range f.Faults {
		cells := []string{strconv.Itoa(r.ID), r.Fault, r.Method, r.Type, r.Name, r.Action, number(r.Status), number(r.Times)}
		for i, cell := range cells {
			if cell == "" {
				cells[i] = "-"
			}
		}
		if _, err := fmt.Fprintf(t, "%s\t%d\t%d\n", strings.Join(cells, "\t"), r.Matched, r.Applied); err != nil {
			return err
		}
	}
	return t.Flush()
}

// number returns a number as text, "" for 0.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func faultListCommand() *cobra.Command {
	var selected selection
	var output string
	command := &cobra.Command{
		Use:   "list",
		Short: "List the fault rules in the order in which they are tried, with how often they matched and applied",
		Example: `  kaz local azure fault list
  kaz local azure fault list -o json`,
		Args: cobra.NoArgs,
		RunE: selected.with(func(command *cobra.Command, client *client.Client, _ []string) error {
			all, err := client.Faults(command.Context())
			if err != nil {
				return err
			}
			rules := faultRules{all}
			return cli.PrintAs(command.OutOrStdout(), output, rules, rules.Write)
		}),
	}
	selected.defineOwn(command)
	cli.OutputFlag(command, &output)
	return command
}

func faultAddCommand() *cobra.Command {
	var selected selection
	rule := core.Fault{Fault: core.FaultError}
	var output string
	command := &cobra.Command{
		Use:   "add",
		Short: "Add a fault rule behind the others; it applies until it is removed or the local Azure ends",
		Long: `Adds a rule by which requests fail. A flag that is left out matches everything. Of several rules
the first one that applies to a request decides. The flags are the fields of a rule in a file of --faults.`,
		Example: `  kaz local azure fault add --method PUT --type loadBalancers --status 429 --times 3
  kaz local azure fault add --type virtualMachines --name 'web-*' --fault operation --code AllocationFailed
  kaz local azure fault add --method GET --type disks --fault lost --probability 0.1
  kaz local azure fault add --type publicIPAddresses --fault answer --path properties.ipAddress --value '"192.0.2.1"'`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, args []string) error {
			if rule.Type != "" {
				full, err := client.FullType(rule.Type)
				if err != nil {
					return fmt.Errorf("--type: %w", err)
				}
				rule.Type = full
			}
			return selected.with(func(command *cobra.Command, client *client.Client, _ []string) error {
				added, err := client.AddFault(command.Context(), rule)
				if err != nil {
					return err
				}
				return cli.PrintAs(command.OutOrStdout(), output, added, line("added fault rule %d", added.ID))
			})(command, args)
		},
	}
	selected.defineOwn(command)
	cli.OutputFlag(command, &output)
	for _, field := range core.FaultFields() {
		command.Flags().Var(&faultFlag{field: field, rule: &rule}, field.Name, field.Usage)
	}
	return command
}

// faultFlag is a flag for a member of a rule.
type faultFlag struct {
	field core.FaultField
	rule  *core.Fault
	given string
}

// String implements pflag.Value. Flags without a value have the default that the usage names, but for the kind of fault.
func (f *faultFlag) String() string {
	if f.given == "" && f.field.Name == "fault" {
		return core.FaultError
	}
	return f.given
}

// Set implements pflag.Value.
func (f *faultFlag) Set(text string) error {
	f.given = text
	return f.field.Set(f.rule, text)
}

// Type implements pflag.Value.
func (f *faultFlag) Type() string { return f.field.Kind }

func faultRemoveCommand() *cobra.Command {
	var selected selection
	command := &cobra.Command{
		Use:     "remove ID",
		Short:   "Remove a fault rule",
		Example: `  kaz local azure fault remove 2`,
		Args:    cli.Wants(1, 1, "one number of a rule, which kaz local azure fault list shows"),
		RunE: func(command *cobra.Command, args []string) error {
			id, err := strconv.Atoi(args[0])
			if err != nil {
				return fmt.Errorf("remove: %s: want one number of a rule, which kaz local azure fault list shows", args[0])
			}
			return selected.with(func(command *cobra.Command, client *client.Client, _ []string) error {
				if _, err := client.RemoveFault(command.Context(), id); err != nil {
					return err
				}
				return line("removed fault rule %d", id)(command.OutOrStdout())
			})(command, args)
		},
	}
	selected.defineOwn(command)
	return command
}

func faultClearCommand() *cobra.Command {
	var selected selection
	command := &cobra.Command{
		Use:     "clear",
		Short:   "Remove all fault rules",
		Example: `  kaz local azure fault clear`,
		Args:    cobra.NoArgs,
		RunE: selected.with(func(command *cobra.Command, client *client.Client, _ []string) error {
			removed, err := client.ClearFaults(command.Context())
			if err != nil {
				return err
			}
			return line("removed %d fault rules", len(removed))(command.OutOrStdout())
		}),
	}
	selected.defineOwn(command)
	return command
}
