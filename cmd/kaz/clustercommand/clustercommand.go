// Package clustercommand has the commands of kaz cluster. Layer L4: flags to options, and results to text and data.
package clustercommand

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/plan/cluster/definition"
)

// New returns kaz cluster.
func New() *cobra.Command {
	return cli.Group("cluster", "Make clusters on Azure from a definition",
		validateCommand(), explainCommand(), schemaCommand(), generateCommand(), importCommand(),
		deployCommand(), upgradeCommand(), scaleCommand(), repairCommand(), backupCommand(),
		restoreCommand(), rotateCommand(), kubeconfigCommand(),
		statusCommand(), doctorCommand(), resumeCommand(), abortCommand(), destroyCommand())
}

const layerArguments = "the files of a definition, the base first, such as cluster.yaml team-a.yaml; - for standard input"

// readDefinition reads the layers of a definition.
func readDefinition(in io.Reader, files []string) (definition.Definition, error) {
	var layers []definition.Layer
	for _, file := range files {
		var text []byte
		var err error
		if file == "-" {
			text, err = io.ReadAll(in)
			file = "standard input"
		} else {
			text, err = os.ReadFile(file)
		}
		if err != nil {
			return definition.Definition{}, fmt.Errorf("definition: %w", err)
		}
		layers = append(layers, definition.Layer{Name: file, Text: text})
	}
	return definition.Load(layers...)
}

// mistakes prints the mistakes of a definition, one a line, and returns the exit status 3. It returns other errors.
func mistakes(command *cobra.Command, err error) error {
	problems, ok := errors.AsType[definition.Problems](err)
	if !ok {
		return err
	}
	if _, err := fmt.Fprintln(command.ErrOrStderr(), problems); err != nil {
		return err
	}
	return invalidDefinition
}

// invalidDefinition is the exit status of a definition with mistakes.
const invalidDefinition cli.ExitCode = 3

func validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check a definition without Azure",
		Long: `Reads the layers of a definition and reports all mistakes, each with its file, line,
field and value, and what is allowed. Exit status 3: the definition has mistakes.`,
		Example: `  kaz cluster validate cluster.yaml
  kaz cluster validate cluster.yaml team-a.yaml team-b.yaml`,
		Args: cli.Wants(1, 100, layerArguments),
		RunE: func(command *cobra.Command, args []string) error {
			d, err := readDefinition(command.InOrStdin(), args)
			if err != nil {
				return mistakes(command, err)
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "Cluster %s is valid: %d node pools, %d extensions, %d template patches\n",
				d.Cluster.Metadata.Name, len(d.Pools), len(d.Extensions), len(d.Patches))
			return err
		},
	}
}

func explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain FIELD",
		Short: "Describe a field of a definition",
		Example: `  kaz cluster explain Cluster.spec.network
  kaz cluster explain NodePool.spec.backend`,
		Args: cli.Wants(1, 1, "one field, such as Cluster.spec.controlPlane.zones"),
		RunE: func(command *cobra.Command, args []string) error {
			text, err := definition.Explain(args[0])
			if err != nil {
				return err
			}
			_, err = io.WriteString(command.OutOrStdout(), text)
			return err
		},
	}
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a definition, for editors",
		Example: `  kaz cluster schema > cluster.schema.json
  # first line of a definition, for editors with the YAML language server:
  # yaml-language-server: $schema=cluster.schema.json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			text, err := definition.JSONSchema()
			if err != nil {
				return err
			}
			_, err = command.OutOrStdout().Write(text)
			return err
		},
	}
}
