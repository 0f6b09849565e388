package cli

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kaz/internal/localazure/client"
)

// DirFlag defines --dir, with the same default for all commands.
func DirFlag(command *cobra.Command, dir *string) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "."
	}
	command.Flags().StringVar(dir, "dir", cmp.Or(os.Getenv(client.DirVariable), filepath.Join(home, ".kaz", "local")),
		"directory of the cluster: state, keys, logs, files for clients; its env.sh sets the default, $"+client.DirVariable)
}

// SameArguments returns the arguments that run a command with the same flags in another process, without some flags. Its directory
// is always named.
func SameArguments(command *cobra.Command, args []string, without ...string) []string {
	add := func(name, value string) { args = append(args, "--"+name+"="+value) }
	command.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(without, f.Name) {
			return
		}
		list, isList := f.Value.(pflag.SliceValue)
		if !isList {
			add(f.Name, f.Value.String())
			return
		}
		for _, value := range list.GetSlice() {
			add(f.Name, value)
		}
	})
	if dir := command.Flags().Lookup("dir"); !dir.Changed && !slices.Contains(without, dir.Name) {
		add(dir.Name, dir.Value.String())
	}
	return args
}
