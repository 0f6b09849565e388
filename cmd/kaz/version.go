package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/component/release"
	"kaz/internal/localcluster/controlplane"
)

// versionReport is what kaz version prints.
type versionReport struct {
	release.Build
	// Kubernetes are the releases that kaz local runs, the newest first.
	Kubernetes []string `json:"kubernetes"`
}

func versionCommand() *cobra.Command {
	var output string
	command := &cobra.Command{
		Use: "version", Short: "Print the version of kaz, its commit, and the releases of Kubernetes that it runs", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			releases, err := controlplane.Releases()
			if err != nil {
				return err
			}
			r := versionReport{release.Describe(), releases}
			return cli.PrintAs(command.OutOrStdout(), output, r, func(w io.Writer) error { return r.write(w, command.Root().Name()) })
		},
	}
	cli.OutputFlag(command, &output)
	return command
}

// write prints the report as text. What is not known has no line.
func (r versionReport) write(w io.Writer, program string) error {
	fmt.Fprintln(w, release.Line(program))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"commit", r.Commit}, {"date", r.Date}, {"Go", r.Go}, {"platform", r.Platform}, {"Kubernetes", strings.Join(r.Kubernetes, ", ")},
	} {
		if line[1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", line[0], line[1])
		}
	}
	return t.Flush()
}
