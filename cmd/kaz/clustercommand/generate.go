package clustercommand

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/plan/cluster"
)

func generateCommand() *cobra.Command {
	var dir, format string
	command := &cobra.Command{
		Use:   "generate FILE...",
		Short: "Generate the template of a cluster without Azure",
		Long: `Reads the layers of a definition and writes what kaz cluster deploy would deploy. The same
definition gives the same bytes. No file has a secret.

Without --output-dir it prints the template. With it, it writes the template, its
parameters, the template of each unit, the boot files and checksums.

--format bicep and --format terraform write the same resources as Bicep modules, and as
a configuration of Terraform with the provider azapi. Both need --output-dir.`,
		Example: `  kaz cluster generate cluster.yaml > template.json
  kaz cluster generate base.yaml team-a.yaml team-b.yaml --output-dir out
  az deployment group create --resource-group prod --template-file out/template.json --parameters out/parameters.json
  kaz cluster generate cluster.yaml --format bicep --output-dir out
  kaz cluster generate cluster.yaml --format terraform --output-dir out`,
		Args: cli.Wants(1, 100, layerArguments),
		RunE: func(command *cobra.Command, args []string) error {
			f := cluster.Format(format)
			if !slices.Contains(cluster.Formats(), f) {
				return fmt.Errorf("--format %q: want arm, bicep or terraform", format)
			}
			if f != cluster.ARM && dir == "" {
				return fmt.Errorf("--format %s writes several files: want --output-dir", format)
			}
			d, err := readDefinition(command.InOrStdin(), args)
			if err != nil {
				return mistakes(command, err)
			}
			p, err := cluster.New(d)
			if err != nil {
				return err
			}
			files := p.Files(f)
			if dir != "" {
				return writeFiles(command.OutOrStdout(), dir, files)
			}
			_, err = command.OutOrStdout().Write(files["template.json"])
			return err
		},
	}
	command.Flags().StringVar(&format, "format", string(cluster.ARM), "language of the template: arm, bicep or terraform")
	command.Flags().StringVar(&dir, "output-dir", "", "directory for all files (default print the template)")
	return command
}

// writeFiles writes files below a directory.
func writeFiles(out io.Writer, dir string, files map[string][]byte) error {
	for _, path := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(file, files[path], 0o600); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, file); err != nil {
			return err
		}
	}
	return nil
}
