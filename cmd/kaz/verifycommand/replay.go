package verifycommand

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
	"kaz/internal/verify/cassette"
	"kaz/internal/verify/replay"
)

func replayCommand() *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "replay CASSETTE",
		Short: "Compare a cassette with the local Azure",
		Long: `Plays the requests of a cassette against an empty local Azure inside of this process, and lists
each difference of the status, of the error code, of how an operation ended, and of the members
of a document. Values are not compared. It sends nothing to Azure.

Exit status 0: nothing differs. 1: something differs, or the command failed.`,
		Example: `  kaz verify replay run.yaml`,
		Args:    cli.Wants(1, 1, "the file that --cassette of kaz verify azure wrote"),
		RunE: func(command *cobra.Command, args []string) error {
			return playCassette(command.Context(), args[0], output, command.OutOrStdout())
		},
	}
	cli.OutputFlag(command, &output)
	return command
}

func playCassette(ctx context.Context, name, output string, out io.Writer) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	exchanges, err := cassette.Read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	local, err := core.New(core.Options{Providers: providers.All(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	result, err := replay.Run(ctx, exchanges, replay.Target{Transport: local.Transport(), Subscription: core.DefaultSubscription})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := cli.PrintAs(out, output, result, result.Text); err != nil {
		return err
	}
	if len(result.Differences) > 0 {
		return cli.ExitCode(1)
	}
	return nil
}
