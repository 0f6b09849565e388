// Package clustercommand has the commands of kaz cluster. Layer L4: flags to options, and results to text and data.
package clustercommand

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/setup"
)

// New returns kaz cluster.
func New() *cobra.Command {
	group := cli.Group("cluster", "Make clusters on Azure from a definition",
		validateCommand(), explainCommand(), schemaCommand(), generateCommand(), importCommand(),
		deployCommand(), upgradeCommand(), scaleCommand(), repairCommand(), backupCommand(),
		restoreCommand(), rotateCommand(), kubeconfigCommand(),
		statusCommand(), doctorCommand(), resumeCommand(), abortCommand(), destroyCommand())
	group.PersistentFlags().StringP("output", "o", "text", "text, json or yaml; standard output then has one document and nothing else")
	group.PersistentPreRunE = func(command *cobra.Command, _ []string) error {
		return cli.PrintAs(io.Discard, format(command), nil, func(io.Writer) error { return nil })
	}
	for _, command := range group.Commands() {
		command.RunE = withStatus(command.RunE)
	}
	return group
}

const layerArguments = "the files of a definition, the base first, such as cluster.yaml team-a.yaml; - for standard input"

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
			d, err := setup.ReadDefinition(command.Context(), command.InOrStdin(), args)
			if err != nil {
				return mistakes(command, err)
			}
			answer := struct {
				Cluster    string `json:"cluster"`
				Valid      bool   `json:"valid"`
				Pools      int    `json:"nodePools"`
				Extensions int    `json:"extensions"`
				Patches    int    `json:"templatePatches"`
			}{d.Cluster.Metadata.Name, true, len(d.Pools), len(d.Extensions), len(d.Patches)}
			return say(command, answer, "Cluster %s is valid: %d node pools, %d extensions, %d template patches", answer.Cluster,
				answer.Pools, answer.Extensions, answer.Patches)
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
			answer := struct {
				Field string `json:"field"`
				Text  string `json:"text"`
			}{args[0], text}
			return show(command, answer, func(out io.Writer) error {
				_, err := io.WriteString(out, text)
				return err
			})
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
			return showJSON(command, text)
		},
	}
}

// showJSON prints a JSON document as it is, or in another format.
func showJSON(command *cobra.Command, text []byte) error {
	if format(command) != "yaml" {
		_, err := command.OutOrStdout().Write(text)
		return err
	}
	return show(command, json.RawMessage(text), nil)
}
