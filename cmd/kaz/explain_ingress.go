package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	gateway "kaz/cmd/application-gateway-controller/app"
	"kaz/internal/azure"
	"kaz/internal/gateway/explain"
)

func explainIngressCommand() *cobra.Command {
	var e explanation
	var flags gateway.Flags
	run := func(ctx context.Context, args []string, out, _ io.Writer) error {
		return explainIngress(ctx, &e, &flags, args[0], out)
	}
	command := e.define(&cobra.Command{
		Use:   "ingress NAMESPACE/NAME",
		Short: "Show what serves an Ingress at an application gateway, and what it waits for",
		Long: `Reads the Ingresses and what they refer to from Kubernetes, and the application gateway from
Azure, and decides as the application-gateway-controller does. Shows the listeners, rules,
path rules, pools, settings and probes that serve the Ingress, its certificate, endpoints and
the health of its backends, problems, and the last messages. It writes nothing.

Azure gets at most four requests besides polls: the gateway, its public IP address, the health
of its backends, and without --gateway a list of gateways.

Exit status 0: the Ingress is served. 2: something must happen, which is shown. 1: there is a
problem, which is shown, or the command failed.

The cluster and its azure.json are selected as by kaz explain service. The flags of the
application-gateway-controller must be those of the running one. Without --gateway-id and
--gateway it is the only gateway in the resource group.`,
		Example: `  kaz explain ingress default/shop
  kaz explain ingress default/shop -o json
  kaz explain ingress default/shop --gateway-id /subscriptions/.../applicationGateways/gate`,
	}, func(args []string) error { return errors.Join(e.checkIngress(args), flags.Check()) }, run)
	e.namespaceFlag(command)
	flags.AddFlags(command.Flags())
	return command
}

func (e *explanation) checkIngress(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d Ingresses are given: want one, NAMESPACE/NAME, such as default/shop", len(args))
	}
	_, _, err := e.key(args[0], "shop")
	return err
}

// explainIngress explains an Ingress.
func explainIngress(ctx context.Context, e *explanation, flags *gateway.Flags, key string, out io.Writer) error {
	cluster, err := e.find(ctx)
	if err != nil {
		return err
	}
	from, cloud, err := openAzure(ctx, cluster.CloudConfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cluster.Kubernetes)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	config, err := flags.Config(ctx, client, from.Fresh(), cloud)
	if err != nil {
		return explainError(err, cluster.Kubernetes.Host)
	}
	namespace, name, err := e.key(key, "shop")
	if err != nil {
		return err
	}
	facts, err := explain.Gather(ctx, client, fresh{from.Fresh(), from}, config, namespace, name)
	if err != nil {
		return explainError(err, cluster.Kubernetes.Host)
	}
	v, err := facts.Explain(time.Now())
	if err != nil {
		return err
	}
	return e.print(out, v, len(v.Problems) > 0, len(v.Waits) > 0)
}

// fresh reads past the cache.
type fresh struct {
	azure.Reader
	azure.Writer
}
