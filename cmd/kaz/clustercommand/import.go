package clustercommand

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/cluster/apimodel"
)

func importCommand() *cobra.Command {
	var o apimodel.Options
	command := &cobra.Command{
		Use:   "import MODEL.json",
		Short: "Make a definition from an API model of aks-engine",
		Long: `Reads the apimodel.json of a cluster that aks-engine made, and prints a definition of a new
cluster like it: members, node pools, network, flags and people's keys. Standard error has
all fields that the definition does not have, each with its reason. No secret of the model
is printed. The old cluster stays as it is.

Exit status 3: the definition has mistakes, which standard error has, too.`,
		Example: `  kaz cluster import apimodel.json --subscription 00000000-0000-0000-0000-000000000001 \
    --tenant 00000000-0000-0000-0000-0000000000aa > cluster.yaml
  kaz cluster validate cluster.yaml`,
		Args: cli.Wants(1, 1, "the file of one model, or - for standard input"),
		RunE: func(command *cobra.Command, args []string) error {
			text, err := readModel(command.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			r, err := apimodel.Import(text, o)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return writeImported(command, r)
		},
	}
	f := command.Flags()
	f.StringVar(&o.Subscription, "subscription", "", "id of the subscription of the new cluster")
	f.StringVar(&o.Tenant, "tenant", "", "id of the tenant of the subscription")
	f.StringVarP(&o.ResourceGroup, "resource-group", "g", "", "resource group of the new cluster (default its name)")
	f.StringVar(&o.Name, "name", "", "name of the new cluster (default the DNS prefix of the model)")
	f.StringVar(&o.Location, "location", "", "region of the new cluster, if the model has none")
	f.StringVar(&o.Version, "kubernetes-version", "1.36.3", "version of Kubernetes, if that of the model is older than 1.31")
	return command
}

func readModel(in io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(file)
}

// dropped is a field that a definition does not have, as data.
type dropped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func writeImported(command *cobra.Command, r apimodel.Result) error {
	answer := struct {
		Definition string    `json:"definition"`
		Dropped    []dropped `json:"dropped"`
		Problems   []problem `json:"problems"`
	}{string(r.Definition), []dropped{}, problemsOf(r.Problems)}
	for _, d := range r.Dropped {
		answer.Dropped = append(answer.Dropped, dropped{d.Path, d.Reason})
	}
	if err := show(command, answer, func(out io.Writer) error { return printImported(out, command.ErrOrStderr(), r) }); err != nil {
		return err
	}
	if len(r.Problems) > 0 {
		return invalid
	}
	return nil
}

func printImported(out, errs io.Writer, r apimodel.Result) error {
	if _, err := out.Write(r.Definition); err != nil {
		return err
	}
	for _, d := range r.Dropped {
		if _, err := fmt.Fprintf(errs, "dropped %s\n", d); err != nil {
			return err
		}
	}
	if len(r.Problems) == 0 {
		return nil
	}
	_, err := fmt.Fprintln(errs, r.Problems)
	return err
}
