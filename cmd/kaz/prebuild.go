package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kaz/internal/localcluster/controlplane"
	"kaz/internal/localcluster/prebuilt"
)

func prebuildCommand() *cobra.Command {
	var o prebuilt.Options
	command := &cobra.Command{
		Use:   "prebuild",
		Short: "Build what clusters need, for machines without Go",
		Long: `Builds all programs that kaz local up starts for clusters with hollow and real nodes, and
downloads the definitions that it applies. A kaz that the same version of Go has built
uses them if the folder is beside it and is called prebuilt. It needs no Go then.`,
		Example: `  kaz local prebuild --out kaz-local/prebuilt
  kaz local prebuild --out kaz-local-arm64/prebuilt --arch arm64`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if architectures := []string{"", "amd64", "arm64"}; !slices.Contains(architectures, o.Arch) {
				return fmt.Errorf("--arch %s: want one of %s", o.Arch, strings.Join(architectures[1:], ", "))
			}
			o.Progress = func(s controlplane.Step) {
				if s.State == controlplane.Building || s.State == controlplane.Cached {
					fmt.Fprintln(command.OutOrStdout(), s.Program, s.Version, s.State)
				}
			}
			return prebuilt.Make(command.Context(), o)
		},
	}
	command.Flags().StringVar(&o.Dir, "out", "prebuilt", "the folder to fill")
	command.Flags().StringVar(&o.Arch, "arch", "", "processor architecture: amd64 or arm64 (default that of this machine)")
	return command
}
