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
	"kaz/internal/reconcile"
)

// dryRun has everything looked at and nothing written.
type dryRun struct {
	on  bool
	out io.Writer // what would be done is printed here
}

func (d *dryRun) addFlag(sets *cliflag.NamedFlagSets) {
	sets.FlagSet(names.ServiceLBController).BoolVar(&d.on, "dry-run", false,
		"Write nothing, neither to Azure nor to Kubernetes: print and log what would be done for Services, as kaz explain service does, and again when it becomes something else. "+
			"Only the service controller takes part: nodes and routes are left alone. There is no leader election, so another cloud-controller-manager may be at work; on its machine, give this one another --secure-port.")
}

// prepare leaves the service controller alone with clients that cannot write.
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

// door is what of a door may be used.
func (d *dryRun) door(door reconcile.Azure) reconcile.Azure {
	if !d.on {
		return door
	}
	return unwritten{reading{door}, reading{door.Fresh()}}
}

// run serves Services, or says how.
func (d *dryRun) run(ctx context.Context, services *service.Controller) {
	if !d.on {
		services.Run(ctx)
		return
	}
	services.Rehearse(ctx, func(e service.Explanation) {
		_, _ = fmt.Fprintln(d.out, e.String()) // who does not read it has the log
	})
}

// unwritten is a door through which nothing is written.
type unwritten struct {
	reading
	fresh reading
}

func (u unwritten) Fresh() azure.Reader { return u.fresh }

func (u unwritten) Put(_ context.Context, w azure.Write) (azure.Document, error) {
	return nil, notWritten("put", w.ID)
}

func (u unwritten) Patch(_ context.Context, w azure.Write) (azure.Document, error) {
	return nil, notWritten("patch", w.ID)
}

func (u unwritten) Delete(_ context.Context, id azure.ID) error { return notWritten("delete", id) }

func (u unwritten) Post(_ context.Context, id azure.ID, action string, _ azure.Document) (azure.Document, error) {
	return nil, notWritten(action, id)
}

func notWritten(op string, id azure.ID) error {
	return &azure.Error{Kind: azure.Denied, Op: op, ID: id, Message: "this is a dry run: nothing is written"}
}
