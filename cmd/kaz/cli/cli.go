// Package cli has what the commands of kaz share: groups of commands, checks of arguments, output formats and exit statuses.
package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// ExitCode is an exit status. The error that led to it is already printed.
type ExitCode int

func (c ExitCode) Error() string { return fmt.Sprintf("exit status %d", int(c)) }

// Group returns a command that has only subcommands. A missing or unknown subcommand is an error, so that a script does not
// take the help text with exit status 0 for a result.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use: use, Short: short, DisableFlagsInUseLine: true,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true}, // they belong to the subcommand
		Args:               cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, args []string) error {
			var names []string
			for _, c := range command.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name())
				}
			}
			if len(args) == 0 {
				return fmt.Errorf("%s: no command given: want %s", command.Name(), strings.Join(names, ", "))
			}
			return fmt.Errorf("unknown command %q for %q: want %s", args[0], command.CommandPath(), strings.Join(names, ", "))
		},
	}
	command.AddCommand(commands...)
	return command
}

// Wants returns a check for the number of arguments. Unlike cobra's own checks its errors say what the arguments are.
func Wants(least, most int, what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fmt.Errorf("%s: no argument given: want %s", command.Name(), what)
		case len(args) > most:
			return fmt.Errorf("%s: %s: want %s", command.Name(), strings.Join(args, " "), what)
		}
		return nil
	}
}

// OutputFlag defines the flag of a command for its output format.
func OutputFlag(command *cobra.Command, output *string) {
	command.Flags().StringVarP(output, "output", "o", "text", "text, json or yaml")
}

// PrintAs prints v in an output format.
func PrintAs(w io.Writer, output string, v any, text func(io.Writer) error) error {
	var data []byte
	var err error
	switch output {
	case "text":
		return text(w)
	case "json":
		data, err = json.MarshalIndent(v, "", "  ")
		data = append(data, '\n')
	case "yaml":
		data, err = yaml.Marshal(v)
	default:
		return fmt.Errorf("--output %s: want text, json or yaml", output)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}
