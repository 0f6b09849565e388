package azurecommand

import (
	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/localazure/client"
)

// selection select a running local Azure.
type selection struct {
	endpoint, token, caFile, subscription, dir string
}

func (a *selection) define(command *cobra.Command) {
	a.defineOwn(command)
	f := command.Flags()
	f.StringVar(&a.token, "token", "", "bearer token for --endpoint, if another user runs the local Azure")
	f.StringVar(&a.caFile, "ca-file", "", "certificate authority of --endpoint, with --token")
	f.StringVar(&a.subscription, "subscription", "00000000-0000-0000-0000-000000000001", "subscription at --endpoint, with --token")
}

// defineOwn defines the flags that select among the local Azures of this user.
func (a *selection) defineOwn(command *cobra.Command) {
	command.Flags().StringVar(&a.endpoint, "endpoint", "", "base URL of the local Azure (default the running one)")
	cli.DirFlag(command, &a.dir)
}

func (a *selection) open(command *cobra.Command) (*client.Client, error) {
	if a.endpoint != "" && a.token != "" {
		return client.New(client.Info{ARM: a.endpoint, Token: a.token, CAFile: a.caFile, Subscription: a.subscription})
	}
	info, err := a.find(command)
	if err != nil {
		return nil, err
	}
	return client.New(info)
}

// find returns the description of the selected local Azure of this user.
func (a *selection) find(command *cobra.Command) (client.Info, error) {
	dirs := []string{a.dir}
	if !command.Flags().Changed("dir") {
		announced, err := client.AnnounceDir()
		if err != nil {
			return client.Info{}, err
		}
		dirs = append(dirs, announced)
	}
	return client.Find(command.Context(), a.endpoint, dirs...)
}

// with returns a command function that runs with a client of the selected local Azure.
func (a *selection) with(
	run func(command *cobra.Command, client *client.Client, args []string) error,
) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		client, err := a.open(command)
		if err != nil {
			return err
		}
		defer client.Close()
		return run(command, client, args)
	}
}
