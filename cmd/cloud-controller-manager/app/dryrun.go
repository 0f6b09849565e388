package app

import (
	"context"
	"fmt"
	"io"

	"k8s.io/client-go/kubernetes"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/controller-manager/pkg/clientbuilder"

	"kaz/internal/azure"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/reconcile"
)

// dryRun makes the program read everything and write nothing.
type dryRun struct {
	on  bool
	out io.Writer // receives the explanations
}

func (d *dryRun) addFlag(sets *cliflag.NamedFlagSets) {
	sets.FlagSet(names.ServiceLBController).BoolVar(&d.on, "dry-run", false,
		"Write nothing, neither to Azure nor to Kubernetes: print and log what would be done for Services, as kaz explain service "+
			"and again when the result changes. "+
			"Only the service controller runs; nodes and routes are ignored. There is no leader election, so another "+
			"cloud-controller-manager may run at the same time; on its machine, set another --secure-port here.")
}

// prepare disables every controller but the service controller, and replaces the Kubernetes clients
// by clients that cannot write.
func (d *dryRun) prepare(c *config.CompletedConfig) error {
	if !d.on {
		return nil
	}
	c.ComponentConfig.Generic.LeaderElection.LeaderElect = false
	c.ComponentConfig.Generic.LeaderMigrationEnabled = false
	c.ComponentConfig.Generic.Controllers = []string{names.ServiceLBController}
	c.Kubeconfig = readOnly(c.Kubeconfig)
	client, err := kubernetes.NewForConfig(c.Kubeconfig)
	if err != nil {
		return err
	}
	c.Client, c.VersionedClient = client, client
	c.ClientBuilder = clientbuilder.SimpleControllerClientBuilder{ClientConfig: c.Kubeconfig}
	return nil
}

// client returns the ARM client that the controllers may use: a read-only one in a dry run.
func (d *dryRun) client(client reconcile.Azure) reconcile.Azure {
	if !d.on {
		return client
	}
	return unwritten{reading{client}, reading{client.Fresh()}}
}

// run runs the service controller, or prints its explanations in a dry run.
func (d *dryRun) run(ctx context.Context, services *service.Controller) {
	if !d.on {
		services.Run(ctx)
		return
	}
	services.DryRun(ctx, func(e explain.Explanation) {
		_, _ = fmt.Fprintln(d.out, e.String()) // the explanation is also logged
	})
}

// unwritten is an ARM client that refuses every write.
type unwritten struct {
	reading
	fresh reading
}

func (u unwritten) Fresh() azure.Reader { return u.fresh }

// Begin implements [azure.Writer].
func (u unwritten) Begin(_ context.Context, r azure.Request) (*azure.Operation, error) {
	return nil, &azure.Error{Kind: azure.Denied, Op: r.Op(), ID: r.ID, Message: "this is a dry run: nothing is written"}
}
