package azurecommand

import (
	"errors"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/localazure/client"
)

// webLink is the link to the web page of a local Azure.
type webLink struct {
	Web string `json:"web"`
}

func webCommand() *cobra.Command {
	var selected selection
	var output string
	command := &cobra.Command{
		Use:   "web",
		Short: "Print the link to the web page of a running local Azure",
		Long: `Prints the link to the web page of a running local Azure: a map of its resources, the
requests as they come, and the fault rules. The page is for browsers on this machine.

The link has a token. Whoever has it sees all resources, but none of their secrets. With
--web-write of the local Azure the page also adds and removes fault rules.`,
		Example: `  kaz local azure web
  xdg-open "$(kaz local azure web)"`,
		Args: cobra.NoArgs,
		RunE: selected.with(func(command *cobra.Command, client *client.Client, _ []string) error {
			link := client.Info().Web
			if link == "" {
				return errors.New("this local Azure was started by a version of kaz that had no web page; start it again")
			}
			return cli.PrintAs(command.OutOrStdout(), output, webLink{link}, line("%s", link))
		}),
	}
	selected.defineOwn(command)
	cli.OutputFlag(command, &output)
	return command
}
