package clustercommand

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/cluster"
	"kaz/internal/cluster/deploy"
	"kaz/internal/cluster/engine"
	"kaz/internal/cluster/failure"
	"kaz/internal/cluster/finding"
	"kaz/internal/cluster/preflight"
	"kaz/internal/cluster/setup"
)

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
machine. Exit status 3: the definition has mistakes, or a check failed. 5: Azure has no
room. 6: Azure could not deploy a resource. 8: another deployment or change runs.

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
			e, err := o.target.engine(p.Definition.Cluster.Spec.Azure, command.ErrOrStderr())
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

// deployAnswer is what a deployment did, or would do.
type deployAnswer struct {
	Cluster string `json:"cluster"`
	// Findings are those of the checks.
	Findings finding.List `json:"findings,omitempty"`
	// Units are those that were deployed, or would be.
	Units      []string           `json:"units,omitempty"`
	Changes    []deploy.Change    `json:"changes,omitempty"`
	DryRun     bool               `json:"dryRun,omitempty"`
	Unchanged  bool               `json:"unchanged,omitempty"`
	APIServer  string             `json:"apiServer,omitempty"`
	Kubeconfig string             `json:"kubeconfig,omitempty"`
	Failures   []failure.Resource `json:"failures,omitempty"`
	// Documents says that the local Azure has the cluster as documents: no machine boots, and no API server answers.
	Documents bool `json:"documentsOnly,omitempty"`
}

// noMachines is said before the deployment of a cluster that has documents as machines.
const noMachines = "this local Azure boots no machines: cluster %s will be documents without an API server, and gets no kubeconfig; " +
	"for one that runs, start kaz local azure with --machines-dir\n"

// run checks and deploys a plan, or shows what would be done.
func (o deployFlags) run(command *cobra.Command, e *engine.Engine, p cluster.Plan) error {
	ctx := command.Context()
	answer := deployAnswer{Cluster: p.Names.Cluster, DryRun: o.dryRun || o.whatIf}
	if err := check(command, e, p, &answer); err != nil {
		return err
	}
	switch {
	case o.whatIf:
		return showChanges(command, e, p, answer)
	case o.dryRun:
		units, err := e.Preview(ctx, p)
		if err != nil {
			return err
		}
		answer.Units = units
		return say(command, answer, "all checks passed; %d of %d units would be deployed: %s", len(units), len(p.Graph.Units),
			strings.Join(units, ", "))
	}
	return o.target.deploy(command, e, p, o.kubeconfig, answer)
}

// deployPlan deploys a plan and shows the answer. It says before if no machine will boot. If the machines of a local Azure boot, the
// kubeconfig then reaches the API server from this machine.
func (t *targetFlags) deploy(command *cobra.Command, e *engine.Engine, p cluster.Plan, kubeconfig string, answer deployAnswer) error {
	if answer.Documents = t.documents(); answer.Documents {
		if _, err := fmt.Fprintf(command.ErrOrStderr(), noMachines, p.Names.Cluster); err != nil {
			return err
		}
	}
	kubeconfig = cmp.Or(kubeconfig, p.Names.Cluster+".kubeconfig")
	if err := deployPlan(command, e, p, kubeconfig, answer); err != nil || !t.local || answer.Documents {
		return err
	}
	return setup.ReachHere(command.Context(), e.Azure, p, kubeconfig)
}

// check adds the findings of the preflight to an answer, and returns an exit status if one of them stops a deployment.
func check(command *cobra.Command, e *engine.Engine, p cluster.Plan, answer *deployAnswer) error {
	found, err := preflight.Run(command.Context(), e.Deployer, p)
	if err != nil {
		return err
	}
	answer.Findings = found
	if len(found) > 0 && format(command) == "text" {
		if _, err := fmt.Fprintln(command.ErrOrStderr(), found); err != nil {
			return err
		}
	}
	if !found.Stop() {
		return nil
	}
	if err := show(command, answer, func(io.Writer) error { return nil }); err != nil {
		return err
	}
	return invalid
}

func showChanges(command *cobra.Command, e *engine.Engine, p cluster.Plan, answer deployAnswer) error {
	changes, err := e.WhatIf(command.Context(), p)
	if err != nil {
		return err
	}
	answer.Changes = slices.DeleteFunc(changes, func(c deploy.Change) bool { return c.Type == "NoChange" || c.Type == "Ignore" })
	return show(command, answer, func(out io.Writer) error {
		for _, c := range answer.Changes {
			if _, err := fmt.Fprintln(out, c); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(out, "%d resources would change\n", len(answer.Changes))
		return err
	})
}

func deployPlan(command *cobra.Command, e *engine.Engine, p cluster.Plan, file string, answer deployAnswer) error {
	undo := func() error { return nil }
	result, err := e.Deploy(command.Context(), p, func(kubeconfig []byte) (err error) {
		if !answer.Documents {
			undo, err = setup.SaveKubeconfig(file, kubeconfig)
		}
		return err
	})
	if errors.Is(err, deploy.ErrRunning) { // the other deployment has another certificate authority
		err = errors.Join(err, undo())
	}
	if failed, ok := errors.AsType[*failure.Error](err); ok {
		answer.Failures = failed.Failures
		if err := show(command, answer, func(io.Writer) error { return nil }); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(command.ErrOrStderr(), failed); err != nil {
			return err
		}
		return cmp.Or(statusOf(err), deploymentFailed)
	}
	if err != nil {
		return err
	}
	answer.Units, answer.Unchanged, answer.APIServer = result.Units, result.Unchanged, p.Names.Host()
	if result.Kubeconfig != nil && !answer.Documents {
		answer.Kubeconfig = file
	}
	return show(command, answer, answer.write)
}

func (a deployAnswer) write(out io.Writer) error {
	if a.Unchanged {
		_, err := fmt.Fprintf(out, "cluster %s is up to date\n", a.Cluster)
		return err
	}
	if a.Documents {
		_, err := fmt.Fprintf(out, "cluster %s is deployed as documents: %d units; no machine boots\n", a.Cluster, len(a.Units))
		return err
	}
	_, err := fmt.Fprintf(out, "cluster %s is deployed: %d units, API server %s\n", a.Cluster, len(a.Units), a.APIServer)
	if err == nil && a.Kubeconfig != "" {
		_, err = fmt.Fprintln(out, "kubeconfig:", a.Kubeconfig)
	}
	return err
}
