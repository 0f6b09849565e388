package clustercommand

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/deploy"
	"kaz/internal/cluster/engine"
	"kaz/internal/cluster/record"
)

const clusterArgument = "the name of one cluster, as in its definition"

// placeCommand is a command about a cluster that exists, without its definition.
func placeCommand(command *cobra.Command, run func(*cobra.Command, *engine.Engine, record.Place) error) *cobra.Command {
	return targetCommand(command, func(command *cobra.Command, _ *targetFlags, e *engine.Engine, at record.Place) error {
		return run(command, e, at)
	})
}

// targetCommand is [placeCommand] for a command that depends on which Azure has the cluster.
func targetCommand(command *cobra.Command, run func(*cobra.Command, *targetFlags, *engine.Engine, record.Place) error) *cobra.Command {
	var target targetFlags
	var place clusterPlace
	target.define(command)
	place.define(command)
	command.Args = cli.Wants(1, 1, clusterArgument)
	command.RunE = func(command *cobra.Command, args []string) error {
		e, at, err := place.open(command, &target, args[0])
		if err != nil {
			return err
		}
		return run(command, &target, e, at)
	}
	return command
}

func statusCommand() *cobra.Command {
	var w watchFlags
	command := placeCommand(&cobra.Command{
		Use:   "status NAME",
		Short: "Show the state of a cluster in Azure",
		Long: `Shows the state of a cluster in Azure: its last deployment, its units, and a change that has
begun.

--watch shows how far a deployment or a change has come until it ends: units, machines, and
how long it has lasted. With --kubeconfig it also shows the steps that a change has left, and
how long they will take once each kind of them was seen. q or Ctrl-C ends it. What is not a
terminal gets a line for each change. NO_COLOR turns colours off.`,
		Example: `  kaz cluster status prod --subscription 00000000-0000-0000-0000-000000000001 -o json
  kaz cluster status prod --local --watch
  kaz cluster status prod --watch --kubeconfig prod.kubeconfig`,
	}, func(command *cobra.Command, e *engine.Engine, at record.Place) error {
		if w.watch {
			return w.run(command, e, at)
		}
		status, err := e.Status(command.Context(), at.Names())
		if err == nil && status.State == record.Absent {
			err = notDeployed(at)
		}
		if err != nil {
			return err
		}
		return show(command, status, func(w io.Writer) error { return writeStatus(w, status) })
	})
	w.define(command)
	return command
}

func writeStatus(out io.Writer, s record.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"cluster", s.Cluster}, {"resource group", s.ResourceGroup}, {"last deployment", strings.TrimSpace(s.State + " " + s.Since)},
		{"version", s.Version}, {"API server", s.APIServer}, {"pools", strings.Join(s.Pools, ", ")}, {"open change", s.Change},
		{"resources", fmt.Sprint(s.Resources)},
		{"Secrets in etcd", s.Secrets}, {"authorities", s.Authorities},
	} {
		if line[0] == "authorities" && line[1] == "" {
			continue // no rotation of them has begun
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	for _, u := range s.Units {
		if _, err := fmt.Fprintf(w, "  %s\t%s\t%s\n", u.Name, u.State, u.Since); err != nil {
			return err
		}
	}
	return w.Flush()
}

// recorded is the plan of a cluster from the definition in its deployment.
func recorded(command *cobra.Command, e *engine.Engine, at record.Place) (cluster.Plan, error) {
	p, found, err := e.Recorded(command.Context(), at.Names())
	if err == nil && !found {
		err = notDeployed(at)
	}
	return p, err
}

// notDeployed is the error about a place without a cluster.
func notDeployed(at record.Place) error {
	return fmt.Errorf("resource group %s has no deployment of cluster %s: check --resource-group and --subscription", at.Group, at.Name)
}

func resumeCommand() *cobra.Command {
	var f changeFlags
	command := targetCommand(&cobra.Command{
		Use:   "resume NAME",
		Short: "Go on with a deployment or a change that stopped, without its definition",
		Long: `Goes on with a change of machines that has not ended, such as an upgrade. Without one it
deploys the definition that the last deployment recorded in Azure. It needs no file of
the machine that began.`,
		Example: `  kaz cluster resume prod --subscription 00000000-0000-0000-0000-000000000001`,
	}, func(command *cobra.Command, target *targetFlags, e *engine.Engine, at record.Place) error {
		open, err := e.Open(command.Context(), at.Names())
		if err != nil {
			return err
		}
		if open != nil {
			return f.resume(command, e, *open)
		}
		if f.dryRun {
			return say(command, changeAnswer{Cluster: at.Name, DryRun: true}, "no change of %s has begun", at.Name)
		}
		p, err := recorded(command, e, at)
		if err != nil {
			return err
		}
		return target.deploy(command, e, p, f.kubeconfig, deployAnswer{Cluster: p.Names.Cluster})
	})
	f.define(command)
	return command
}

func abortCommand() *cobra.Command {
	return placeCommand(&cobra.Command{
		Use:   "abort NAME",
		Short: "Cancel the running deployment or change of a cluster; what is done stays",
	}, func(command *cobra.Command, e *engine.Engine, at record.Place) error {
		if err := e.Abort(command.Context(), at.Names()); err != nil {
			return err
		}
		answer := struct {
			Cluster  string `json:"cluster"`
			Canceled bool   `json:"canceled"`
		}{at.Name, true}
		return say(command, answer, "the deployment or change of %s is canceled", at.Name)
	})
}

func destroyCommand() *cobra.Command {
	var yes, purge bool
	command := placeCommand(&cobra.Command{
		Use:   "destroy NAME",
		Short: "Remove a cluster and nothing else",
		Long: `Removes the resource group if kaz made it. Of a group that existed before, it removes only
the resources with the tag of the cluster, and its role assignments. It shows what goes
and asks for the name of the cluster.

Azure keeps a deleted key vault, with the cluster's certificate authorities, and its name
for 7 to 90 days. A cluster of the same name and group can be made again only after
--purge, which nothing brings back.`,
		Example: `  kaz cluster destroy prod --subscription 00000000-0000-0000-0000-000000000001
  kaz cluster destroy dev --yes --purge`,
	}, func(command *cobra.Command, e *engine.Engine, at record.Place) error {
		p, err := recorded(command, e, at)
		if err != nil {
			return err
		}
		r, err := e.Removal(command.Context(), p)
		if err != nil {
			return err
		}
		if err := writeRemoval(command.ErrOrStderr(), p, r); err != nil {
			return err
		}
		if !yes {
			if err := confirm(command, at.Name); err != nil {
				return err
			}
		}
		if err := e.Destroy(command.Context(), p, r); err != nil {
			return err
		}
		if purge {
			if err := e.Purge(command.Context(), p); err != nil {
				return err
			}
		}
		answer := struct {
			Cluster string `json:"cluster"`
			Removed bool   `json:"removed"`
			// Group says that the whole resource group is removed.
			Group     bool       `json:"resourceGroup"`
			Resources []azure.ID `json:"resources,omitempty"`
		}{at.Name, true, r.Group, r.Resources}
		return say(command, answer, "cluster %s is removed", at.Name)
	})
	command.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	command.Flags().BoolVar(&purge, "purge", false, "remove the cluster's key vault for good, so that its name is free")
	return command
}

func writeRemoval(out io.Writer, p cluster.Plan, r deploy.Removal) error {
	kept := "stays: "
	if r.Group {
		kept = "- in the group, and not of the definition: "
		if _, err := fmt.Fprintf(out, "- resource group %s with everything in it\n", p.Names.Group().Name()); err != nil {
			return err
		}
	}
	for _, id := range r.Resources {
		if _, err := fmt.Fprintf(out, "- %s %s\n", id.Type(), id.Name()); err != nil {
			return err
		}
	}
	for _, id := range r.Kept {
		if _, err := fmt.Fprintf(out, "%s%s %s\n", kept, id.Type(), id.Name()); err != nil {
			return err
		}
	}
	return nil
}

// confirm asks for the name of the cluster.
func confirm(command *cobra.Command, name string) error {
	if _, err := fmt.Fprintf(command.ErrOrStderr(), "type the name of the cluster to remove it: "); err != nil {
		return err
	}
	line, err := bufio.NewReader(command.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != name {
		return fmt.Errorf("not confirmed: want the name %s, or --yes", name)
	}
	return nil
}
