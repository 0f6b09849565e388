package app

import (
	"context"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kaz/internal/azure"
	"kaz/internal/cloudconfig"
	"kaz/internal/cloudprovider"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/shadow"
)

// Beside reads a cluster and its Azure while other controllers are in charge. Like the inspector it cannot write. It reads Azure past the
// cache, because the other controllers write.
type Beside struct {
	// Config is the cloud configuration, without what access to Azure needs alone.
	Config cloudconfig.Config
	// Client and Kubernetes send GET requests only.
	Client     *rest.Config
	Kubernetes kubernetes.Interface
	Azure      azure.Reader
	// Sources decide about Services, Nodes and routes as the cloud-controller-manager of the same configuration. Without a route table
	// there are no routes.
	Sources []shadow.Source
	// Close ends what was opened.
	Close func()
}

// OpenBeside opens a cluster and its Azure.
func OpenBeside(ctx context.Context, cluster Cluster, lookup func(string) (string, bool)) (*Beside, error) {
	r, err := openReaders(ctx, cluster, lookup)
	if err != nil {
		return nil, err
	}
	b := r.beside(cluster)
	b.Client = readOnly(cluster.Kubernetes)
	return b, nil
}

func (r readers) beside(cluster Cluster) *Beside {
	fresh := reading{r.azure.Fresh()}
	services := func(ctx context.Context) (explain.Explanation, error) {
		inspector, err := r.inspector(ctx, cluster, fresh) // it reads Kubernetes once
		if err != nil {
			return explain.Explanation{}, err
		}
		return inspector.ExplainAll(ctx)
	}
	config := providerConfig(r.config, nil)
	cloud := cloudprovider.New(config, unwritten{fresh, fresh})
	machines, _ := cloud.InstancesV2()
	nodes := shadow.Cluster{Kubernetes: r.kubernetes, Selector: cluster.Nodes, Managed: cloudprovider.Managed}
	sources := []shadow.Source{shadow.Services(services), shadow.Nodes(nodes, machines)}
	if config.Routes.Table != "" {
		sources = append(sources, shadow.Routes(nodes, config.Routes, fresh))
	}
	return &Beside{Config: r.config, Kubernetes: r.kubernetes, Azure: fresh, Sources: sources, Close: cloud.Close}
}
