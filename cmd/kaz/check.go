package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	ccm "kaz/cmd/cloud-controller-manager/app"
	"kaz/internal/component/access"
	"kaz/internal/plan/check"
)

// checkOptions are the flags of kaz check.
type checkOptions struct {
	explanation
	before string
}

func checkCommand() *cobra.Command {
	o := checkOptions{explanation: explanation{onlyText: true}}
	command := o.define(&cobra.Command{
		Use:   "check",
		Short: "Check a cluster and its Azure: what is right, what is not, why, and what mends it",
		Long: `Reads the cluster and its Azure, and shows for each area what is ok, a warning, a problem
or unknown, why, and what mends it: the way to Azure and to the API server, azure.json, the
identity and its rights, the clock, the versions of kaz's components, Nodes and machines,
Services and load balancers, volumes with their disks and shares, node groups, application
gateways, DNS zones, operations of Azure that are not finished, what claims and pods wait for,
quotas, and what deleted Services left. It writes nothing.

What cannot be read is unknown, and the rest is checked. The identity and the clock are
those of azure.json on the machine that runs the command.

--before selects what matters before an occasion: install of kaz's components, switch from
another cloud provider, or upgrade of kaz or Kubernetes.

Exit status 0: all is ok. 2: there are warnings, or something is unknown. 1: there is a
problem, or the command failed.

The cluster and its azure.json are selected as by kaz explain service.`,
		Example: `  kaz check
  kaz check --before upgrade
  kaz check -o json --kubeconfig admin.conf --cloud-config azure.json --cluster-name prod`,
	}, o.checkArguments, o.run)
	o.cluster.defineSecret(command)
	command.Flags().StringVar(&o.before, "before", "",
		"check what matters before "+strings.Join(check.Occasions(), ", ")+" (default all)")
	return command
}

func (o *checkOptions) checkArguments(args []string) error {
	allowed := check.Occasions()
	switch {
	case len(args) > 0:
		return fmt.Errorf("%s: want no argument", strings.Join(args, " "))
	case o.before != "" && !slices.Contains(allowed, o.before):
		return fmt.Errorf("--before %s: want %s", o.before, strings.Join(allowed, ", "))
	}
	return nil
}

func (o *checkOptions) run(ctx context.Context, _ []string, out, _ io.Writer) error {
	cluster, err := o.find(ctx)
	if err != nil {
		return err
	}
	report, err := ccm.Check(ctx, cluster, o.before, os.LookupEnv, access.ClientOptions{})
	if err != nil {
		return err
	}
	return o.print(out, report, report.Has(check.Problem), report.Has(check.Warning, check.Unknown))
}
