package clustercommand

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/cluster"
	"kaz/internal/cluster/setup"
)

func generateCommand() *cobra.Command {
	var dir, language string
	command := &cobra.Command{
		Use:   "generate FILE...",
		Short: "Generate the template of a cluster without Azure",
		Long: `Reads the layers of a definition and writes what kaz cluster deploy would deploy. The same
definition gives the same bytes. No file has a secret.

Without --output-dir it prints the template. With it, it writes the template, its
parameters, the template of each unit, the boot files, cluster.svg and checksums. cluster.svg
is a picture of the units and of what each needs of others.

--format bicep and --format terraform write the same resources as Bicep modules, and as
a configuration of Terraform with the provider azapi. Both need --output-dir.`,
		Example: `  kaz cluster generate cluster.yaml > template.json
  kaz cluster generate base.yaml team-a.yaml team-b.yaml --output-dir out
  az deployment group create --resource-group prod --template-file out/template.json --parameters out/parameters.json
  kaz cluster generate cluster.yaml --format bicep --output-dir out
  kaz cluster generate cluster.yaml --format terraform --output-dir out`,
		Args: cli.Wants(1, 100, layerArguments),
		RunE: func(command *cobra.Command, args []string) error {
			f := cluster.Format(language)
			if !slices.Contains(cluster.Formats(), f) {
				return fmt.Errorf("--format %q: want arm, bicep or terraform", language)
			}
			if f != cluster.ARM && dir == "" {
				return fmt.Errorf("--format %s writes several files: want --output-dir", language)
			}
			d, err := setup.ReadDefinition(command.Context(), command.InOrStdin(), args)
			if err != nil {
				return mistakes(command, err)
			}
			p, err := cluster.New(d)
			if err != nil {
				return err
			}
			files := p.Files(f)
			if dir != "" {
				return writeFiles(command, dir, files)
			}
			return showJSON(command, files["template.json"])
		},
	}
	command.Flags().StringVar(&language, "format", string(cluster.ARM), "language of the template: arm, bicep or terraform")
	command.Flags().StringVar(&dir, "output-dir", "", "directory for all files (default print the template)")
	return command
}

// writeFiles writes files below a directory.
func writeFiles(command *cobra.Command, dir string, files map[string][]byte) error {
	answer := struct {
		Files []string `json:"files"`
	}{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(file, files[path], 0o600); err != nil {
			return err
		}
		answer.Files = append(answer.Files, file)
	}
	return say(command, answer, "%s", strings.Join(answer.Files, "\n"))
}
