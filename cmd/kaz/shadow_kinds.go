package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"k8s.io/client-go/kubernetes"

	ccm "kaz/cmd/cloud-controller-manager/app"
	"kaz/internal/autoscale"
	"kaz/internal/azure"
	"kaz/internal/csi/kube"
	"kaz/internal/dns"
	gateways "kaz/internal/gateway/explain"
	plandisk "kaz/internal/plan/disk"
	"kaz/internal/plan/nodegroup"
	"kaz/internal/plan/records"
	"kaz/internal/plan/share"
	"kaz/internal/shadow"
	shadowgateways "kaz/internal/shadow/gateways"
	"kaz/internal/shadow/names"
	"kaz/internal/shadow/nodegroups"
	"kaz/internal/shadow/volumes"
)

// checkKinds validates the flags of further kinds.
func (o *shadowOptions) checkKinds() (problems []error) {
	if _, err := nodegroup.ParseSelection(o.named, o.discovery); err != nil {
		problems = append(problems, err)
	}
	if o.owner != "" && len(o.groups) == 0 {
		problems = append(problems, fmt.Errorf("--txt-owner-id %s: want --zone-resource-group, too", o.owner))
	}
	if o.hasGateway() {
		if err := o.gateway.Check(); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// hasGateway reports whether Ingresses and Gateways are compared.
func (o *shadowOptions) hasGateway() bool {
	return o.flags.Changed("gateway") || o.flags.Changed("gateway-id")
}

// further returns what decides about volumes, and about the kinds with flags of their own. Watches run until ctx ends.
func (o *shadowOptions) further(ctx context.Context, b *ccm.Beside) ([]shadow.Source, error) {
	client, err := kube.New(b.Client)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	log := slog.New(slog.DiscardHandler)
	c := b.Config
	config := volumes.Config{Kubernetes: b.Kubernetes, Azure: b.Azure, Log: log}
	sources := []shadow.Source{
		volumes.Disks(ctx, config, client, plandisk.Cluster{
			Subscription: c.SubscriptionID, ResourceGroup: c.ResourceGroup, Location: c.Location,
		}),
		volumes.Shares(config, client, share.Cluster{Subscription: c.SubscriptionID, ResourceGroup: c.ResourceGroup, Location: c.Location}),
	}
	if len(o.named)+len(o.discovery) > 0 {
		source, err := o.nodeGroups(b, log)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	if o.hasGateway() {
		clients, err := o.gateway.Clients(b.Client)
		if err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
		sources = append(sources, shadowgateways.Source(clients, b.Azure, func(ctx context.Context) (gateways.Config, error) {
			return o.gateway.Config(ctx, b.Kubernetes, b.Azure, b.Config)
		}))
	}
	if len(o.groups) > 0 {
		sources = append(sources, o.names(b.Kubernetes, b, log))
	}
	return sources, nil
}

func (o *shadowOptions) nodeGroups(b *ccm.Beside, log *slog.Logger) (shadow.Source, error) {
	selection, err := nodegroup.ParseSelection(o.named, o.discovery)
	return nodegroups.Source(b.Kubernetes, autoscale.Config{
		Azure: shadow.Unwritten{Reader: b.Azure}, ResourceGroup: azure.GroupID(b.Config.SubscriptionID, b.Config.ResourceGroup),
		Location:  strings.ToLower(strings.ReplaceAll(b.Config.Location, " ", "")),
		Selection: selection, Log: log,
	}), err
}

func (o *shadowOptions) names(client kubernetes.Interface, b *ccm.Beside, log *slog.Logger) shadow.Source {
	return names.Source(client, dns.Config{
		Azure: shadow.Unwritten{Reader: b.Azure}, Zones: zonesOf(b.Config.SubscriptionID, b.Config.ResourceGroup, o.groups),
		Options: records.Options{DefaultTTL: dns.DefaultTTL}, Refresh: dns.Refresh, Log: log,
	}, o.owner)
}
