package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"kaz/internal/csi/explain"
	"kaz/internal/plan/share"
)

func explainVolumeCommand() *cobra.Command {
	var e explanation
	run := func(ctx context.Context, args []string, out, _ io.Writer) error {
		return explainVolume(ctx, &e, args[0], out)
	}
	command := e.define(&cobra.Command{
		Use:   "volume NAMESPACE/CLAIM",
		Short: "Show where the disk or share of a PersistentVolumeClaim is, and what it waits for",
		Long: `Reads the claim, its volume, attachments, pods and nodes from Kubernetes. From Azure it reads
the disk and the machines that have it, or the share and its storage account. Shows where the
volume is, what must happen next, what does not happen by itself, and the last messages of
Azure and Kubernetes. It writes nothing.

Exit status 0: nothing is pending. 2: something must happen, which is shown. 1: there is a
problem, which is shown, or the command failed.

The cluster and its azure.json are selected as by kaz explain service.`,
		Example: `  kaz explain volume default/data-db-0
  kaz explain volume default/data-db-0 -o json
  kaz explain volume default/data-db-0 --kubeconfig admin.conf --cloud-config azure.json`,
	}, e.checkClaim, run)
	e.namespaceFlag(command)
	return command
}

func (e *explanation) checkClaim(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d claims are given: want one, NAMESPACE/NAME, such as default/data", len(args))
	}
	_, _, err := e.key(args[0], "data")
	return err
}

// explainVolume explains a claim.
func explainVolume(ctx context.Context, e *explanation, key string, out io.Writer) error {
	cluster, err := e.find(ctx)
	if err != nil {
		return err
	}
	from, config, err := openAzure(ctx, cluster.CloudConfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cluster.Kubernetes)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	namespace, name, err := e.key(key, "data")
	if err != nil {
		return err
	}
	home := share.Cluster{Subscription: config.SubscriptionID, ResourceGroup: config.ResourceGroup}
	facts, err := explain.Gather(ctx, client, from.Fresh(), home, namespace, name)
	if err != nil {
		return explainError(err, cluster.Kubernetes.Host)
	}
	v, err := facts.Explain()
	if err != nil {
		return err
	}
	return e.print(out, v, len(v.Problems) > 0, len(v.Waits) > 0)
}
