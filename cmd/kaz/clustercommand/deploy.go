package clustercommand

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"kaz/cmd/kaz/cli"
	"kaz/internal/engine"
	"kaz/internal/engine/preflight"
	"kaz/internal/local/atomicfile"
	"kaz/internal/plan/cluster"
)

// Exit statuses of kaz cluster besides 0, 1 and invalidDefinition, which preflight findings have, too.
const deploymentFailed cli.ExitCode = 6

// deployFlags are the flags of kaz cluster deploy.
type deployFlags struct {
	target         targetFlags
	dryRun, whatIf bool
	kubeconfig     string
}

func deployCommand() *cobra.Command {
	var o deployFlags
	command := &cobra.Command{
		Use:   "deploy FILE...",
		Short: "Deploy a cluster, or bring it to its definition",
		Long: `Checks first that Azure will take the cluster: credentials, rights, location, sizes, zones,
quota, names, networks. If a check fails, nothing is written. Then it deploys the units
that are not deployed or have changed, and shows their progress. The first deployment
writes a kubeconfig.

If a deployment stops, the same command goes on where it stopped, also on another
machine. Exit status 3: the definition has mistakes, or a check failed. 6: Azure could
not deploy a resource.

Credentials are found in the environment (AZURE_CLIENT_ID, AZURE_TENANT_ID,
AZURE_CLIENT_SECRET), as a workload identity, as a managed identity, or from az login.`,
		Example: `  kaz cluster deploy cluster.yaml --dry-run
  kaz cluster deploy cluster.yaml team-a.yaml team-b.yaml
  kaz cluster deploy cluster.yaml --what-if

  # on an Azure on this machine
  kaz local azure &
  kaz cluster deploy cluster.yaml --local`,
		Args: cli.Wants(1, 100, layerArguments),
		RunE: func(command *cobra.Command, args []string) error {
			p, err := o.target.plan(command, args)
			if err != nil {
				return err
			}
			e, err := o.target.engine(command.Context(), p.Definition.Cluster.Spec.Azure, command.ErrOrStderr())
			if err != nil {
				return err
			}
			return o.run(command, e, p)
		},
	}
	o.target.define(command)
	f := command.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "only check, and show which units would be deployed")
	f.BoolVar(&o.whatIf, "what-if", false, "only ask Azure which resources would change, and how")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "file for the kubeconfig of a new cluster (default NAME.kubeconfig)")
	return command
}

// run checks and deploys a plan, or shows what would be done.
func (o deployFlags) run(command *cobra.Command, e *engine.Engine, p cluster.Plan) error {
	ctx, out := command.Context(), command.OutOrStdout()
	if err := check(ctx, e, p, command.ErrOrStderr()); err != nil {
		return err
	}
	switch {
	case o.whatIf:
		return printChanges(ctx, e, p, out)
	case o.dryRun:
		units, err := e.Preview(ctx, p)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "all checks passed; %d of %d units would be deployed: %s\n", len(units), len(p.Graph.Units),
			strings.Join(units, ", "))
		return err
	}
	if err := deploy(ctx, e, p, o.kubeconfig, out, command.ErrOrStderr()); err != nil || !o.target.local {
		return err
	}
	return reachHere(ctx, e.Azure, p, cmp.Or(o.kubeconfig, p.Names.Cluster+".kubeconfig"))
}

// check prints the findings of the preflight, and returns an exit status if one of them stops a deployment.
func check(ctx context.Context, e *engine.Engine, p cluster.Plan, errs io.Writer) error {
	found, err := preflight.Run(ctx, e, p)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		if _, err := fmt.Fprintln(errs, found); err != nil {
			return err
		}
	}
	if found.Stop() {
		return invalidDefinition
	}
	return nil
}

func printChanges(ctx context.Context, e *engine.Engine, p cluster.Plan, out io.Writer) error {
	changes, err := e.WhatIf(ctx, p)
	if err != nil {
		return err
	}
	shown := 0
	for _, c := range changes {
		if c.Type == "NoChange" || c.Type == "Ignore" {
			continue
		}
		shown++
		if _, err := fmt.Fprintln(out, c); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "%d resources would change\n", shown)
	return err
}

func deploy(ctx context.Context, e *engine.Engine, p cluster.Plan, file string, out, errs io.Writer) error {
	if file == "" {
		file = p.Names.Cluster + ".kubeconfig"
	}
	result, err := e.Deploy(ctx, p, func(kubeconfig []byte) error { return saveKubeconfig(file, kubeconfig) })
	if failed, ok := errors.AsType[*engine.DeployError](err); ok {
		if _, err := fmt.Fprintln(errs, failed); err != nil {
			return err
		}
		return deploymentFailed
	}
	if err != nil {
		return err
	}
	if result.Unchanged {
		_, err = fmt.Fprintf(out, "cluster %s is up to date\n", p.Names.Cluster)
		return err
	}
	if _, err = fmt.Fprintf(out, "cluster %s is deployed: %d units, API server %s\n", p.Names.Cluster, len(result.Units),
		p.Names.Host()); err != nil {
		return err
	}
	if result.Kubeconfig != nil {
		_, err = fmt.Fprintln(out, "kubeconfig:", file)
	}
	return err
}

// saveKubeconfig writes a kubeconfig that only its owner can read. It does not replace that of another cluster.
func saveKubeconfig(file string, text []byte) error {
	had, err := os.ReadFile(file)
	if err == nil && !bytes.Equal(had, text) {
		old, oldErr := clientcmd.Load(had)
		now, nowErr := clientcmd.Load(text)
		if oldErr != nil || nowErr != nil || serverOf(old.Clusters) != serverOf(now.Clusters) {
			return fmt.Errorf("%s exists and is of another cluster: want another --kubeconfig", file)
		}
	}
	return atomicfile.Write(file, text, 0o600)
}
