package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	gateway "kaz/cmd/application-gateway-controller/app"
	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/gateway/explain"
	"kaz/internal/plan/gateway/gatewayapi"
	"kaz/internal/plan/gateway/ingress"
)

func explainIngressCommand() *cobra.Command {
	return (&served{kind: ingress.Kind, plural: "Ingresses", example: "shop"}).define(&cobra.Command{
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
	})
}

const explainAPILong = `Reads the objects of the Gateway API, the Ingresses and what they refer to from Kubernetes,
and the application gateway from Azure, and decides as the application-gateway-controller does.
%s It writes nothing.

Azure gets at most four requests besides polls: the gateway, its public IP address, the health
of its backends, and without --gateway a list of gateways.

Exit status 0: the object is served. 2: something must happen, which is shown. 1: there is a
problem, which is shown, or the command failed.

The cluster and its azure.json are selected as by kaz explain service. The flags of the
application-gateway-controller must be those of the running one. Without --gateway-id and
--gateway it is the only gateway in the resource group. --at names another one of
--further-gateway-ids.`

func explainGatewayCommand() *cobra.Command {
	return (&served{kind: gatewayapi.KindGateway, plural: "Gateways", example: "gate"}).define(&cobra.Command{
		Use:   "gateway NAMESPACE/NAME",
		Short: "Show what serves a Gateway at an application gateway, and what it waits for",
		Long: fmt.Sprintf(explainAPILong, `Shows the conditions of the Gateway and its listeners, whether it is programmed and why not,
its address, and what serves its routes.`),
		Example: `  kaz explain gateway default/gate
  kaz explain gateway default/gate -o json
  kaz explain gateway default/gate --gateway-id /subscriptions/.../applicationGateways/gate`,
	})
}

func explainRouteCommand() *cobra.Command {
	return (&served{kind: gatewayapi.KindRoute, plural: "HTTPRoutes", example: "shop"}).define(&cobra.Command{
		Use:   "httproute NAMESPACE/NAME",
		Short: "Show what serves an HTTPRoute at an application gateway, and what it waits for",
		Long: fmt.Sprintf(explainAPILong, `Shows the parents of the route with their conditions, its rules, and the listeners, path rules,
pools, settings and probes that serve it, its certificates, endpoints and their health.`),
		Example: `  kaz explain httproute default/shop
  kaz explain httproute default/shop -o json
  kaz explain httproute default/shop --gateway-id /subscriptions/.../applicationGateways/gate`,
	})
}

// explainStreamCommand explains routes of a kind for connections of TCP or TLS.
func explainStreamCommand(kind, example string) *cobra.Command {
	name := strings.ToLower(kind)
	return (&served{kind: kind, plural: kind + "s", example: example}).define(&cobra.Command{
		Use:   name + " NAMESPACE/NAME",
		Short: "Show what serves a " + kind + " at an application gateway, and what it waits for",
		Long: fmt.Sprintf(explainAPILong, `Shows the parents of the route with their conditions, its rule, and the listener, pool,
settings and probe that serve it, its certificates and endpoints.`),
		Example: fmt.Sprintf(`  kaz explain %[1]s default/%[2]s
  kaz explain %[1]s default/%[2]s -o json
  kaz explain %[1]s default/%[2]s --gateway-id /subscriptions/.../applicationGateways/gate`, name, example),
	})
}

// served is a command that explains an object that an application gateway serves.
type served struct {
	explanation
	flags                 gateway.Flags
	kind, plural, example string
	at                    string
}

func (s *served) define(command *cobra.Command) *cobra.Command {
	check := func(args []string) error { return errors.Join(s.checkArguments(args), s.flags.Check()) }
	command = s.explanation.define(command, check, s.run)
	s.namespaceFlag(command)
	s.flags.AddFlags(command.Flags())
	if s.kind != ingress.Kind {
		command.Flags().StringVar(&s.at, "at", "", "id of the application gateway that is explained (default that of --gateway-id)")
	}
	return command
}

func (s *served) checkArguments(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d %s are given: want one, NAMESPACE/NAME, such as default/%s", len(args), s.plural, s.example)
	}
	if id, err := azure.ParseID(s.at); s.at != "" && (err != nil || !id.Is(network.ApplicationGateways)) {
		return fmt.Errorf("--at %q: must be /subscriptions/.../providers/%s/NAME", s.at, network.ApplicationGateways)
	}
	_, _, err := s.key(args[0], s.example)
	return err
}

// verdict is the explanation of an object of any kind.
type verdict interface {
	fmt.Stringer
	pictured
	Verdict() explain.Common
}

// run explains an object.
func (s *served) run(ctx context.Context, args []string, out, _ io.Writer) error {
	facts, err := s.facts(ctx, args[0])
	if err != nil {
		return err
	}
	var v verdict
	switch {
	case s.kind == gatewayapi.KindGateway:
		v, err = facts.ExplainGateway(time.Now())
	case gatewayapi.IsRoute(s.kind):
		v, err = facts.ExplainRoute(time.Now())
	default:
		v, err = facts.Explain(time.Now())
	}
	if err != nil {
		return err
	}
	common := v.Verdict()
	return s.print(out, v, len(common.Problems) > 0, len(common.Waits) > 0)
}

// facts reads the facts about an object.
func (s *served) facts(ctx context.Context, key string) (*explain.Facts, error) {
	cluster, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	from, cloud, err := openAzure(ctx, cluster.CloudConfig)
	if err != nil {
		return nil, err
	}
	clients, err := s.flags.Clients(cluster.Kubernetes)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config, err := s.flags.Config(ctx, clients.Kube, from.Fresh(), cloud)
	if err != nil {
		return nil, explainError(err, cluster.Kubernetes.Host)
	}
	if s.at != "" {
		config.Gateway = azure.ID(s.at)
	}
	of := explain.Subject{Kind: s.kind}
	if of.Namespace, of.Name, err = s.key(key, s.example); err != nil {
		return nil, err
	}
	facts, err := explain.Gather(ctx, clients, fresh{from.Fresh(), from}, config, of)
	if err != nil {
		return nil, explainError(err, cluster.Kubernetes.Host)
	}
	return facts, nil
}

// fresh reads past the cache.
type fresh struct {
	azure.Reader
	azure.Writer
}
