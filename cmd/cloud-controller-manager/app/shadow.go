package app

import (
	"context"

	"kaz/internal/cloudprovider"
	plan "kaz/internal/plan/shadow"
	"kaz/internal/shadow"
)

// Shadow decides about the Services, Nodes and routes of a cluster as the cloud-controller-manager of the same configuration does, again
// and again, and compares that with what is there. Like the inspector it cannot write. It reads Azure past the cache, because another
// controller writes.
func Shadow(ctx context.Context, cluster Cluster, o shadow.Options, lookup func(string) (string, bool)) (*plan.Report, error) {
	r, err := openReaders(ctx, cluster, lookup)
	if err != nil {
		return nil, err
	}
	return r.shadow(ctx, cluster, o)
}

func (r readers) shadow(ctx context.Context, cluster Cluster, o shadow.Options) (*plan.Report, error) {
	fresh := reading{r.azure.Fresh()}
	inspector, err := r.inspector(ctx, cluster, fresh)
	if err != nil {
		return nil, err
	}
	config := providerConfig(r.config, nil)
	cloud := cloudprovider.New(config, unwritten{fresh, fresh})
	defer cloud.Close()
	machines, _ := cloud.InstancesV2()
	nodes := shadow.Cluster{Kubernetes: r.kubernetes, Selector: cluster.Nodes, Managed: cloudprovider.Managed}
	sources := []shadow.Source{shadow.Services(inspector.ExplainAll), shadow.Nodes(nodes, machines)}
	if config.Routes.Table != "" {
		sources = append(sources, shadow.Routes(nodes, config.Routes, fresh))
	}
	return shadow.Run(ctx, sources, o), nil
}
