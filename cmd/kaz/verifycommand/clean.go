package verifycommand

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/verify"
)

// cleanOptions are the flags of kaz verify clean.
type cleanOptions struct {
	targetFlags

	output   string
	all, yes bool
}

func cleanCommand() *cobra.Command {
	var o cleanOptions
	command := &cobra.Command{
		Use:   "clean",
		Short: "Remove the resource groups that killed runs left",
		Long: `Finds the resource groups of kaz verify azure by their name and their tag, and removes those
that have expired, with all that is in them. --all removes the others, too, also that of a run
that is in progress.`,
		Example: `  kaz verify clean --subscription ID
  kaz verify clean --local --all --yes`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.run(command.Context(), command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	o.define(command)
	f := command.Flags()
	f.BoolVar(&o.all, "all", false, "remove groups that have not expired, too")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	cli.OutputFlag(command, &o.output)
	return command
}

func (o *cleanOptions) run(ctx context.Context, in io.Reader, out, errs io.Writer) error {
	if err := cli.PrintAs(io.Discard, o.output, nil, func(io.Writer) error { return nil }); err != nil {
		return err
	}
	azure, err := o.open(ctx)
	if err != nil {
		return err
	}
	found, err := verify.Find(ctx, azure.client, azure.subscription, time.Now())
	if err != nil {
		return err
	}
	if err := o.confirm(in, errs, found); err != nil {
		return err
	}
	verify.Remove(ctx, azure.client, azure.subscription, found, o.all)
	if err := cli.PrintAs(out, o.output, found, func(w io.Writer) error { return printFound(w, found) }); err != nil {
		return err
	}
	for _, f := range found {
		if f.Failure != "" {
			return cli.ExitCode(1)
		}
	}
	return nil
}

// confirm asks if there is something to remove.
func (o *cleanOptions) confirm(in io.Reader, out io.Writer, found []verify.Found) error {
	var names []string
	for _, f := range found {
		if f.Expired || o.all {
			names = append(names, f.Group)
		}
	}
	if len(names) == 0 || o.yes {
		return nil
	}
	fmt.Fprintf(out, "Remove %s with all that is in them? [y/N] ", strings.Join(names, ", "))
	return ask(in)
}

// ask reads the answer to a question.
func ask(in io.Reader) error {
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errDeclined
	}
	return nil
}

func printFound(w io.Writer, found []verify.Found) error {
	var b strings.Builder
	for _, f := range found {
		state := "removed"
		switch {
		case f.Failure != "":
			state = "not removed: " + f.Failure
		case !f.Removed && f.Expires == "":
			state = "kept: its expiry cannot be read; --all removes it"
		case !f.Removed:
			state = "kept until " + f.Expires + "; --all removes it"
		}
		fmt.Fprintf(&b, "%s (%s): %s\n", f.Group, f.Location, state)
	}
	if len(found) == 0 {
		b.WriteString("no resource group of kaz verify\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
